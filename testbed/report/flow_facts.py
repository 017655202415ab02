"""The summary's facts about flows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.flow_times import flow_times, slowdowns
from mrc_testbed.testbed.checks.flows import flow_goodputs, latencies, message_times, share_figures
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount, number
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect import Span, Window
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.topos.units import plural


@derived
def flow_headline(record: RunRecord) -> str:
    """`8 flows, clean fair share 0.97 to 0.98`, in the part of the run without faults and of the flows that have enough
    under way to reach it; of others, as with `depth: 1`, the times of their messages."""
    flows = record.scenario.flows.flows
    count = plural(sum(flow.count for flow in flows), "flow")
    if any(flow.arrivals for flow in flows):
        return f"{count}, clean {_slowdown(record, Window(Span.CLEAN)).partition(';')[0]}"
    if not any(flow.greedy for flow in flows):
        return f"{count}, clean {_latency(record, Window(Span.CLEAN))}"
    if record.scenario.jobs:
        return count
    full = [flow.name for flow in flows if flow.fills(record.scenario.shape())]
    try:
        if not full:
            return f"{count}, clean {_message_times(record, Window(Span.CLEAN))}"
        figures = share_figures(record, Window(Span.CLEAN))
    except NoData as lacking:
        return f"{count}, {lacking}"
    shares = [figures[name].bytes / figures[name].fair_bytes for name in full if name in figures]
    if not shares:
        return f"{count}, no flow that can have its fair share was steady outside all faults"
    some = "" if len(full) == len(flows) else f" of {len(full)} of them"
    return f"{count}, clean fair share{some} {_from_to([number(min(shares)), number(max(shares))])}"


@derived
def flow_line(record: RunRecord) -> str:
    """Goodput of the flows and message times, clean and during faults."""
    clean = _figures(record, Window(Span.CLEAN))
    return f"clean {clean}; during faults {_figures(record, Window(Span.FAULTS))}" if record.occurrences else clean


def _figures(record: RunRecord, window: Window) -> str:
    parts = []
    flows = record.scenario.flows.flows
    if any(flow.greedy for flow in flows):
        parts.append(_rates(record, window))
    if any(flow.measures == "latency" for flow in flows):
        parts.append(_latency(record, window))
    if any(flow.arrivals for flow in flows):
        parts.append(_slowdown(record, window))
    return "; ".join(parts)


def _slowdown(record: RunRecord, window: Window) -> str:
    try:
        median, worst = (number(statistic(slowdowns(record, window), stat)) for stat in ("median", "p99"))
        return f"slowdown median {median}, P99 {worst}; {_times('flow time', flow_times(record, window), 'p99')}"
    except NoData as lacking:
        return str(lacking)


def _latency(record: RunRecord, window: Window) -> str:
    try:
        return _times("latency", latencies(record, window), "p99")
    except NoData as lacking:
        return str(lacking)


def _rates(record: RunRecord, window: Window) -> str:
    try:
        rates = flow_goodputs(record, window)
        goodput = f"goodput of each {_from_to([amount(Dimension.RATE, rate) for rate in (min(rates), max(rates))])}"
    except NoData as lacking:
        goodput = f"goodput of each unknown: {lacking}"
    try:
        return f"{goodput}, {_message_times(record, window)}"
    except NoData:
        return goodput


def _message_times(record: RunRecord, window: Window) -> str:
    return _times("message", message_times(record, window), "p100")


def _times(what: str, times: Sequence[float], worst: str) -> str:
    """`latency median 2 ms, P99 3.1 ms`."""
    median, most = (amount(Dimension.TIME, statistic(times, stat)) for stat in ("median", worst))
    return f"{what} median {median}, {worst.upper()} {most}"


def _from_to(ends: list[str]) -> str:
    return " to ".join(dict.fromkeys(ends))
