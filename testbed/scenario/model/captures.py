"""Captures: links, and windows around faults, resolved before the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import Field, PlainValidator, WithJsonSchema

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.expect.reserved import ALL_FAULTS, WHOLE_RUN
from mrc_testbed.testbed.scenario.faults.chance import Chance
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.faults.occurrence import Occurrence
from mrc_testbed.testbed.scenario.faults.selection import Targets, chosen
from mrc_testbed.testbed.scenario.text.fields import NAMES_SCHEMA, Duration, Model, Size, refuse
from mrc_testbed.topos.plan import Plan


class CaptureWindow(NamedTuple):
    """A time span, in ns from the workload's start."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class LinkCapture:
    """The capture on one link: the first `snap_bytes` of each packet, in ordered, disjoint `windows`, until
    `most_bytes` are written."""

    link: str
    snap_bytes: int
    most_bytes: int
    windows: tuple[CaptureWindow, ...]

    @property
    def seconds(self) -> float:
        """Total length of the windows."""
        return sum(window.end_ns - window.begin_ns for window in self.windows) / 1e9


def _around(value: object) -> tuple[str, ...]:
    """Names of faults; none: all faults. Or WHOLE_RUN, alone."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(item, str) and item for item in items):
        raise refuse(f"must be the name of a fault, a list of such names, `{ALL_FAULTS}` or `{WHOLE_RUN}`")
    for word, meaning in ((ALL_FAULTS, "every fault"), (WHOLE_RUN, "the whole run")):
        if word in items and len(items) > 1:
            raise refuse(f"`{word}` must be alone: it means {meaning}")
    return () if items == [ALL_FAULTS] else tuple(items)


Around = Annotated[tuple[str, ...], PlainValidator(_around), WithJsonSchema(NAMES_SCHEMA)]


class Capture(Model):
    """An entry of `capture`."""

    links: Targets = Field(description="the link or links to capture", examples=["p0-t0-0:p0-t1-2"])
    around: Around = Field(
        description="faults by name, or `all`: each of their cycles; or `run`: from the workload's start to its end",
        examples=["all"],
    )
    before_ns: Duration = Field(
        default=200_000_000,
        alias="before",
        description="how long before a cycle capture begins",
        examples=["200ms"],
    )
    after_ns: Duration = Field(
        default=1_000_000_000, alias="after", description="how long after its heal the capture ends", examples=["1s"]
    )
    snap_bytes: Size = Field(default=160, alias="snap", description="bytes kept of each packet", examples=["160B"])
    most_bytes: Size = Field(default=32 << 20, alias="most", description="size limit for each link", examples=["32MiB"])

    def chosen(self, number: int, plan: Plan, seed: int) -> dict[str, int]:
        """Names of the links of entry `number`, each with the index of its item. Raises SelectionError."""
        return chosen(self.links, "capture", Target.LINK, plan, Chance(seed, f"capture-{number}", "links"))

    @property
    def whole_run(self) -> bool:
        """True if it captures the whole run."""
        return self.around == (WHOLE_RUN,)

    def windows(self, occurrences: Iterable[Occurrence], longest_ns: int) -> tuple[CaptureWindow, ...]:
        """Its windows, in a run that takes at most `longest_ns`."""
        if self.whole_run:
            return (CaptureWindow(0, longest_ns),)
        meant = (occurrence for occurrence in occurrences if not self.around or occurrence.fault in self.around)
        return tuple(
            CaptureWindow(max(0, occurrence.begin_ns - self.before_ns), occurrence.end_ns + self.after_ns)
            for occurrence in meant
        )


def settle(
    entries: Sequence[Capture],
    occurrences: Sequence[Occurrence],
    longest_ns: int,
    plan: Plan,
    seed: int,
    naming: Callable[[Iterable[str]], Iterable[str]] = tuple,
) -> tuple[LinkCapture, ...]:
    """All entries resolved, one capture per link in plan order; a link in several entries has all their windows and the
    largest limits.

    `plan`: as written; `naming`: gives links of it their names in the fabric that is built, in the same order. Raises
    SelectionError.
    """
    found: dict[str, list[tuple[Capture, tuple[CaptureWindow, ...]]]] = {}
    for number, entry in enumerate(entries):
        windows = entry.windows(occurrences, longest_ns)
        for link in naming(entry.chosen(number, plan, seed)):
            found.setdefault(link, []).append((entry, windows))
    return tuple(_merged(link, found[link]) for link in naming(each.name for each in plan.links) if link in found)


def _merged(link: str, wanted: Sequence[tuple[Capture, tuple[CaptureWindow, ...]]]) -> LinkCapture:
    snap_bytes = max(entry.snap_bytes for entry, _ in wanted)
    most_bytes = max(entry.most_bytes for entry, _ in wanted)
    return LinkCapture(link, snap_bytes, most_bytes, union(window for _, windows in wanted for window in windows))


def union(windows: Iterable[CaptureWindow]) -> tuple[CaptureWindow, ...]:
    """The same time as disjoint windows, in order."""
    found: list[CaptureWindow] = []
    for window in sorted(windows):
        if found and window.begin_ns <= found[-1].end_ns:
            found[-1] = CaptureWindow(found[-1].begin_ns, max(found[-1].end_ns, window.end_ns))
        else:
            found.append(window)
    return tuple(found)


_UDP_BYTES = 14 + 40 + 40 + 8
"""All headers before the MRC header."""
HEADERS: Mapping[str, int] = {
    "Ethernet": 14,
    "the outer IPv6 header": 54,
    "the inner IPv6 header": 94,
    "UDP": _UDP_BYTES,
    "BTH": _UDP_BYTES + bth.BTH_BYTES,
    "data headers": _UDP_BYTES + wire.DATA_HEADER_BYTES + bth.IMMEDIATE_BYTES,
    "SACKs": _UDP_BYTES + wire.SACK_BYTES + bth.ICRC_BYTES,
}
"""Which headers fit into the kept bytes; of the longest control packets including the ICRC."""
LEAST_SNAP_BYTES = max(HEADERS.values())
LARGEST_SNAP_BYTES = 9014
"""The largest frame that a port accepts."""
LEAST_MOST_BYTES = 1 << 20
"""Less would not hold a second of one port."""
