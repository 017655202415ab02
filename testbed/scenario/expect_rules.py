"""What an expectation may say of this scenario: its faults, its times, its hosts and flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from testbed.checks.expect import Expectation, Moment, Span, Whom, did_you_mean
from testbed.checks.vocabulary import METRICS, By, Job
from testbed.scenario.expectations import place_of
from testbed.scenario.faults import Fault
from testbed.scenario.parts import Parts
from testbed.scenario.units import format_duration
from testbed.scenario.wording import Mistake
from testbed.scenario.workloads import FlowSet, Train
from topos.names import host_name
from topos.plan import Plan
from topos.shape import Shape

LATEST_START = 1.5
"""A fault or window may begin up to this many clean durations in: faults before it make the run longer."""


def broken_windows(parts: Parts, job: Train | FlowSet | None, shape: Shape | None) -> Iterator[Mistake]:
    """Faults that are not there, and times at which there is nothing to judge."""
    faults = {fault.name: fault for fault in parts.faults.values()}
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
        if not unknown:
            for message in _times(line, faults, rtt_ns, estimate):
                yield Mistake(where, message, column=window.column)


def _times(line: Expectation, faults: Mapping[str, Fault], rtt_ns: int, estimate: int | None) -> Iterator[str]:
    """What is wrong with the times of a window as they are planned."""
    window = line.window
    early = [
        at.fault for at in (window.begin, window.end) if at and at.fault and not at.heals and faults[at.fault].at.cold
    ]
    if early:
        yield f"{early[0]} is there before the workload begins; write a time since then, such as 0s"
        return
    begin = _planned(window.begin, faults, rtt_ns)
    end = _planned(window.end, faults, rtt_ns)
    if begin is not None and begin < 0:
        yield f"begins {format_duration(round(-begin))} before the workload"
    if end is not None and end <= max(begin or 0, 0):
        yield f"ends at {format_duration(max(round(end), 0))}, and that is before it begins"
    for word, time in (("begins", begin), ("ends", end)):
        if time is not None and estimate is not None and time > LATEST_START * estimate:
            yield f"{word} at {format_duration(round(time))}, but the workload takes about {estimate / 1e9:.1f}s in all"
            return


def _planned(moment: Moment | None, faults: Mapping[str, Fault], rtt_ns: int) -> float | None:
    """When it is to come, after the workload's start, with T for the base RTT."""
    if moment is None:
        return None
    fault = faults.get(moment.fault)
    if fault is None:
        return moment.offset.in_ns(rtt_ns)
    return (fault.end_ns if moment.heals else fault.at_ns) + moment.offset.in_ns(rtt_ns)


def broken_scopes(lines: Mapping[int, Expectation], job: Train | FlowSet, plan: Plan) -> Iterator[Mistake]:
    """Metrics that this kind of workload does not have, and hosts and flows that are not among it."""
    mine = Job.TRAIN if isinstance(job, Train) else Job.FLOWS
    for index, line in lines.items():
        where = place_of(index, line)
        if line.metric.job not in (None, mine):
            others = [metric.name for metric in METRICS.values() if metric.job is mine]
            text = f"{line.metric.name} is known of {line.metric.job.value} only"
            yield Mistake(where, f"{text}; this workload has {', '.join(others)}")
        elif line.metric.name == "balance" and _alone(line, job):
            yield Mistake(where, "balance compares flows with each other, and this is one flow")
        else:
            wrong = _wrong_scope(line, job, plan)
            if wrong:
                yield Mistake(where, wrong, column=line.window.scope.column)


def _alone(line: Expectation, job: Train | FlowSet) -> bool:
    scope = line.window.scope
    if isinstance(job, Train) or scope.whom is Whom.EACH_FLOW:
        return not isinstance(job, Train)
    return len(job.named(scope.name) if scope.name else job.flows) == 1


def _wrong_scope(line: Expectation, job: Train | FlowSet, plan: Plan) -> str:
    """Why there is nothing of that name, empty when there is."""
    scope, metric = line.window.scope, line.metric
    if scope.whom is Whom.HOST:
        return _wrong_host(line, job, plan)
    if scope.whom not in (Whom.PAIR, Whom.GROUP, Whom.EACH_FLOW):
        return ""
    if isinstance(job, FlowSet):
        return _unknown("are no flows named", scope.name, job.names) if scope.name and not job.named(scope.name) else ""
    if scope.whom is not Whom.PAIR or By.PAIR not in metric.by:
        return "a training job has no flows to choose from" + (", only hosts" if By.HOST in metric.by else "")
    ends = [(host_name(qp.src), host_name(qp.dst)) for qp in job.plan_job(plan).qps]
    # Whoever waits, waits for the one who writes to it.
    pairs = [f"{dst}->{src}" if metric.name == "wait_time" else f"{src}->{dst}" for src, dst in ends]
    return "" if scope.name in pairs else _unknown("are no data", scope.name, pairs)


def _wrong_host(line: Expectation, job: Train | FlowSet, plan: Plan) -> str:
    name = line.window.scope.name
    known = job.host_names(plan.shape)
    if name not in known:
        return _unknown("is no host named", name, known) + " in the workload"
    receives = isinstance(job, Train) or any(flow.name.endswith(f"->{name}") for flow in job.flows)
    return "" if receives or By.FLOW not in line.metric.by else f"{name} receives nothing in this workload"


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    known = list(known)
    hint = did_you_mean(name, known) or f"; there are {', '.join(known[:8])}"
    return f"there {what} {name!r}{hint}"
