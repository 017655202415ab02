"""How long flows take to share fairly after something changed. Pure.

What receivers placed is known in stretches (100 ms at the speed of the testbed, so 12.5 µs at 100 Gb/s a port), with no
settling time left out. Shares are taken over as many stretches in a row as each flow's fair share needs to fill
LEAST_PACKETS packets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil, inf

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.flows import LEAST_PACKETS, Grain, flow_epochs, refuse_few_in_flight
from mrc_testbed.testbed.checks.goodput_series import IN_A_ROW
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.scope import flows_in
from mrc_testbed.testbed.checks.unmet import require_met
from mrc_testbed.testbed.checks.windows import (
    DURING,
    KnownBetween,
    NoData,
    NoPart,
    in_words,
    nothing,
    outages,
    window_times,
)
from mrc_testbed.testbed.expect import Span, Window
from mrc_testbed.testbed.workloads.fairness import max_min_shares
from mrc_testbed.testbed.workloads.flows import Flow
from mrc_testbed.testbed.workloads.steady import Epoch

NEAR = 0.1
"""A flow has its fair share if what it got is within this part of it."""


class TooSoon(NoData):
    """The next change, or the end, came before anything could be seen of one."""


@computes("fair_after")
def fair_after(record: RunRecord, window: Window) -> Sequence[float]:
    """Nanoseconds from each change until IN_A_ROW stretches in a row begin that find all flows within NEAR of their
    fair shares.

    In the whole run each begin and end of a flow is a change; in the time of faults each injection; in another window
    its begin. The next change ends the time that is looked at; one that comes too soon to tell leaves its own out.
    Raises KnownBetween if the flows did not get there, NoData where no change can be told.
    """
    flows = {flow.name: flow for flow in flows_in(record, window.scope) if flow.greedy}
    reached: list[float] = []
    late: list[float] = []
    unknown: list[TooSoon] = []
    for epoch, span in _watched(record, window, frozenset(flows)):
        try:
            after_ns, known_ns = _fair_in(record, flows, epoch, span)
        except TooSoon as error:
            unknown.append(error)
        else:
            (late if after_ns is None else reached).append(known_ns if after_ns is None else after_ns)
    if late:
        reason = f"the flows were not within {number(100 * NEAR)} % of their fair shares in {max(late) / 1e9:.3g} s"
        raise KnownBetween(reason, (*reached, *late), (*reached, *(inf for _ in late)))
    if not reached:
        raise unknown[0] if unknown else NoPart(f"no flow was going{in_words(window)}")
    return reached


def _watched(record: RunRecord, window: Window, names: frozenset[str]) -> Iterator[tuple[Epoch, Interval]]:
    """From each change on, until the next one; with the flows that are going."""
    going = [epoch for epoch in flow_epochs(record) if epoch.flows & names]
    if window.span is Span.RUN:
        yield from ((epoch, Interval(epoch.begin_ns, epoch.end_ns)) for epoch in going)
        return
    for span in _of_faults(record, window) if window.span in DURING else window_times(record, window):
        for epoch in going:
            if epoch.begin_ns <= span.begin < epoch.end_ns:
                yield epoch, Interval(span.begin, min(span.end, epoch.end_ns))


def _of_faults(record: RunRecord, window: Window) -> list[Interval]:
    """From each injection of a fault, or of any, until the next one. Raises NoData if no packet met one."""
    injected = [*(outage.injected_ns for outage in outages(record)), inf]
    begins = {outage.injected_ns for outage in require_met(record, window.fault)}
    return [Interval(begin_ns, end_ns) for begin_ns, end_ns in pairwise(injected) if begin_ns in begins]


def _fair_in(record: RunRecord, flows: Mapping[str, Flow], epoch: Epoch, span: Interval) -> tuple[float | None, float]:
    """How long it took, None if they did not get there; and how long that is known. Raises TooSoon, NoData."""
    demands = {flow.name: flow.demand for flow in record.scenario.flows.flows if flow.name in epoch.flows}
    shares = max_min_shares(record.scenario.shape(), demands)
    refuse_few_in_flight(record, shares)
    wanted = {name: flow for name, flow in flows.items() if name in epoch.flows}
    times = [time for time in _told(record).times if span.begin <= time.begin and time.end <= span.end]
    at_once = _stretches_at_once(record, wanted, shares, times)
    fair = [
        _all_fair(record, times[at : at + at_once], shares, wanted) for at in range(max(len(times) - at_once + 1, 0))
    ]
    if len(fair) < IN_A_ROW:
        known = f"{len(times)} stretches tell of the {(span.end - span.begin) / 1e9:.3g} s until the next change"
        raise TooSoon(f"{known}, and {IN_A_ROW + at_once - 1} are needed")
    known_ns = times[-1].end - span.begin
    for at in range(len(fair) - IN_A_ROW + 1):
        if all(fair[at : at + IN_A_ROW]):
            return times[at].begin - span.begin, known_ns
    return None, known_ns


class _Told:
    """What receivers told of whole stretches: `times` in order, and `bytes` by flow and begin, one of each QP."""

    def __init__(self, record: RunRecord) -> None:
        times: set[Interval] = set()
        self.bytes: dict[str, dict[float, list[int]]] = {}
        rows = record.received.columns("flow", "begin_ns", "end_ns", "bytes", "last")
        for flow, begin_ns, end_ns, count, is_last in rows:
            if not is_last:
                times.add(Interval(begin_ns, end_ns))
                self.bytes.setdefault(flow, {}).setdefault(begin_ns, []).append(count)
        self.times = sorted(times)


@derived
def _told(record: RunRecord) -> _Told:
    return _Told(record)


def _stretches_at_once(
    record: RunRecord, flows: Mapping[str, Flow], shares: Mapping[str, float], times: Sequence[Interval]
) -> int:
    """Over how many stretches a packet more or less is no more than a 20th of each share. Raises TooSoon."""
    if not times:
        raise TooSoon("no whole stretch tells of the time until the next change")
    length_s = (times[0].end - times[0].begin) / 1e9
    packets = min(shares[name] * length_s / Grain.of(record, flow).bytes for name, flow in flows.items())
    return max(ceil(LEAST_PACKETS / packets), 1)


def _all_fair(
    record: RunRecord, times: Sequence[Interval], shares: Mapping[str, float], flows: Mapping[str, Flow]
) -> bool:
    """Whether all flows got their shares in these stretches. Raises NoData where one did not tell."""
    length_s = (times[-1].end - times[0].begin) / 1e9
    fair = True
    for name, flow in flows.items():
        told = [_told(record).bytes.get(name, {}).get(time.begin, []) for time in times]
        if any(len(counts) != flow.qps for counts in told):
            nothing(f"nothing is known of {name} in a part of that time")
        fair &= abs(sum(map(sum, told)) / length_s - shares[name]) <= NEAR * shares[name]
    return fair
