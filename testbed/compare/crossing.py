"""Variants crossed with cases: for each measure of what a job feels a table, a row a variant and a column a case.

A run is held against itself: its worst step and its goodput against those of its own time before anything happened, so
that no transport pays here for being slow when nothing breaks. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean, median

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.checks.steps import job_steps
from mrc_testbed.testbed.compare.comparison import Comparison, ComparisonColumn
from mrc_testbed.testbed.compare.figures import asked
from mrc_testbed.testbed.compare.transports import StoodStill, has_records, stood_still
from mrc_testbed.testbed.compare.words import TIMES
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.scenario.model.matrix import CASE, VARIANT

CLEAR = 0.02
"""Part by which a rival has to be better than the first variant before it wins."""
WIN = "*"
UNKNOWN = "?"
ENDED = "died"


@dataclass(frozen=True, slots=True)
class CrossCell:
    """What is shown, and whether it is better than the first variant's in the same case."""

    text: str
    wins: bool

    @property
    def marked(self) -> str:
        """With the mark of who wins."""
        return self.text + (WIN if self.wins else "")

    @property
    def narrow(self) -> str:
        """The same for a terminal of 80 columns: `1.87 s` above the ratio, `<80 ms`."""
        return self.marked.replace(f" {TIMES}", f"\n{TIMES}").replace(f"{ENDED} ", f"{ENDED}\n").replace("under ", "<")


@dataclass(frozen=True, slots=True)
class CrossTable:
    """A measure: `title`, and how to read it; `rows`: a variant's name and its cells, in the order of `cases`."""

    title: str
    about: str
    cases: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CrossCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Felt:
    """What the job of a group felt. `step_ns`: its longest step, `times`: over the median before anything happened;
    `kept`: its goodput over that before; None: not known. `dead`: how many of its `runs` did not finish the job, and
    `died`: when it died, of one run."""

    step_ns: float | None
    times: float | None
    kept: float | None
    stall: StoodStill
    dead: int
    runs: int
    died: str = ""

    @property
    def lives(self) -> bool:
        return self.runs > 0 and not self.dead


def crossed(comparison: Comparison) -> tuple[CrossTable, ...]:
    """The tables; none unless every variant has every case, and the records of all runs can be read."""
    if not comparison.grid or {axis.key for axis in comparison.axes} != {VARIANT, CASE} or not has_records(comparison):
        return ()
    order = [axis.key for axis in comparison.axes]
    variants, cases = (comparison.axes[order.index(key)].values for key in (VARIANT, CASE))
    felt = {
        tuple(column.place[order.index(key)] for key in (VARIANT, CASE)): _felt(column) for column in comparison.columns
    }
    tables = (_table(measure, variants, cases, felt) for measure in _MEASURES)
    return tuple(table for table in tables if any(cell.text != UNKNOWN for _, cells in table.rows for cell in cells))


def _felt(column: ComparisonColumn) -> _Felt:
    runs = column.counted
    dead = [run for run in runs if run.record.death or not run.record.workload_done]
    died = [run.figures.values["died_at"] for run in dead if "died_at" in run.figures.values]
    steps = [max(some) for run in runs if (some := _steps_ns(run.record))]
    times = [max(_steps_ns(run.record)) / median(usual) for run in runs if (usual := _steps_ns(run.record, True))]
    kept = [share for run in runs if (share := _kept(run.record)) is not None]
    when = amount(Dimension.TIME, died[0]) if died and len(runs) == 1 else ""
    mean = fmean(kept) if kept else None
    most = (max(steps, default=None), max(times, default=None))
    return _Felt(*most, mean, stood_still(column), len(dead), len(runs), when)


def _steps_ns(record: RunRecord, before: bool = False) -> list[int]:
    """Durations of steps, of all or of those before anything happened. The first step of a job without warm-up is its
    start-up, and counts only where there is no other."""
    if asked("step_time.p100", record).value is None:
        return []
    found = [step for step in job_steps(record) if step.index] or job_steps(record)
    until_ns = (record.start_ns or 0) + _calm_ns(record) if before else inf
    return [step.duration_ns for step in found if step.end_ns <= until_ns]


def _kept(record: RunRecord) -> float | None:
    """Goodput of the whole run over that before anything happened."""
    calm_ns = _calm_ns(record)
    window = "" if calm_ns == inf else f" from 0s to {calm_ns}ns"
    value, base = asked("goodput", record).value, asked(f"goodput{window}", record).value
    return value / base if value is not None and base else None


def _calm_ns(record: RunRecord) -> float:
    """When a fault or a flow beside the job begins; infinite where nothing does."""
    begins = [one.begin_ns for one in record.scenario.occurrences]
    begins += [item.flows.start_ns for item in record.scenario.workload if item.flows and item.flows.start_ns]
    return min(begins, default=inf)


@dataclass(frozen=True, slots=True)
class _Measure:
    """One of the tables. `value`: what decides who is better; None: not known. `words`: how it is shown."""

    title: str
    about: str
    value: Callable[[_Felt], float | None]
    words: Callable[[float, _Felt], str]
    less_is_better: bool = True


def _step_words(step_ns: float, felt: _Felt) -> str:
    times = f" {TIMES}{felt.times:.2f}" if felt.times else ""
    return amount(Dimension.TIME, step_ns) + times


def _stall_ns(felt: _Felt) -> float | None:
    """Shorter ones than are reported are all alike."""
    return None if felt.stall.ns is None else max(felt.stall.ns, felt.stall.least_ns)


_MEASURES = (
    _Measure("worst step", f"of the run; {TIMES}: over a usual step before", lambda felt: felt.step_ns, _step_words),
    _Measure(
        "longest standstill",
        "a QP or connection had work and delivered nothing",
        _stall_ns,
        lambda _, felt: felt.stall.seconds,
    ),
    _Measure(
        "goodput kept",
        "of the whole run, over that before",
        lambda felt: felt.kept,
        lambda kept, _: f"{kept:.0%}",
        less_is_better=False,
    ),
)


def _table(
    measure: _Measure, variants: Sequence[str], cases: Sequence[str], felt: Mapping[tuple[str, ...], _Felt]
) -> CrossTable:
    def cell(variant: str, case: str) -> CrossCell:
        own, first = felt[variant, case], felt[variants[0], case]
        return CrossCell(_words(measure, own), variant != variants[0] and _wins(measure, own, first))

    rows = tuple((variant, tuple(cell(variant, case) for case in cases)) for variant in variants)
    return CrossTable(measure.title, measure.about, tuple(cases), rows)


def _words(measure: _Measure, felt: _Felt) -> str:
    """A job that died has no worst step and keeps nothing; of several runs it says how many did."""
    if felt.dead:
        when = f" {felt.died}" if felt.died else ""
        return f"{ENDED}{when}" if felt.runs == 1 else f"{felt.dead} of {felt.runs} {ENDED}"
    value = measure.value(felt)
    return UNKNOWN if value is None else measure.words(value, felt)


def _wins(measure: _Measure, own: _Felt, first: _Felt) -> bool:
    if not own.lives or not first.lives:
        return own.lives and first.dead > 0
    mine, theirs = measure.value(own), measure.value(first)
    if mine is None or theirs is None:
        return False
    return mine < theirs * (1 - CLEAR) if measure.less_is_better else mine > theirs * (1 + CLEAR)


def win_words(table: CrossTable) -> str:
    """What the mark means."""
    return (
        f"{WIN} better than {table.rows[0][0]} in the same case, by more than {CLEAR:.0%}, or alive where its job died."
    )
