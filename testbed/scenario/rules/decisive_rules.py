"""Expectations that decide nothing, because no value of their metric could fail or hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from mrc_testbed.testbed.expect import Expectation, OfClean, ScopeKind
from mrc_testbed.testbed.expect.scanner import plain
from mrc_testbed.testbed.scenario.model.workloads import Workload
from mrc_testbed.testbed.scenario.rules.expect_rules import FigureContext
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.topos.shape import Shape


def undecided_expectations(lines: Mapping[KeyPath, Expectation], context: FigureContext) -> Iterator[Mistake]:
    """A mistake for each bound that always or never holds, at the bound."""
    for place, line in lines.items():
        if wrong := _undecided(line, context):
            yield Mistake(place, wrong, column=line.bound_column)


def _undecided(line: Expectation, context: FigureContext) -> str:
    bound = _bound(line)
    if bound is None:
        return ""
    least, most = _range(line, context)
    always, never = _sides(line.op, bound, least, most)
    if not (always or never):
        return ""
    known = " and ".join([f"at least {plain(least)}"] * (least > -inf) + [f"at most {plain(most)}"] * (most < inf))
    word = "always" if always else "never"
    return f"{word} holds, so it decides nothing: {line.figure.subject} is {known}; give a bound that can fail and hold"


def _bound(line: Expectation) -> float | None:
    """The bound where it can be compared with a range: one without a unit, or 0, which is 0 in any."""
    number = line.bound.factor if isinstance(line.bound, OfClean) else line.bound.number
    relative = isinstance(line.bound, OfClean) or bool(line.bound.unit)
    return None if relative and number else number


def _range(line: Expectation, context: FigureContext) -> tuple[float, float]:
    """The smallest and the greatest value that the figure can have in this scenario."""
    least, most = line.metric.range_of(line.stat)
    job, shape = context.job, context.shape
    if job and shape and context.all_workload:
        counts = [most, *_counts(line, job, shape)]
        most = min(counts)
    return least, most


def _counts(line: Expectation, job: Workload, shape: Shape) -> Iterator[int]:
    """How many there are of what the metric counts."""
    scope = line.figure.scope
    jobs = [one for one in job.jobs if scope.kind is not ScopeKind.GROUP or one.name == scope.name]
    if line.metric.name == "unfinished" and scope.kind in (ScopeKind.ALL, ScopeKind.GROUP, ScopeKind.EACH_JOB):
        ranks = [len(one.host_names(shape)) for one in jobs]
        flows = job.flows.named(scope.name) if job.flows and scope.name else job.flows.flows if job.flows else ()
        yield max(ranks, default=0) if scope.each else sum(ranks) + len(flows)
    if line.metric.name == "steps_done" and jobs:
        yield sum(one.entry.step_count for one in jobs)


def _sides(op: str, bound: float, least: float, most: float) -> tuple[bool, bool]:
    """Whether every value of the range is inside the bound, and whether none is."""
    return {
        ">=": (least >= bound, most < bound),
        ">": (least > bound, most <= bound),
        "<=": (most <= bound, least > bound),
        "<": (most < bound, least >= bound),
        "==": (least == most == bound, not least <= bound <= most),
        "!=": (not least <= bound <= most, least == most == bound),
    }[op]
