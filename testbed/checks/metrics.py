"""Run record -> the figures that expectations speak of. Pure; NoData where the record holds nothing to compute from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from testbed.checks.counting import counted, final_counters, lost_per_qp, packets_lost
from testbed.checks.flows import (
    balance,
    fair_shares,
    flow_bytes_wrong,
    flow_goodputs,
    flows_goodput,
    latencies,
    message_times,
)
from testbed.checks.pulse import times_back
from testbed.checks.record import ASSUMED_BAD, EvChange, RunRecord
from testbed.checks.recovery import Recovery, recoveries
from testbed.checks.statistics import statistic
from testbed.checks.steps import job_steps, rank_steps, step_durations, steps_in, wait_times
from testbed.checks.whom import about_flows, belongs, pairs_of
from testbed.checks.windows import NoData, NoPart, moments
from testbed.expect import Span, Whom, Window


def measure(record: RunRecord, metric: str, stat: str | None, window: Window) -> float:
    """A metric in its base unit (a number, bytes, ns or bytes per second). Raises NoData with the reason."""
    if metric in _SPREADS:
        return statistic(_SPREADS[metric](record, window), stat or "p100")
    return _SINGLES[metric](record, window)


def recovery_times(record: RunRecord, window: Window) -> Sequence[float]:
    """Recovery times of the EVs that a fault, or any fault, retired, in ns."""
    return [one.duration_ns for one in _retired(record, window)]


def exposures(record: RunRecord, window: Window) -> Sequence[float]:
    """For how long data packets went out on each of these EVs after the fault was in place, in ns."""
    return [one.exposure_ns for one in _retired(record, window)]


def _retired(record: RunRecord, window: Window) -> list[Recovery]:
    mine = belongs(record, window.scope)
    caused = [one for one in recoveries(record) if window.fault in ("", one.fault)]
    found = [one for one in caused if mine(one.change.host, one.change.peer)]
    if not found:
        raise NoPart(" ".join(f"no EV {window.scope} was retired by {window.fault or 'a fault'}".split()))
    return found


def goodput(record: RunRecord, window: Window) -> float:
    """Bytes of the finished steps of a window by the time of these steps, in bytes per second; without a job of steps
    those of flows likewise."""
    if about_flows(record, window.scope):
        return flows_goodput(record, window)
    steps = steps_in(record, window)
    duration = sum(step.duration_ns for step in steps)
    if duration <= 0:
        raise NoData("the steps took no time")
    return sum(step.bytes for step in steps) * 1e9 / duration


def bytes_wrong(record: RunRecord, window: Window) -> float:
    """Bytes that differ in all completions of the run, or in the finished steps of a window; and of flows likewise."""
    job = record.scenario.job
    counts = [] if about_flows(record, window.scope) else [_step_bytes_wrong]
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
    done = [one for one in record.completions if window.scope.whom is Whom.ALL or one.host == window.scope.name]
    if not done:
        raise NoData(f"{window.scope.name or 'no rank'} finished {'no' if window.scope.name else 'a'} step")
    return sum(one.bytes_wrong for one in done)


def steps_done(record: RunRecord, window: Window) -> float:
    """Steps that every rank finished, or one; 0 is a number as good as any once the workload ran."""
    if record.start_ns is None:
        raise NoData("the workload did not begin")
    if window.span is not Span.RUN:
        return len(steps_in(record, window))
    one = window.scope.whom is Whom.HOST
    return len(rank_steps(record).get(window.scope.name, []) if one else job_steps(record))


def qp_errors(record: RunRecord, window: Window) -> float:
    """QPs that went to ERROR, counted at each end that saw it; of a pair at either end."""
    inside, mine = moments(record, window), belongs(record, window.scope)
    either = pairs_of(record, window.scope) is not None
    count = sum(
        inside(seen.t_ns) and (mine(seen.host, seen.peer) or (either and mine(seen.peer, seen.host)))
        for seen in record.qp_errors
    )
    if not count:
        final_counters(record, window.scope)
    return count


def evs_retired(record: RunRecord, window: Window) -> float:
    """Times an EV in use became ASSUMED_BAD."""
    return _ev_changes(record, window, lambda change: change.retired)


def evs_restored(record: RunRecord, window: Window) -> float:
    """Times an EV left ASSUMED_BAD for use."""
    return _ev_changes(record, window, lambda change: change.restored)


def _ev_changes(record: RunRecord, window: Window, wanted: Callable[[EvChange], bool]) -> float:
    final_counters(record, window.scope)
    inside, mine = moments(record, window), belongs(record, window.scope)
    return sum(
        wanted(change) and inside(change.t_ns) and mine(change.host, change.peer) for change in record.ev_changes
    )


def unrestored_evs(record: RunRecord, window: Window) -> float:
    """EVs whose last known state is ASSUMED_BAD."""
    final_counters(record, window.scope)
    mine = belongs(record, window.scope)
    last = {
        (one.host, one.peer, one.plane, one.uplink): one.new for one in record.ev_changes if mine(one.host, one.peer)
    }
    return sum(state == ASSUMED_BAD for state in last.values())


def queue_drops(record: RunRecord, window: Window) -> float:
    """Packets that the queues of all ports dropped."""
    if record.queue_drops is None:
        raise NoData("no queue counters were recorded")
    return record.queue_drops


_SPREADS: Mapping[str, Callable[[RunRecord, Window], Sequence[float]]] = {
    "step_time": step_durations,
    "recovery": recovery_times,
    "flow_goodput": flow_goodputs,
    "fair_share": fair_shares,
    "message_time": message_times,
    "latency": latencies,
    "exposure": exposures,
    "lost_per_qp": lost_per_qp,
    "wait_time": wait_times,
    "goodput_back": times_back,
}
_SINGLES: Mapping[str, Callable[[RunRecord, Window], float]] = {
    "qp_errors": qp_errors,
    "bytes_wrong": bytes_wrong,
    "data_on_bad_ev": partial(counted, name="data_on_bad_ev"),
    "steps_done": steps_done,
    "goodput": goodput,
    "balance": balance,
    "packets_lost": packets_lost,
    "retransmissions": partial(counted, name="retransmitted"),
    "timeouts": partial(counted, name="timeouts"),
    "nacks": partial(counted, name="nacks_received"),
    "trims": partial(counted, name="trimmed_received"),
    "ecn_skips": partial(counted, name="evs_skipped"),
    "evs_retired": evs_retired,
    "evs_restored": evs_restored,
    "unrestored_evs": unrestored_evs,
    "queue_drops": queue_drops,
}
