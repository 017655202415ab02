"""What the flows of a run delivered, compared with their fair shares. Pure.

Receivers report what was placed in memory in stretches of 100 ms. A stretch of a flow is steady if it lies wholly
inside an epoch (no flow begins or ends in it) that is then older than `settle_ns`; rates use steady stretches only.
`windows.stretches` decides which count for a window.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.intervals import Interval, TimeSet
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.scope import flows_in
from mrc_testbed.testbed.checks.windows import KnownBetween, NoData, NoPart, in_words, stretches
from mrc_testbed.testbed.expect import Window
from mrc_testbed.testbed.workloads.fairness import line_rate, max_min_shares, pair_of
from mrc_testbed.testbed.workloads.flows import Flow
from mrc_testbed.testbed.workloads.steady import Epoch, epochs, settle_ns
from mrc_testbed.topos.in_flight import few_in_flight, slowest_between
from mrc_testbed.topos.units import plural, some

LEAST_PACKETS = 20
"""A packet more or less changes the rate of a time with fewer packets by more than 5 %: it is not known."""
_ROOM_PACKETS = 4
"""The ends of a stretch lie within packets, on several planes."""
_ROOM = 1.05
"""How much faster than written a shaper may be (`fidelity.MAX_SHAPED_RATE_ERROR`). More than that is a wrong count."""


@dataclass(slots=True)
class FlowFigures:
    """One flow over the steady stretches of a window. `fair_bytes`: what its fair share would have delivered."""

    bytes: int = 0
    duration_ns: float = 0.0
    fair_bytes: float = 0.0

    @property
    def fair_rate(self) -> float:
        """Its fair share, in bytes per second."""
        return self.fair_bytes * 1e9 / self.duration_ns if self.duration_ns else 0.0


class _Delivered:
    """What QPs delivered in one stretch: flow and bytes of each."""

    def __init__(self) -> None:
        self._flows: list[str] = []
        self._bytes = array("q")

    def add(self, flow: str, count: int) -> None:
        """One more."""
        self._flows.append(flow)
        self._bytes.append(count)

    def rows(self) -> Iterator[tuple[str, int]]:
        """All, in order."""
        return zip(self._flows, self._bytes, strict=True)


@computes("flow_goodput")
def flow_goodputs(record: RunRecord, window: Window) -> Sequence[float]:
    """Bytes per second of each flow."""
    return [figures.bytes * 1e9 / figures.duration_ns for figures in share_figures(record, window).values()]


@computes("fair_share")
def fair_shares(record: RunRecord, window: Window) -> Sequence[float]:
    """Bytes of each flow over what its max-min fair share would have delivered in the same time."""
    return [figures.bytes / figures.fair_bytes for figures in share_figures(record, window).values()]


@computes("balance")
def balance(record: RunRecord, window: Window) -> float:
    """The least fair share over the greatest: 1 when all flows get the same part of their fair share."""
    shares = fair_shares(record, window)
    if not any(shares):
        raise NoData(f"no flow delivered anything{in_words(window)}")
    if len(shares) < 2:
        raise NoPart(f"only one flow was steady{in_words(window)}")
    return min(shares) / max(shares)


@computes("message_time")
def message_times(record: RunRecord, window: Window) -> Sequence[float]:
    """Nanoseconds from posting to completion, of messages completed in the window."""
    return _durations(record, window, "greedy")


@computes("latency")
def latencies(record: RunRecord, window: Window) -> Sequence[float]:
    """Half of that, for the messages of latency flows."""
    try:
        return [duration / 2 for duration in _durations(record, window, "latency")]
    except KnownBetween as found:
        halves = ([duration / 2 for duration in each] for each in (found.least, found.most))
        raise KnownBetween(str(found), *halves) from None


def _durations(record: RunRecord, window: Window, kind: str) -> Sequence[float]:
    """Durations by flow, without warm-up messages. Raises KnownBetween where the testbed stopped messages under way."""
    inside = stretches(record, window)
    flows = [flow for flow in flows_in(record, window.scope) if flow.measures == kind]
    counts_from = _counts_from(record, flows)
    warm_up = {flow.name: flow.warm_up_messages for flow in flows}
    found = []
    for flow, end_ns, took_ns in record.messages.columns("flow", "end_ns", "duration_ns"):
        left = warm_up.get(flow)
        if left:
            warm_up[flow] = left - 1
        elif left == 0 and end_ns - took_ns >= counts_from[flow] and inside(Interval(end_ns - took_ns, end_ns)):
            found.append(took_ns)
    if not found:
        raise NoData(f"no message was completed{in_words(window)}")
    shape, cut = record.scenario.shape(), [flow for flow in flows if _stopped_in(record, flow, inside)]
    if stopped := sum(flow.under_way_bytes(shape) // flow.message_bytes for flow in cut):
        least, most = [*found, *[0] * stopped], [*found, *[inf] * stopped]
        raise KnownBetween(f"the testbed stopped up to {plural(stopped, 'message')} under way", least, most)
    return found


def _stopped_in(record: RunRecord, flow: Flow, inside: Callable[[Interval], bool]) -> bool:
    """Whether the testbed stopped it, and the time since its last acknowledgement counts."""
    end = record.stopped.get(flow.name)
    if end is None:
        return False
    acknowledged = (end_ns for name, end_ns in record.messages.columns("flow", "end_ns") if name == flow.name)
    return inside(Interval(min(max(acknowledged, default=record.start_ns or 0), end.t_ns), end.t_ns))


def _counts_from(record: RunRecord, flows: Iterable[Flow]) -> dict[str, int]:
    """End of the flows' warm-up time, on CLOCK_MONOTONIC."""
    start_ns = record.start_ns or 0
    return {flow.name: start_ns + flow.start_ns + flow.warm_up_ns for flow in flows}


def flows_goodput(record: RunRecord, window: Window) -> float:
    """Bytes of all flows over the time in which any of them was steady, in bytes per second."""
    total = sum(figures.bytes for figures in steady_figures(record, window).values())
    times = {time for _, _, time, _ in steady_rows(record, window)}
    return total * 1e9 / TimeSet(times).length_ns


def flow_bytes_wrong(record: RunRecord, window: Window) -> float:
    """Bytes that differ, in every stretch of the window, steady or not."""
    inside = stretches(record, window)
    wanted = {flow.name for flow in flows_in(record, window.scope)}
    messages = wrong = 0
    columns = "flow", "begin_ns", "end_ns", "messages", "bytes_wrong"
    for flow, begin_ns, end_ns, of_messages, of_wrong in record.received.columns(*columns):
        if flow in wanted and inside(Interval(begin_ns, end_ns)):
            messages += of_messages
            wrong += of_wrong
    if not messages:
        raise NoData(f"no message arrived{in_words(window)}")
    return wrong


def steady_figures(record: RunRecord, window: Window) -> Mapping[str, FlowFigures]:
    """Figures by flow. Raises NoData without a steady stretch, if an active flow reported nothing in the window, and
    where too few packets tell, or more than a port carries."""
    figures: dict[str, FlowFigures] = {}
    shares: dict[Epoch, dict[str, float]] = {}
    shape = record.scenario.shape()
    flows = {flow.name: flow for flow in record.scenario.flows.flows}
    for flow, count, time, epoch in steady_rows(record, window):
        if epoch not in shares:
            shares[epoch] = max_min_shares(shape, {name: flows[name].demand for name in epoch.flows})
        figure = figures.get(flow) or figures.setdefault(flow, FlowFigures())
        figure.bytes += count
        # Each QP of a flow has rows of its own for the same time.
        part = (time.end - time.begin) / flows[flow].qps
        figure.duration_ns += part
        figure.fair_bytes += shares[epoch][flow] * part / 1e9
    for name, figure in figures.items():
        _settle(figure, name, Grain.of(record, flows[name]), line_rate(shape), window)
    return figures


def share_figures(record: RunRecord, window: Window) -> Mapping[str, FlowFigures]:
    """The same for shares and rates of single flows. Raises NoData also where planes hold too few packets for them."""
    figures = steady_figures(record, window)
    refuse_few_in_flight(record, {name: figure.fair_rate for name, figure in figures.items()})
    return figures


def refuse_few_in_flight(record: RunRecord, shares: Mapping[str, float]) -> None:
    """Raises NoData where planes hold too few packets for shares and rates of single flows; `shares`: bytes per second
    of each flow that is fair."""
    shape = record.scenario.shape()
    flows = {flow.name: flow.demand for flow in record.scenario.flows.flows}
    sprays = record.scenario.transport.has_paths
    line = line_rate(shape)
    for name, share in shares.items():
        pair = pair_of(shape, flows[name].src, flows[name].dst)
        slowest = slowest_between(shape.family, *pair) if pair else 1.0
        # With the line for itself, a flow shares nothing that it needs.
        if held := few_in_flight(shape, sprays and share >= (1 - 1e-6) * line, slowest):
            raise NoData(f"{held}: shares and rates of single flows are worthless ({name})")


class Grain(NamedTuple):
    """What is counted at once, and how many bytes that is: a packet, or a message in runs that counted those."""

    word: str
    bytes: int

    @classmethod
    def of(cls, record: RunRecord, flow: Flow) -> Grain:
        """Of a flow of this run."""
        if record.counts_placed_bytes:
            return cls("packets", record.scenario.shape().payload_bytes)
        return cls("messages", flow.message_bytes)


def _settle(figure: FlowFigures, flow: str, grain: Grain, line: float, window: Window) -> None:
    """Raises NoData for a rate that so few packets do not tell, or that no port has; what is over the line by a packet
    is the line."""
    if figure.fair_bytes < LEAST_PACKETS * grain.bytes:
        held = f"{number(figure.fair_bytes / grain.bytes)} {grain.word}"
        raise NoData(f"the fair share of {flow} is {held} in the time{in_words(window)}: too few to tell a rate")
    most = line * figure.duration_ns / 1e9
    if figure.bytes > _ROOM * most + _ROOM_PACKETS * grain.bytes:
        raise NoData(f"{flow} would have delivered {number(figure.bytes / most)} of what its ports carry")
    figure.bytes = min(figure.bytes, int(most))


def steady_rows(record: RunRecord, window: Window) -> Iterator[tuple[str, int, Interval, Epoch]]:
    """Flow, bytes and time of the steady stretches of a window, each with the flows active then. Raises NoData as
    `steady_figures`."""
    inside = stretches(record, window)
    counts_from = _counts_from(record, (flow for flow in flows_in(record, window.scope) if flow.greedy))
    heard: set[str] = set()
    due: set[str] = set()
    for epoch, steady in _steady(record):
        times = [time for time in steady if inside(time)]
        latest = max((time.begin for time in times), default=-1)
        due |= {name for name in epoch.flows if counts_from.get(name, inf) <= latest}
        for time in times:
            for flow, count in steady[time].rows():
                if counts_from.get(flow, inf) <= time.begin:
                    heard.add(flow)
                    yield flow, count, time, epoch
    if not due:
        raise NoPart(f"no flow was steady{in_words(window)}")
    if silent := sorted(due - heard):
        raise NoData(f"nothing is known of {some(silent)}{in_words(window)}")


@derived
def flow_epochs(record: RunRecord) -> list[Epoch]:
    """The times between begins and ends of flows. Raises NoData if the workload did not begin."""
    return epochs(_spans(record))


@derived
def _steady(record: RunRecord) -> list[tuple[Epoch, dict[Interval, _Delivered]]]:
    """The steady stretches of each epoch by time, with what every QP delivered."""
    settle = settle_ns(record.scenario.shape())
    found = []
    for epoch in flow_epochs(record):
        steady: dict[Interval, _Delivered] = {}
        for flow, begin_ns, end_ns, count in record.received.columns("flow", "begin_ns", "end_ns", "bytes"):
            if epoch.begin_ns + settle <= begin_ns and end_ns <= epoch.end_ns and flow in epoch.flows:
                time = Interval(begin_ns, end_ns)
                (steady.get(time) or steady.setdefault(time, _Delivered())).add(flow, count)
        found.append((epoch, steady))
    return found


def _spans(record: RunRecord) -> dict[str, tuple[int, int]]:
    """When each greedy flow was sending, on CLOCK_MONOTONIC: no longer than until a QP of it failed."""
    start_ns = record.start_ns
    if start_ns is None:
        raise NoData("the workload did not begin")
    flows = [flow for flow in record.scenario.flows.flows if flow.greedy]
    ends = _last_heard(record) if any(flow.stop_ns is None for flow in flows) else {}
    spans = {flow.name: _span(flow, start_ns, ends) for flow in flows}
    died = {name: max(start_ns, end.t_ns) for name, end in record.ends.items() if end.error}
    return {name: (begin, min(end, max(begin, died.get(name, end)))) for name, (begin, end) in spans.items()}


def _span(flow: Flow, start_ns: int, ends: Mapping[str, int]) -> tuple[int, int]:
    begin_ns = start_ns + flow.start_ns
    if flow.stop_ns is not None:
        return begin_ns, start_ns + flow.stop_ns
    return begin_ns, max(begin_ns, ends.get(flow.name, begin_ns))


def _last_heard(record: RunRecord) -> dict[str, int]:
    """Of each flow when the first of its QPs ended, whose last stretch is not a complete one; if none did, when
    anything of it was heard last."""
    ends: dict[str, int] = {}
    heard: dict[str, int] = {}
    for flow, begin_ns, end_ns, is_last in record.received.columns("flow", "begin_ns", "end_ns", "last"):
        heard[flow] = max(heard.get(flow, end_ns), end_ns)
        if is_last:
            ends[flow] = min(ends.get(flow, begin_ns), begin_ns)
    return heard | ends
