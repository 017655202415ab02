"""The longest stall of each group in each fault, as bars on one logarithmic axis of seconds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.compare.comparison import Comparison
from mrc_testbed.testbed.compare.transports import FaultOutage, StoodStill, fault_outages
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.pages.comparison.curves import colour_of

MOST_FAULTS = 12
"""More are in compare.json alone."""
_MARKS = (1, 2, 5)
_FEW_DECADES = 1.3
"""Most decades that leave room for marks between the powers of ten."""


@dataclass(frozen=True, slots=True)
class StallBar:
    """A group in a fault. `at`: the end of its bar in per cent, None where nothing is known."""

    label: str
    colour: str
    stall: StoodStill
    at: float | None


@dataclass(frozen=True, slots=True)
class StallPanel:
    """The bars of one fault. `lasted_at`: where on the axis its length is, or that of its longest
    occurrence."""

    name: str
    what: str
    lasted: str
    lasted_at: float | None
    bars: tuple[StallBar, ...]


@dataclass(frozen=True)
class TimeAxis:
    """A logarithmic axis of times in ns."""

    least_ns: float
    most_ns: float

    def place(self, ns: float) -> float:
        """In per cent; what is beyond the ends is put at them."""
        share = (log10(ns) - log10(self.least_ns)) / (log10(self.most_ns) - log10(self.least_ns))
        return round(100 * min(1.0, max(0.0, share)), 2)

    @property
    def marks(self) -> list[tuple[str, float]]:
        """Texts and places: powers of ten, and what is between where they are few."""
        low, high = log10(self.least_ns), log10(self.most_ns)
        powers = range(floor(low), ceil(high) + 1)
        steps = _MARKS if high - low <= _FEW_DECADES else _MARKS[:1]
        values = [step * 10.0**power for power in powers for step in steps]
        return [
            (amount(Dimension.TIME, one), self.place(one)) for one in values if self.least_ns <= one <= self.most_ns
        ]


def stall_panels(comparison: Comparison) -> tuple[list[StallPanel], TimeAxis]:
    """A panel a fault, all on one axis; none without faults."""
    found = fault_outages(comparison)
    axis = _axis(found)
    return [_panel(one, axis) for one in found[:MOST_FAULTS]], axis


def _axis(found: Sequence[FaultOutage]) -> TimeAxis:
    """From half of the shortest stall that is reported to a little more than the longest, or than the faults."""
    stalls = [stall for fault in found for _, stall in fault.groups]
    longest = [*(stall.ns or stall.least_ns for stall in stalls), *(fault.lasted_ns or 0 for fault in found)]
    least = min((stall.least_ns for stall in stalls), default=1_000_000) / 2
    return TimeAxis(least, max(1.25 * max(longest, default=0), 10 * least))


def _panel(fault: FaultOutage, axis: TimeAxis) -> StallPanel:
    at = axis.place(fault.lasted_ns) if fault.lasted_ns else None
    return StallPanel(fault.name, fault.what, fault.lasted, at, tuple(_bars(fault.groups, axis)))


def _bars(groups: Iterable[tuple[str, StoodStill]], axis: TimeAxis) -> Iterable[StallBar]:
    for number, (label, stall) in enumerate(groups):
        at = None if stall.ns is None else axis.place(stall.ns or stall.least_ns)
        yield StallBar(label, colour_of(number), stall, at)
