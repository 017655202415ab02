"""The summary's recovery table: the worst occurrence of each fault, as plain text cells. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mrc_testbed.testbed.checks.amounts import MeasuredDuration
from mrc_testbed.testbed.checks.healing import Healing, Losses, healings
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount, number
from mrc_testbed.testbed.checks.shown import NOTHING, UNKNOWN
from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.expect import METRICS
from mrc_testbed.testbed.expect.vocabulary import Dimension

NEVER_FELL = METRICS["goodput_back"].zero


@dataclass(frozen=True, slots=True)
class HealingRow:
    """One fault; each cell is from its worst occurrence."""

    name: str
    first_loss: str
    last_sent: str
    goodput_back: str
    lost_per_qp: str
    told: str
    back: str


def healing_rows(record: RunRecord) -> list[HealingRow]:
    """One row per injected fault, in time order."""
    return [_row(one) for one in gathered((one.outage.fault, one) for one in healings(record)).values()]


def _row(occurrences: Sequence[Healing]) -> HealingRow:
    told = max((one.told for one in occurrences), key=lambda told: told.number)
    return HealingRow(
        occurrences[0].outage.fault,
        _worst(occurrences, lambda one: one.first_lost.figure("min")),
        _worst(occurrences, lambda one: one.last_sent.figure("max")),
        _goodput_back([one.goodput for one in occurrences]),
        _lost_per_qp([one.losses for one in occurrences]),
        f"{told.number} in {_time(told.figure('p100'))}" if told.number else NOTHING,
        _all_back(occurrences),
    )


def _lost_per_qp(losses: Sequence[Losses]) -> str:
    """What the worst QP lost in the worst occurrence; at most, where snapshots leave one of them open."""
    known = [one.qp_max for one in losses if one.qp_max is not None]
    at_most = [one.qp_at_most for one in losses if one.qp_at_most is not None]
    if not known + at_most:
        return UNKNOWN
    return f"{'≤ ' if at_most and max(at_most) > max(known, default=0) else ''}{number(max(known + at_most))}"


def _back_after_heal(one: Healing) -> MeasuredDuration:
    """When the last EV was restored or, if none was retired, the last plane."""
    return (one.after.restored if one.after.restored.number else one.after.planes).figure("max")


def _all_back(occurrences: Sequence[Healing]) -> str:
    """Unknown where the last one did not come back before the record ended."""
    if any(one.after.restored.still_open for one in occurrences):
        return UNKNOWN
    return _worst(occurrences, _back_after_heal)


def _worst(occurrences: Sequence[Healing], pick: Callable[[Healing], MeasuredDuration], none: str = NOTHING) -> str:
    known = [figure for figure in map(pick, occurrences) if figure.ns is not None]
    return _time(max(known, key=lambda figure: figure.ns or 0)) if known else none


def _goodput_back(figures: Sequence[MeasuredDuration]) -> str:
    """Of all occurrences; at least the longest that is known, where others are not."""
    longest = max((figure.ns for figure in figures if figure.ns is not None), default=None)
    if all(figure.ns is not None for figure in figures):
        return goodput_back_words(MeasuredDuration(longest))
    return f"\u2265 {amount(Dimension.TIME, longest)}" if longest else UNKNOWN


def goodput_back_words(figure: MeasuredDuration) -> str:
    """A goodput that never fell was not back after 0 ms."""
    return NEVER_FELL if figure.ns == 0 else _time(figure)


def _time(figure: MeasuredDuration) -> str:
    return UNKNOWN if figure.ns is None else amount(Dimension.TIME, figure.ns)
