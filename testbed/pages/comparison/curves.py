"""Step times, or goodput, of the runs over time, for one chart in which they lie over each other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import MBPS
from mrc_testbed.testbed.checks.steps import JobStep, steps_by_job
from mrc_testbed.testbed.checks.windows import outages
from mrc_testbed.testbed.compare.comparison import Comparison, ComparisonColumn
from mrc_testbed.testbed.compare.runs import ComparedRun

MOST_LINES = 8
"""More cannot be told apart; then one run of each group is drawn."""
_COLOURS = 7
_DASHES = ("", "6 3", "2 3")
_GRAIN_NS = 100_000_000


def curves(comparison: Comparison) -> dict[str, Any] | None:
    """What `Testbed.lineChart` takes, and `end` (s), `about` and `faults_of`; None where no run has any."""
    shown = _shown(comparison)
    if not all(run.has_record for run in (comparison.columns[comparison.base].runs[0], *(run for _, run, _ in shown))):
        return None
    steps = any(run.record.scenario.jobs for _, run, _ in shown)
    series = [
        {"name": f"{name} {job}".rstrip(), **line, **_death(run.record, job), **place}
        for name, run, place in shown
        for job, line in _lines(run.record, steps)
    ]
    if not series:
        return None
    whose = comparison.columns[comparison.base].runs[0]
    every = "every run" if len(shown) == len(comparison.runs) else f"the first run of {len(shown)} groups"
    return {
        "label": "step time" if steps else "goodput of all flows",
        "unit": "s" if steps else MBPS,
        "series": series,
        "faults": _faults(whose.record),
        "end": max(one.get("died", one["to"]) for one in series),
        "about": every,
        "faults_of": whose.folder_name,
        "speed": whose.record.scenario.speed,
    }


def colour_of(number: int) -> str:
    """The colour of a group, in every chart of the page."""
    return f"var(--plane-{number % _COLOURS})"


def _shown(comparison: Comparison) -> list[tuple[str, ComparedRun, dict[str, str]]]:
    """Names, runs and styles: a colour a group, a dash a repeat."""
    everyone = len(comparison.runs) <= MOST_LINES
    found = []
    for number, column in enumerate(comparison.columns[:MOST_LINES]):
        for turn, run in enumerate(column.runs if everyone else _one(column)):
            style = {"colour": colour_of(number), "dash": _DASHES[turn % len(_DASHES)]}
            found.append((column.short + (f" #{turn + 1}" if turn else ""), run, style))
    return found


def _one(column: ComparisonColumn) -> Sequence[ComparedRun]:
    return (column.counted or column.runs)[:1]


def _lines(record: RunRecord, steps: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those of a run, each with the name of its job where there are several."""
    start = record.start_ns
    if start is None:
        return
    if not steps and (line := _flows(record, start)):
        yield "", line
    for job, done in steps_by_job(record).items() if steps else ():
        if done:
            yield job if len(record.scenario.jobs) > 1 else "", _steps(done, start)


def _death(record: RunRecord, job: str) -> dict[str, float]:
    """When a failed QP ended the job of a line, or the last of all that a line without a name shows."""
    errors = [end.error for name, end in record.ends.items() if job in ("", name)]
    died = [error.t_ns for error in errors if error]
    return {"died": _seconds(max(died) - (record.start_ns or 0))} if died and len(died) == len(errors) else {}


def _steps(done: Sequence[JobStep], start_ns: int) -> dict[str, Any]:
    begins = [_seconds(step.begin_ns - start_ns) for step in done]
    durations = [_seconds(step.duration_ns) for step in done]
    return {"t": begins, "v": durations, "to": _seconds(done[-1].end_ns - start_ns)}


def _flows(record: RunRecord, start_ns: int) -> dict[str, Any] | None:
    """By the stretches of 100 ms in which receivers report."""
    moved: dict[int, int] = {}
    grain_ns = record.scenario.shape().least_ns(_GRAIN_NS)
    for row in record.received:
        turn = (row.begin_ns - start_ns) // grain_ns
        moved[turn] = moved.get(turn, 0) + row.bytes
    if not moved:
        return None
    last = max(moved) + 1
    rates = [round(8e3 * moved.get(turn, 0) / grain_ns, 3) for turn in range(last)]
    return {"from": 0, "grain": grain_ns / 1e9, "v": rates, "to": last * grain_ns / 1e9}


def _faults(record: RunRecord) -> list[dict[str, Any]]:
    start = record.start_ns or 0
    return [
        {
            "name": outage.fault,
            "from": max(0.0, _seconds(outage.injected_ns - start)),
            "to": None if outage.healed_ns is None else _seconds(outage.healed_ns - start),
        }
        for outage in outages(record)
    ]


def _seconds(ns: int) -> float:
    return round(ns / 1e9, 9)
