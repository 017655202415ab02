"""Run record -> the figures that expectations speak of. Pure; NoData where the record holds nothing to compute from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf

from testbed.checks.expect import Span, Window
from testbed.checks.flows import (
    balance,
    fair_shares,
    flow_bytes_wrong,
    flow_goodputs,
    flows_goodput,
    latencies,
    message_times,
)
from testbed.checks.record import ASSUMED_BAD, EvChange, RunRecord, Snapshot
from testbed.checks.recovery import Recovery, recoveries
from testbed.checks.statistics import statistic
from testbed.checks.windows import Interval, NoData, job_steps, moments, steps_in, window_intervals

LOST_PREFIX = "lost_"
"""Endpoints count lost packets by reason; the metric is the sum."""


def measure(record: RunRecord, metric: str, stat: str | None, window: Window) -> float:
    """A metric in its base unit (a number, bytes, ns or bytes per second). Raises NoData with the reason."""
    if metric in _SPREADS:
        return statistic(_SPREADS[metric](record, window), stat or "p100")
    return _SINGLES[metric](record, window)


def step_times(record: RunRecord, window: Window) -> Sequence[float]:
    """Durations of the steps of a window, in ns."""
    return [step.duration_ns for step in steps_in(record, window)]


def recovery_times(record: RunRecord, window: Window) -> Sequence[float]:
    """Recovery times of the EVs that a fault, or any fault, retired, in ns."""
    return [one.duration_ns for one in _retired(record, window)]


def exposures(record: RunRecord, window: Window) -> Sequence[float]:
    """For how long data packets went out on each of these EVs after the fault was in place, in ns."""
    return [one.exposure_ns for one in _retired(record, window)]


def _retired(record: RunRecord, window: Window) -> list[Recovery]:
    found = [one for one in recoveries(record) if window.fault in ("", one.fault)]
    if not found:
        raise NoData(f"no EV was retired by {window.fault or 'a fault'}")
    return found


def goodput(record: RunRecord, window: Window) -> float:
    """Bytes of the finished steps of a window by the time of these steps, in bytes per second; without a job of steps
    those of flows likewise."""
    if record.scenario.job.steps is None:
        return flows_goodput(record, window)
    steps = steps_in(record, window)
    duration = sum(step.duration_ns for step in steps)
    if duration <= 0:
        raise NoData("the steps took no time")
    return sum(step.bytes for step in steps) * 1e9 / duration


def bytes_wrong(record: RunRecord, window: Window) -> float:
    """Bytes that differ in all completions of the run, or in the finished steps of a window; and of flows likewise."""
    job = record.scenario.job
    counts = [_step_bytes_wrong] if job.steps else []
    counts += [flow_bytes_wrong] if job.flows else []
    found, lacking = [], []
    for count in counts:
        try:
            found.append(count(record, window))
        except NoData as error:
            lacking.append(error)
    if not found:  # either may have nothing in a window that the other fills
        raise lacking[0]
    return sum(found)


def _step_bytes_wrong(record: RunRecord, window: Window) -> float:
    if window.span is not Span.RUN:
        return sum(step.bytes_wrong for step in steps_in(record, window))
    if not record.completions:
        raise NoData("no rank finished a step")
    return sum(done.bytes_wrong for done in record.completions)


def steps_done(record: RunRecord, window: Window) -> float:
    """Steps that every rank finished; 0 is a number as good as any once the workload ran."""
    if record.start_ns is None:
        raise NoData("the workload did not begin")
    return len(job_steps(record)) if window.span is Span.RUN else len(steps_in(record, window))


def qp_errors(record: RunRecord, window: Window) -> float:
    """QPs that went to ERROR, counted at each end that saw it."""
    inside = moments(record, window)
    count = sum(inside(notice.t_ns) for notice in record.qp_errors)
    if not count:
        _final(record)
    return count


def evs_retired(record: RunRecord, window: Window) -> float:
    """Times an EV in use became ASSUMED_BAD."""
    return _ev_changes(record, window, lambda change: change.retired)


def evs_restored(record: RunRecord, window: Window) -> float:
    """Times an EV left ASSUMED_BAD for use."""
    return _ev_changes(record, window, lambda change: change.restored)


def _ev_changes(record: RunRecord, window: Window, wanted: Callable[[EvChange], bool]) -> float:
    _final(record)
    inside = moments(record, window)
    return sum(wanted(change) and inside(change.t_ns) for change in record.ev_changes)


def unrestored_evs(record: RunRecord, window: Window) -> float:
    """EVs whose last known state is ASSUMED_BAD."""
    _final(record)
    last = {(change.host, change.peer, change.plane, change.uplink): change.new for change in record.ev_changes}
    return sum(state == ASSUMED_BAD for state in last.values())


def queue_drops(record: RunRecord, window: Window) -> float:
    """Packets that the queues of all ports dropped."""
    if record.queue_drops is None:
        raise NoData("no queue counters were recorded")
    return record.queue_drops


def data_on_bad_ev(record: RunRecord, window: Window) -> float:
    """Data packets that left on an EV which was not GOOD then."""
    return sum(_pick(counters, "data_on_bad_ev", host) for host, counters in _final(record).items())


def packets_lost(record: RunRecord, window: Window) -> float:
    """Data packets that senders took for lost, for any reason."""
    return _counted(record, window, _lost)


def retransmissions(record: RunRecord, window: Window) -> float:
    """Data packets sent again."""
    return counted(record, window, "retransmitted")


def counted(record: RunRecord, window: Window, name: str) -> float:
    """How much the counter `name` of all hosts grew."""
    return _counted(record, window, lambda counters, host: _pick(counters, name, host))


def _lost(counters: Mapping[str, int], host: str) -> int:
    reasons = [count for name, count in counters.items() if name.startswith(LOST_PREFIX)]
    if not reasons:
        raise NoData(f"{host} did not count lost packets")
    return sum(reasons)


def _pick(counters: Mapping[str, int], name: str, host: str) -> int:
    if name not in counters:
        raise NoData(f"{host} did not count {name}")
    return counters[name]


def _final(record: RunRecord) -> Mapping[str, Mapping[str, int]]:
    """The final counters of the workload's hosts. Raises NoData when a host never gave them: its events may be cut."""
    silent = [host for host in record.scenario.host_names if host not in record.counters]
    if silent:
        raise NoData(f"no final counters of {', '.join(silent[:4])}{' and others' if len(silent) > 4 else ''}")
    return {host: record.counters[host] for host in record.scenario.host_names}


Count = Callable[[Mapping[str, int], str], int]


def _counted(record: RunRecord, window: Window, count: Count) -> float:
    """How much a counter grew in a window, to the grain of the snapshots, over all hosts."""
    total = sum(count(counters, host) for host, counters in _final(record).items())
    if window.span is Span.RUN:
        return total
    during = sum(_growth(record, interval, count) for interval in window_intervals(record, window))
    return total - during if window.span is Span.CLEAN else during


def _growth(record: RunRecord, interval: Interval, count: Count) -> int:
    return sum(
        _at(record, host, interval.end, count) - _before(record, host, interval.begin, count) for host in _final(record)
    )


def _before(record: RunRecord, host: str, t_ns: float, count: Count) -> int:
    """The counter in the last snapshot before a moment; 0 before the first one."""
    earlier = [shot for shot in _snapshots(record, host) if shot.t_ns <= t_ns]
    return count(earlier[-1].counters, host) if earlier else 0


def _at(record: RunRecord, host: str, t_ns: float, count: Count) -> int:
    """The counter in the first snapshot after a moment; the final one after the last."""
    later = [shot for shot in _snapshots(record, host) if t_ns != inf and shot.t_ns >= t_ns]
    return count(later[0].counters if later else record.counters[host], host)


def _snapshots(record: RunRecord, host: str) -> list[Snapshot]:
    return [shot for shot in record.snapshots if shot.host == host]


_SPREADS: Mapping[str, Callable[[RunRecord, Window], Sequence[float]]] = {
    "step_time": step_times,
    "recovery": recovery_times,
    "flow_goodput": flow_goodputs,
    "fair_share": fair_shares,
    "message_time": message_times,
    "latency": latencies,
    "exposure": exposures,
}
_SINGLES: Mapping[str, Callable[[RunRecord, Window], float]] = {
    "qp_errors": qp_errors,
    "bytes_wrong": bytes_wrong,
    "data_on_bad_ev": data_on_bad_ev,
    "steps_done": steps_done,
    "goodput": goodput,
    "balance": balance,
    "packets_lost": packets_lost,
    "retransmissions": retransmissions,
    "timeouts": partial(counted, name="timeouts"),
    "nacks": partial(counted, name="nacks_received"),
    "trims": partial(counted, name="trimmed_received"),
    "ecn_skips": partial(counted, name="evs_skipped"),
    "evs_retired": evs_retired,
    "evs_restored": evs_restored,
    "unrestored_evs": unrestored_evs,
    "queue_drops": queue_drops,
}
