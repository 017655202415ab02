"""Checks figures against a scenario: its faults, its times, its hosts, flows and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from mrc_testbed.testbed.errors import Problem, ScenarioError
from mrc_testbed.testbed.expect import Expectation, Figure, Moment, ScopeKind, Span, Window, did_you_mean
from mrc_testbed.testbed.expect.metrics import known_metrics
from mrc_testbed.testbed.expect.vocabulary import By, Job
from mrc_testbed.testbed.scenario.faults import Occurrence
from mrc_testbed.testbed.scenario.faults.occurrence import by_fault
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.workloads import FlowSet, Workload
from mrc_testbed.testbed.scenario.rules.fault_rules import Occurrences
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.shape import Shape

LATEST_START = 1.5
"""A fault or window may begin up to this many clean durations in: earlier faults make the run longer."""


class Planned(NamedTuple):
    """Planned begin and end of a fault, in ns after the workload's start; `cold`: before the workload."""

    begin_ns: int
    end_ns: int
    cold: bool


@dataclass(frozen=True, slots=True)
class FigureContext:
    """The names and times that figures can refer to, as far as the file is readable.

    `faults`: their names; `all_faults`: there are no others; `planned`: their times, if known. `shape`, `job`: None if
    unknown; `all_workload`: `job` is the whole workload; `estimate_ns`: its duration. `mapped`: somebody looks from
    above, or may do so.
    """

    faults: tuple[str, ...]
    all_faults: bool
    planned: Mapping[str, Planned]
    shape: Shape | None
    job: Workload | None
    all_workload: bool
    estimate_ns: int | None
    mapped: bool = True

    @staticmethod
    def of_file(file: Readable, occurrences: Occurrences, job: Workload | None, shape: Shape | None) -> FigureContext:
        """From a partly readable file."""
        faults = tuple(fault.name for fault in file.faults.values())
        planned = _planned_faults(one for found in occurrences.values() for one in found)
        estimate = job.estimate_ns(shape) if job and shape else None
        whole, mapped = not file.loses("workload"), file.loses("mapper") or file.scenario.mapper is not None
        return FigureContext(faults, not file.loses("faults"), planned, shape, job, whole, estimate, mapped)

    @staticmethod
    def of_scenario(scenario: Scenario) -> FigureContext:
        """From a loaded scenario."""
        planned = _planned_faults(scenario.written_occurrences(scenario.seed))
        faults = tuple(fault.name for fault in scenario.faults)
        mapped = scenario.mapper is not None
        return FigureContext(faults, True, planned, scenario.shape(), scenario.job, True, scenario.estimate_ns, mapped)


@dataclass(frozen=True, slots=True)
class FigureProblem(Problem):
    """A mistake in a figure from outside a file; `file` holds its text."""

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


def require_figure(figure: Figure, context: FigureContext, text: str) -> None:
    """Raises ScenarioError with all mistakes of the figure `text` in this scenario."""
    found = figure_mistakes(figure, context)
    problems = [FigureProblem(text, 1, column + 1, "", message) for column, message in found]
    if problems:
        raise ScenarioError(problems)


def broken_expectations(lines: Mapping[KeyPath, Expectation], context: FigureContext) -> Iterator[Mistake]:
    """The mistakes of all expectations, by the place of their text."""
    for place, line in lines.items():
        # One for a cell by its name may be about what that cell alone has.
        own = replace(context, mapped=True) if line.cells else context
        for column, message in figure_mistakes(line.figure, own):
            yield Mistake(place, message, column=column)


def figure_mistakes(figure: Figure, context: FigureContext) -> Iterator[tuple[int, str]]:
    """Mistakes of a figure in this scenario, each with its column: an unknown fault, an impossible time, a host, flow
    or job outside the workload."""
    if figure.metric.of_mapper and not context.mapped:
        yield 0, f"{figure.metric.name} needs `mapper`; of a run without one `mrc-testbed map RUN` tells what it can"
    yield from _window_mistakes(figure.window, context)
    if context.job and context.shape and context.all_workload:
        yield from _scope_mistakes(figure, context.job, context.shape)


def _planned_faults(occurrences: Iterable[Occurrence]) -> dict[str, Planned]:
    """By name."""
    each = groupby(by_fault(occurrences), key=lambda one: one.fault)
    return {name: _planned_fault(tuple(found)) for name, found in each}


def _planned_fault(occurrences: Sequence[Occurrence]) -> Planned:
    first = min(occurrences, key=lambda occurrence: occurrence.begin_ns)
    return Planned(
        first.begin_ns,
        max(occurrence.end_ns for occurrence in occurrences),
        any(occurrence.cold for occurrence in occurrences),
    )


def _window_mistakes(window: Window, context: FigureContext) -> Iterator[tuple[int, str]]:
    faults = context.faults
    if window.span is Span.FAULTS and context.all_faults and not faults:
        yield window.column, "the scenario declares no faults"
    unknown = [(name, column) for name, column in window.faults if name not in faults]
    for name, column in unknown if context.all_faults else ():
        hint = did_you_mean(name, faults) or f"; declared: {', '.join(faults) or 'none'}"
        yield column, f"there is no fault named {name!r}{hint}"
    if all(name in context.planned for name, _ in window.faults):
        yield from ((window.column, message) for message in _times(window, context))


def _times(window: Window, context: FigureContext) -> Iterator[str]:
    """Mistakes in the planned times of a window."""
    faults, estimate = context.planned, context.estimate_ns
    rtt_ns = context.shape.rtt_ns if context.shape else 0
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
    """Planned time of a moment after the workload's start, with T as the base RTT."""
    if moment is None:
        return None
    fault = faults.get(moment.fault)
    if fault is None:
        return moment.offset.in_ns(rtt_ns)
    return (fault.end_ns if moment.heals else fault.begin_ns) + moment.offset.in_ns(rtt_ns)


def _scope_mistakes(figure: Figure, job: Workload, shape: Shape) -> Iterator[tuple[int, str]]:
    """Metrics that this workload does not have, and unknown hosts, flows and jobs."""
    mine = [kind for kind, there in ((Job.TRAIN, job.jobs), (Job.FLOWS, job.flows)) if there]
    metric = figure.metric
    if metric.job is not None and metric.job not in mine:
        others = [other.name for other in known_metrics().values() if other.job in mine]
        yield 0, f"{metric.name} is only defined for {metric.job.value}; this workload has {', '.join(others)}"
    elif metric.steps_disturb and job.jobs:
        yield 0, f"{metric.name} is not defined while a job of steps shares the ports"
    elif wrong := _wrong_scope(figure, job, shape):
        yield figure.scope.column, wrong
    elif job.flows and not _about_jobs(figure, job) and (wrong := _wrong_flows(figure, job, job.flows)):
        yield 0, wrong


def _about_jobs(figure: Figure, job: Workload) -> bool:
    """Whether its scope is a job of steps, or each of them."""
    scope = figure.scope
    return scope.kind is ScopeKind.EACH_JOB or (scope.kind is ScopeKind.GROUP and bool(job.job_named(scope.name)))


_FLOWS = {
    "greedy": "flows that send without a pause",
    "latency": "`latency` entries",
    "trace": "flows that arrive over time, as of `trace`",
}
"""What has the figures of each kind of flows."""


def _wrong_flows(figure: Figure, job: Workload, flows: FlowSet) -> str:
    """Why the chosen flows have no such figure, else empty."""
    scope, metric = figure.scope, figure.metric
    by_name = scope.kind in (ScopeKind.PAIR, ScopeKind.GROUP)
    if metric.job is not Job.FLOWS and not (metric.flows and (by_name or not job.jobs)):
        return ""
    chosen = flows.named(scope.name) if by_name else flows.flows
    fitting = [flow for flow in chosen if flow.measures == (metric.flows or "latency")]
    if not fitting:
        return f"{metric.name} is only defined for {_FLOWS[metric.flows or 'latency']}"
    alone = len(fitting) == 1 or scope.kind is ScopeKind.EACH_FLOW
    return f"{metric.name} needs at least two flows, and this is one" if metric.of_several and alone else ""


def _wrong_scope(figure: Figure, job: Workload, shape: Shape) -> str:
    """Why the name does not exist, else empty."""
    scope, metric = figure.scope, figure.metric
    if scope.kind is ScopeKind.HOST:
        return _wrong_host(figure, job, shape)
    if _about_jobs(figure, job):
        return _wrong_job(figure, job)
    if scope.kind not in (ScopeKind.PAIR, ScopeKind.GROUP, ScopeKind.EACH_FLOW):
        return ""
    flow_names = job.flows.names if job.flows else ()
    if scope.kind is ScopeKind.GROUP and not metric.by & (By.PAIR | By.FLOW):
        return _unknown("is no job named", scope.name, (one.name for one in job.jobs))
    if scope.kind is ScopeKind.PAIR and By.PAIR in metric.by:
        # A receiver waits for its sender.
        pairs = (pair[::-1] if metric.of_receivers else pair for pair in job.pairs(shape))
        known = list(dict.fromkeys(f"{src}->{dst}" for src, dst in pairs))
        return "" if scope.name in known else _unknown("are no data", scope.name, known)
    if not flow_names:
        if scope.kind is ScopeKind.GROUP and By.JOB in metric.by:
            return _unknown("is no job named", scope.name, (one.name for one in job.jobs))
        return "a job of steps has no flows to choose from" + (", only hosts" if By.HOST in metric.by else "")
    if not scope.name or scope.name in flow_names:
        return ""
    jobs = [one.name for one in job.jobs] if By.JOB in metric.by else []
    return _unknown("are no flows or jobs named" if jobs else "are no flows named", scope.name, [*flow_names, *jobs])


def _wrong_job(figure: Figure, job: Workload) -> str:
    if not job.jobs:
        return "this workload has no job of steps"
    if By.JOB in figure.metric.by:
        return ""
    others = [
        word for by, word in ((By.HOST, "a host"), (By.FLOW, "flows"), (By.PAIR, "a pair")) if by in figure.metric.by
    ]
    return f"{figure.metric.name} is not known of a job of steps; name {' or '.join(others)}"


def _wrong_host(figure: Figure, job: Workload, shape: Shape) -> str:
    name, metric = figure.scope.name, figure.metric
    ranks = job.ranks(shape)
    known = ranks if metric.job is Job.TRAIN else job.host_names(shape)
    if name not in known:
        return _unknown("is no host named", name, known) + " in the workload"
    receives = name in ranks or (job.flows and any(sink == name for _, sink in job.flows.pairs(shape)))
    return "" if receives or By.FLOW not in metric.by else f"{name} receives nothing in this workload"


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    known = list(known)
    hint = did_you_mean(name, known) or f"; there are {', '.join(known[:8])}"
    return f"there {what} {name!r}{hint}"
