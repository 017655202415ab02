"""What an expectation may say of this scenario: its faults, its times, its hosts and flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from testbed.checks.expect import Expectation, Moment, Span, Whom, did_you_mean
from testbed.checks.vocabulary import METRICS, By, Job
from testbed.scenario.expectations import place_of
from testbed.scenario.fault_rules import Cycles
from testbed.scenario.faults import Occurrence
from testbed.scenario.parts import Parts
from testbed.scenario.units import format_duration
from testbed.scenario.wording import Mistake
from testbed.scenario.workloads import FlowSet, Workload
from topos.plan import Plan
from topos.shape import Shape

LATEST_START = 1.5
"""A fault or window may begin up to this many clean durations in: faults before it make the run longer."""
SHARES = ("fair_share", "balance")
"""Metrics that nothing is known of while a job of steps takes what it needs of the same ports."""


class Planned(NamedTuple):
    """When a fault is to begin and to be over, in ns after the workload's start; `cold`: it is there before."""

    begin_ns: int
    end_ns: int
    cold: bool


def _planned_fault(cycles: Sequence[Occurrence]) -> Planned:
    first = min(cycles, key=lambda cycle: cycle.begin_ns)
    return Planned(first.begin_ns, max(cycle.end_ns for cycle in cycles), any(cycle.cold for cycle in cycles))


def broken_windows(parts: Parts, cycles: Cycles, job: Workload | None, shape: Shape | None) -> Iterator[Mistake]:
    """Faults that are not there, and times at which there is nothing to judge."""
    faults = [fault.name for fault in parts.faults.values()]
    planned = {parts.faults[index].name: _planned_fault(found) for index, found in cycles.items() if found}
    estimate = job.estimate_ns(shape) if job and shape else None
    rtt_ns = shape.rtt_ns if shape else 0
    for index, line in parts.expectations.items():
        where, window = place_of(index, line), line.window
        if window.span is Span.FAULTS and parts.all_faults and not faults:
            yield Mistake(where, "the scenario declares no faults", column=window.column)
        unknown = [(name, column) for name, column in window.faults if name not in faults]
        for name, column in unknown if parts.all_faults else ():
            hint = did_you_mean(name, faults) or f"; declared: {', '.join(faults) or 'none'}"
            yield Mistake(where, f"there is no fault named {name!r}{hint}", column=column)
        if all(name in planned for name, _ in window.faults):
            for message in _times(line, planned, rtt_ns, estimate):
                yield Mistake(where, message, column=window.column)


def _times(line: Expectation, faults: Mapping[str, Planned], rtt_ns: int, estimate: int | None) -> Iterator[str]:
    """What is wrong with the times of a window as they are planned."""
    window = line.window
    early = [
        at.fault for at in (window.begin, window.end) if at and at.fault and not at.heals and faults[at.fault].cold
    ]
    if early:
        yield f"{early[0]} is injected before the workload begins; write a time, such as 0s"
        return
    begin = _planned(window.begin, faults, rtt_ns)
    end = _planned(window.end, faults, rtt_ns)
    if begin is not None and begin < 0:
        yield f"begins {format_duration(round(-begin))} before the workload"
    if end is not None and end <= max(begin or 0, 0):
        yield f"ends at {format_duration(max(round(end), 0))}, before it begins"
    for word, time in (("begins", begin), ("ends", end)):
        if time is not None and estimate is not None and time > LATEST_START * estimate:
            yield f"{word} at {format_duration(round(time))}, but the workload takes about {estimate / 1e9:.1f}s in all"
            return


def _planned(moment: Moment | None, faults: Mapping[str, Planned], rtt_ns: int) -> float | None:
    """When it is to come, after the workload's start, with T for the base RTT."""
    if moment is None:
        return None
    fault = faults.get(moment.fault)
    if fault is None:
        return moment.offset.in_ns(rtt_ns)
    return (fault.end_ns if moment.heals else fault.begin_ns) + moment.offset.in_ns(rtt_ns)


def broken_scopes(lines: Mapping[int, Expectation], job: Workload, plan: Plan) -> Iterator[Mistake]:
    """Metrics that this workload does not have, and hosts and flows that are not among it."""
    mine = [kind for kind, there in ((Job.TRAIN, job.steps), (Job.FLOWS, job.flows)) if there]
    for index, line in lines.items():
        where, metric = place_of(index, line), line.metric
        if metric.job is not None and metric.job not in mine:
            others = [other.name for other in METRICS.values() if other.job in mine]
            text = f"{metric.name} is only defined for {metric.job.value}"
            yield Mistake(where, f"{text}; this workload has {', '.join(others)}")
        elif metric.name in SHARES and job.steps:
            yield Mistake(where, f"{metric.name} is not defined while a job of steps shares the ports")
        elif wrong := _wrong_scope(line, job, plan.shape):
            yield Mistake(where, wrong, column=line.window.scope.column)
        elif job.flows and (wrong := _wrong_flows(line, job, job.flows)):
            yield Mistake(where, wrong)


def _wrong_flows(line: Expectation, job: Workload, flows: FlowSet) -> str:
    """Why the flows that were chosen have no such figure, empty when they do."""
    scope, metric = line.window.scope, line.metric
    by_name = scope.whom in (Whom.PAIR, Whom.GROUP)
    if metric.job is not Job.FLOWS and not (metric.flows and (by_name or not job.steps)):
        return ""
    kind = metric.flows
    chosen = flows.named(scope.name) if by_name else flows.flows
    fitting = [flow for flow in chosen if flow.greedy is (kind == "greedy")]
    if not fitting:
        lacking = "`latency` entries" if kind == "latency" else "flows that send without a pause"
        return f"{metric.name} is only defined for {lacking}"
    alone = len(fitting) == 1 or scope.whom is Whom.EACH_FLOW
    return "balance needs at least two flows, and this is one" if metric.name == "balance" and alone else ""


def _wrong_scope(line: Expectation, job: Workload, shape: Shape) -> str:
    """Why there is nothing of that name, empty when there is."""
    scope, metric = line.window.scope, line.metric
    if scope.whom is Whom.HOST:
        return _wrong_host(line, job, shape)
    if scope.whom not in (Whom.PAIR, Whom.GROUP, Whom.EACH_FLOW):
        return ""
    flow_names = job.flows.names if job.flows else ()
    if scope.whom is Whom.PAIR and By.PAIR in metric.by:
        # Whoever waits, waits for the one who writes to it.
        pairs = (pair[::-1] if metric.name == "wait_time" else pair for pair in job.pairs(shape))
        known = list(dict.fromkeys(f"{src}->{dst}" for src, dst in pairs))
        return "" if scope.name in known else _unknown("are no data", scope.name, known)
    if not flow_names:
        return "a job of steps has no flows to choose from" + (", only hosts" if By.HOST in metric.by else "")
    return "" if not scope.name or scope.name in flow_names else _unknown("are no flows named", scope.name, flow_names)


def _wrong_host(line: Expectation, job: Workload, shape: Shape) -> str:
    name, metric = line.window.scope.name, line.metric
    ranks = job.steps.host_names(shape) if job.steps else ()
    known = ranks if metric.job is Job.TRAIN else job.host_names(shape)
    if name not in known:
        return _unknown("is no host named", name, known) + " in the workload"
    receives = name in ranks or (job.flows and any(sink == name for _, sink in job.flows.pairs(shape)))
    return "" if receives or By.FLOW not in metric.by else f"{name} receives nothing in this workload"


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    known = list(known)
    hint = did_you_mean(name, known) or f"; there are {', '.join(known[:8])}"
    return f"there {what} {name!r}{hint}"
