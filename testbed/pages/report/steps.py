"""Step times of each job over time, and who and what made the slowest ones slow, as far as the files say. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import path_links, recoveries
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.checks.scope import scope_of
from mrc_testbed.testbed.checks.steps import JobStep, last_to_end, ranked_by_end, step_durations, steps_by_job, steps_in
from mrc_testbed.testbed.checks.windows import NoData, aftermath_ns, outages
from mrc_testbed.testbed.expect import Span, Window
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.pages.report.clock import Clock
from mrc_testbed.testbed.scenario.model.jobs import NamedJob
from mrc_testbed.topos.units import some

MOST_BARS = 3000
"""Of more steps, only the slowest of each few is drawn."""
SLOWEST_TOLD = 3
_MOST_NAMES = 4

Pair = tuple[str, str]


def step_charts(record: RunRecord, clock: Clock) -> list[dict[str, Any]]:
    """A chart for each job that finished a step. `job`: its name, empty where it is the only one; by step its `number`,
    `t`, `s` (when it ended and how long it took, in s) and `last` (who ended last). `of`: each is the slowest of this
    number of steps."""
    several = len(record.scenario.jobs) > 1
    return [
        {"job": job if several else "", **_chart(record, clock, job, steps)}
        for job, steps in steps_by_job(record).items()
        if steps
    ]


def _chart(record: RunRecord, clock: Clock, job: str, steps: list[JobStep]) -> dict[str, Any]:
    size = -(-len(steps) // MOST_BARS)
    shown = [max(steps[at : at + size], key=_duration) for at in range(0, len(steps), size)]
    clean = clean_median_ns(record, job)
    return {
        "number": [step.index for step in shown],
        "t": [clock.at(step.end_ns) for step in shown],
        "s": [_seconds(step.duration_ns) for step in shown],
        "last": [last_to_end(record, step).host for step in shown],
        "of": size,
        "median": None if clean is None else _seconds(clean),
        "p100": _seconds(max(map(_duration, steps))),
    }


def _seconds(ns: float) -> float:
    """To the nanosecond: what is rounded once more where it is shown must not be rounded before."""
    return round(ns / 1e9, 9)


def _duration(step: JobStep) -> int:
    return step.duration_ns


def clean_median_ns(record: RunRecord, job: str) -> float | None:
    """Of the steps of a job outside all faults; None where there is none."""
    try:
        return statistics.median(step_durations(record, Window(Span.CLEAN, scope=scope_of(job))))
    except NoData:
        return None


def slowest_steps(record: RunRecord) -> list[dict[str, str]]:
    """The slowest steps of each job in words, the worst first."""
    return [_step_row(record, step) for job in record.scenario.jobs for step in _slowest(record, job.name)]


def _slowest(record: RunRecord, job: str) -> list[JobStep]:
    return sorted(steps_by_job(record)[job], key=_duration, reverse=True)[:SLOWEST_TOLD]


def _step_row(record: RunRecord, step: JobStep) -> dict[str, str]:
    clean = clean_median_ns(record, step.job)
    return {
        "step": step_name(record, step),
        "time": amount(Dimension.TIME, step.duration_ns),
        "ratio": f"{step.duration_ns / clean:.2f}" if clean else "?",
        "last": _last_words(record, step),
        "waited": _waited_words(record, step),
        "faults": _fault_words(record, step),
        "retired": _retired_words(record, step),
    }


def step_name(record: RunRecord, step: JobStep) -> str:
    """Its number, and where there are several jobs whose step it is."""
    return f"{step.index} of {step.job}" if len(record.scenario.jobs) > 1 else str(step.index)


def _last_words(record: RunRecord, step: JobStep) -> str:
    ranked = ranked_by_end(record, step)
    if len(ranked) < 2:
        return ranked[-1].host
    ahead = amount(Dimension.TIME, ranked[-1].end_ns - ranked[-2].end_ns)
    return f"{ranked[-1].host}, {ahead} after {ranked[-2].host}"


def _waited_words(record: RunRecord, step: JobStep) -> str:
    """Against what is usual between the same two: in a ring all wait nearly all the time, for their neighbour."""
    usual = _usual_waits(record)[step.job]
    over = {pair: ns - usual[pair] for pair, ns in _waits(record).get(step.index, {}).items() if pair in usual}
    if not over:
        return "not known" if not record.waits else "nothing to compare with"
    (host, peer), longest = max(over.items(), key=lambda item: item[1])
    if longest <= 0:
        return "nobody longer than usual"
    return f"{host} for {peer}, {amount(Dimension.TIME, longest)} longer than usual"


@derived
def _waits(record: RunRecord) -> dict[int, dict[Pair, int]]:
    """By step, rank and the peer that it waited for."""
    found: dict[int, dict[Pair, int]] = {}
    for wait in record.waits:
        pairs = found.setdefault(wait.step, {})
        pairs[wait.host, wait.peer] = pairs.get((wait.host, wait.peer), 0) + wait.wait_ns
    return found


@derived
def _usual_waits(record: RunRecord) -> dict[str, dict[Pair, float]]:
    """By job the median of the clean steps, a step without waiting being 0."""
    return {job.name: _usual_in(record, job) for job in record.scenario.jobs}


def _usual_in(record: RunRecord, job: NamedJob) -> dict[Pair, float]:
    try:
        clean = [step.index for step in steps_in(record, Window(Span.CLEAN, scope=scope_of(job.name)))]
    except NoData:
        return {}
    hosts = job.host_names(record.scenario.shape())
    pairs = {pair for waits in _waits(record).values() for pair in waits if pair[0] in hosts}
    return {pair: statistics.median(_waits(record).get(step, {}).get(pair, 0) for step in clean) for pair in pairs}


def faults_during(record: RunRecord, step: JobStep) -> list[str]:
    """Names of the faults in whose window it was, even by a moment."""
    after = aftermath_ns(record)
    windows = ((outage.fault, outage.window(after)) for outage in outages(record))
    return list(dict.fromkeys(name for name, on in windows if on.begin <= step.end_ns and on.end >= step.begin_ns))


def _fault_words(record: RunRecord, step: JobStep) -> str:
    return some(faults_during(record, step), _MOST_NAMES) or "no fault was on"


def _retired_words(record: RunRecord, step: JobStep) -> str:
    """How many EVs were retired in it, by fault, and the links that their paths share with it; nothing
    of hosts that have none."""
    if not record.scenario.transport.has_paths:
        return ""
    inside = [one for one in recoveries(record) if step.begin_ns <= one.change.t_ns <= step.end_ns]
    if not inside:
        return "none"
    counted = ", ".join(f"{count} by {fault}" for fault, count in Counter(one.fault for one in inside).items())
    broken = {(outage.fault, outage.number): outage.links for outage in outages(record)}
    links = dict.fromkeys(
        link for one in inside for link in path_links(record, one.change) if link in broken[one.fault, one.number]
    )
    return f"{counted} ({some(list(links), _MOST_NAMES)})"


def worst_words(record: RunRecord) -> Iterator[str]:
    """Sentences about the slowest step of each job. What the files do not say is not said."""
    for job in record.scenario.jobs:
        for worst in _slowest(record, job.name)[:1]:
            yield from _sentences(_step_row(record, worst))


def _sentences(worst: dict[str, str]) -> Iterator[str]:
    ratio = f", {worst['ratio']} times the clean median" if worst["ratio"] != "?" else ""
    yield f"Step {worst['step']} was the slowest: {worst['time']}{ratio}."
    yield f"Last to end: {worst['last']}."
    yield f"Waited most beyond what is usual: {worst['waited']}."
    faults, retired = worst["faults"], worst["retired"]
    if faults == "no fault was on":
        yield "No fault was on."
    else:
        gone = f"; EVs retired in it: {retired}" if retired else ""
        yield f"On during it: {faults}{gone}."
