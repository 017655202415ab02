"""Run record -> the figures in expectations. Pure; raises NoData if the record lacks the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite, nan

import mrc_testbed.testbed.checks.endings
import mrc_testbed.testbed.checks.fair_times
import mrc_testbed.testbed.checks.flow_times
import mrc_testbed.testbed.checks.goodput_series
import mrc_testbed.testbed.checks.link_loads
import mrc_testbed.testbed.checks.mapping
import mrc_testbed.testbed.checks.outage
import mrc_testbed.testbed.checks.reordering
import mrc_testbed.testbed.checks.routes  # noqa: F401 (they compute metrics)
from mrc_testbed.testbed.checks.computation import COMPUTATIONS, Computation, computes
from mrc_testbed.testbed.checks.counting import counted, final_counters
from mrc_testbed.testbed.checks.flows import flow_bytes_wrong, flows_goodput
from mrc_testbed.testbed.checks.intervals import TimeSet
from mrc_testbed.testbed.checks.programs import printed_values
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import Recovery, paths_out_at_end, recoveries
from mrc_testbed.testbed.checks.scope import about_flows, belongs, ends_in, hosts_of, pairs_of
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.checks.steps import STOPPED_STEP, JobStep, steps_in, steps_of, stopped_steps
from mrc_testbed.testbed.checks.windows import KnownBetween, NoData, NoPart, NotApplicable, moments
from mrc_testbed.testbed.evidence.events import EvChange
from mrc_testbed.testbed.expect import Figure, Scope, Span, Window
from mrc_testbed.testbed.expect.metrics import PROGRAM
from mrc_testbed.testbed.scenario.model.offered import PluginStuck


def measure(record: RunRecord, figure: Figure) -> float:
    """A figure in its base unit (a number, bytes, ns or bytes per second). Raises NoData with the reason, NotApplicable
    if the transport has no such figure."""
    metric, transport = figure.metric, record.scenario.transport
    if not metric.known_with(transport.known):
        raise NotApplicable(f"{transport} has no {metric.name}")
    if metric.counter:
        return counted(record, figure.window, metric.counter)
    found: float | Sequence[float]
    if metric.name.startswith(PROGRAM):
        found = printed_values(record, figure.window, metric.name, figure.stat)
    elif metric.compute:
        found = _by_plugin(record, figure, metric.compute)
    else:
        found = COMPUTATIONS[metric.name](record, figure.window)
    return found if isinstance(found, int | float) else statistic(found, figure.stat or "p100")


def _by_plugin(record: RunRecord, figure: Figure, compute: Computation) -> float | Sequence[float]:
    """An exception or an invalid result of a plugin makes the figure unknown, with the reason."""
    metric = figure.metric
    try:
        with record.scenario.offered.limited():
            found = compute(record, figure.window)
    except NoData:
        raise
    except PluginStuck as error:
        raise NoData(str(error)) from error
    except Exception as error:
        blamed = record.scenario.offered.blame(error)
        raise NoData(f"plugin {blamed[1] if blamed else f'{type(error).__name__}: {error}'}") from error
    values = [found] if isinstance(found, int | float) else list(found) if isinstance(found, Sequence) else [nan]
    numbers = all(isinstance(one, int | float) and isfinite(one) for one in values)
    if isinstance(found, Sequence) is not bool(metric.stats) or not numbers:
        wanted = "a list of numbers" if metric.stats else "a number"
        raise NoData(f"plugin {metric.name}: must return {wanted}, not {str(found)[:40]}")
    if not values:
        raise NoData(f"plugin {metric.name}: returned no values")
    return found


@computes("recovery")
def recovery_times(record: RunRecord, window: Window) -> Sequence[float]:
    """Recovery times, in ns, of the EVs that one fault, or any fault, retired."""
    return [one.duration_ns for one in _retired(record, window)]


@computes("exposure")
def exposures(record: RunRecord, window: Window) -> Sequence[float]:
    """Exposures of the same EVs, in ns: how long data packets were sent on them after the injection."""
    return [one.exposure_ns for one in _retired(record, window)]


def _retired(record: RunRecord, window: Window) -> list[Recovery]:
    mine = belongs(record, window.scope)
    caused = [one for one in recoveries(record) if window.fault in ("", one.fault)]
    found = [one for one in caused if mine(one.change.host, one.change.peer)]
    if not found:
        raise NoPart(" ".join(f"no EV {window.scope} was retired by {window.fault or 'a fault'}".split()))
    return found


@computes("goodput")
def goodput(record: RunRecord, window: Window) -> float:
    """Bytes of the finished steps of a window over the time in which any of them lasted, in bytes per second; without a
    job of steps the same of flows. Of several jobs in a part of the run the sum of each: their steps end apart, so the
    time of a long one would have too few of the others. Raises KnownBetween where the testbed stopped a step."""
    if about_flows(record, window.scope):
        return flows_goodput(record, window)
    steps = steps_in(record, window)
    if stopped_steps(record, window):
        raise KnownBetween(STOPPED_STEP, [0.0], [inf])
    if window.span is Span.RUN:
        return _rate(steps)
    jobs = dict.fromkeys(step.job for step in steps)
    return sum(_rate([step for step in steps if step.job == job]) for job in jobs)


def _rate(steps: Sequence[JobStep]) -> float:
    duration = TimeSet(step.interval for step in steps).length_ns
    if duration <= 0:
        raise NoData("the steps took no time")
    return sum(step.bytes for step in steps) * 1e9 / duration


@computes("bytes_wrong")
def bytes_wrong(record: RunRecord, window: Window) -> float:
    """Bytes that differ in all completions of the run, or in the finished steps of a window; plus those of flows."""
    job = record.scenario.job
    counts = [] if about_flows(record, window.scope) else [_step_bytes_wrong]
    counts += [flow_bytes_wrong] if job.flows and not job.job_named(window.scope.name) else []
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
    hosts = hosts_of(record, window.scope)
    done = [one for one in record.completions if one.host in hosts]
    if not done:
        raise NoData(f"{window.scope.name or 'no rank'} finished {'no' if window.scope.name else 'a'} step")
    return sum(one.bytes_wrong for one in done)


@computes("steps_done")
def steps_done(record: RunRecord, window: Window) -> float:
    """Steps that every rank of a job, or one rank, finished; of several jobs all of them. 0 is valid once the workload
    ran."""
    if record.start_ns is None:
        raise NoData("the workload did not begin")
    if window.span is not Span.RUN:
        return len(steps_in(record, window))
    done, more = len(steps_of(record, window.scope)), _not_known(record, window.scope)
    if more:
        raise KnownBetween("the testbed stopped the job before its end", [done], [done + more])
    return done


def _not_known(record: RunRecord, scope: Scope) -> int:
    """How many steps more jobs that the testbed stopped might have done."""
    stopped = {end.name for end in ends_in(record, scope) if end.unfinished is None}
    wanted = {job.name: job.entry.step_count for job in record.scenario.jobs if job.name in stopped}
    return sum(wanted.values()) - len([step for step in steps_of(record, scope) if step.job in wanted])


@computes("qp_errors")
def qp_errors(record: RunRecord, window: Window) -> float:
    """QPs that went to ERROR, counted at each end that saw it; for a pair at either end."""
    inside, mine = moments(record, window), belongs(record, window.scope)
    either = pairs_of(record, window.scope) is not None
    count = sum(
        inside(seen.t_ns) and (mine(seen.host, seen.peer) or (either and mine(seen.peer, seen.host)))
        for seen in record.qp_errors
    )
    if not count:
        final_counters(record, window.scope)
    return count


@computes("evs_retired")
def evs_retired(record: RunRecord, window: Window) -> float:
    """Times an EV in use became ASSUMED_BAD."""
    return _ev_changes(record, window, lambda change: change.retired)


@computes("evs_restored")
def evs_restored(record: RunRecord, window: Window) -> float:
    """Times an EV left ASSUMED_BAD for use."""
    return _ev_changes(record, window, lambda change: change.restored)


def _ev_changes(record: RunRecord, window: Window, wanted: Callable[[EvChange], bool]) -> float:
    final_counters(record, window.scope)
    inside, mine = moments(record, window), belongs(record, window.scope)
    return sum(
        wanted(change) and inside(change.t_ns) and mine(change.host, change.peer) for change in record.ev_changes
    )


@computes("unrestored_evs")
def unrestored_evs(record: RunRecord, window: Window) -> float:
    """EVs whose last known state is ASSUMED_BAD."""
    final_counters(record, window.scope)
    mine = belongs(record, window.scope)
    return sum(mine(host, peer) for host, peer, *_ in paths_out_at_end(record))


@computes("marks")
def marks(record: RunRecord, window: Window) -> float:
    """Packets that switches marked with ECN, of every class."""
    if record.books is None:
        raise NoData("no switch port counted what it marked")
    return sum(port.get(name, 0) for port in record.books.ports.values() for name in ("out_marked", "out_other_marked"))


@computes("pauses")
def pauses(record: RunRecord, window: Window) -> float:
    """Times that ports were paused; none where no port can be."""
    return sum(one.pauses for one in record.paused_ports)


@computes("paused")
def paused(record: RunRecord, window: Window) -> list[float]:
    """For how long each port was paused."""
    return [one.paused_ns for one in record.paused_ports] or [0]


@computes("queue_drops")
def queue_drops(record: RunRecord, window: Window) -> float:
    """Packets that the queues of all ports dropped."""
    if record.queue_drops is None:
        raise NoData("no queue counters were recorded")
    return record.queue_drops
