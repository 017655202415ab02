"""Variants crossed with cases: for each measure of what a job feels a table, a row a variant and a column a case.

A case without faults is the calm one: a variant's worst step and its goodput elsewhere are held against its own calm
run, so that no transport pays here for being slow when nothing breaks. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from mrc_testbed.testbed.checks.figure import evaluate_figure
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.compare.comparison import Comparison, ComparisonColumn
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.transports import StoodStill, has_records, stood_still
from mrc_testbed.testbed.compare.words import TIMES
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.expect.vocabulary import BASE_UNITS, Dimension
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
    wins: bool = False

    @property
    def marked(self) -> str:
        """For a terminal."""
        return self.text + (WIN if self.wins else "")


@dataclass(frozen=True, slots=True)
class CrossTable:
    """A measure: `title`, and how to read it; `rows`: a variant's name and its cells, in the order of `cases`."""

    title: str
    about: str
    cases: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CrossCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Felt:
    """What the job of a group felt. `step_ns` and `goodput` None: not known. `ends`: at how many of its `runs` died the
    job; `died`: when, of one run."""

    step_ns: float | None
    stall: StoodStill
    goodput: float | None
    ends: int
    runs: int
    died: str = ""

    @property
    def lives(self) -> bool:
        return self.runs > 0 and not self.ends


def crossed(comparison: Comparison) -> tuple[CrossTable, ...]:
    """The tables; none unless every variant has every case, and the records of all runs can be read."""
    if not comparison.grid or {axis.key for axis in comparison.axes} != {VARIANT, CASE} or not has_records(comparison):
        return ()
    order = [axis.key for axis in comparison.axes]
    variants, cases = (comparison.axes[order.index(key)].values for key in (VARIANT, CASE))
    columns = {
        (column.place[order.index(VARIANT)], column.place[order.index(CASE)]): column for column in comparison.columns
    }
    felt = {place: _felt(column) for place, column in columns.items()}
    calm = next((case for case in cases if _is_calm(columns[variants[0], case])), "")
    return tuple(_table(measure, variants, cases, felt, calm) for measure in _MEASURES)


def _is_calm(column: ComparisonColumn) -> bool:
    scenario = column.runs[0].record.scenario
    return not scenario.faults and not scenario.job.flows


def _felt(column: ComparisonColumn) -> _Felt:
    runs = column.counted
    dead = [run for run in runs if run.record.death or not run.record.workload_done]
    steps, rates = (_known(runs, text) for text in ("step_time.p100", "goodput"))
    died = [run.figures.values["died_at"] for run in dead if "died_at" in run.figures.values]
    return _Felt(
        max(steps, default=None),
        stood_still(column),
        fmean(rates) if rates else None,
        len(dead),
        len(runs),
        amount(Dimension.TIME, died[0]) if died and len(runs) == 1 else "",
    )


def _known(runs: Sequence[ComparedRun], text: str) -> list[float]:
    figure = parse_figure(text)
    found = (evaluate_figure(run.record, figure, BASE_UNITS[figure.metric.dimension]).value for run in runs)
    return [value for value in found if value is not None]


@dataclass(frozen=True, slots=True)
class _Measure:
    """One of the tables. `value`: what decides who is better, by what was felt in the case and in the variant's own
    calm run; None: not known. `words`: how it is shown."""

    title: str
    about: str
    value: Callable[[_Felt, _Felt | None], float | None]
    words: Callable[[_Felt, float, _Felt | None], str]
    less_is_better: bool = True


def _step_words(_felt: _Felt, value: float, calm: _Felt | None) -> str:
    ratio = f" {TIMES}{value / calm.step_ns:.2f}" if calm and calm.step_ns else ""
    return f"{amount(Dimension.TIME, value)}{ratio}"


def _stall_ns(felt: _Felt, _calm: _Felt | None) -> float | None:
    """Shorter ones than are reported are all alike."""
    return None if felt.stall.ns is None else max(felt.stall.ns, felt.stall.least_ns)


def _kept(felt: _Felt, calm: _Felt | None) -> float | None:
    return felt.goodput / calm.goodput if felt.goodput and calm and calm.goodput else None


_MEASURES = (
    _Measure(
        "worst step",
        f"the longest step of the run; {TIMES}: over that of the variant's own calm run",
        lambda felt, _calm: felt.step_ns,
        _step_words,
    ),
    _Measure(
        "longest standstill",
        "for how long a QP or a connection with work outstanding delivered nothing",
        _stall_ns,
        lambda felt, _value, _calm: felt.stall.seconds,
    ),
    _Measure(
        "goodput kept",
        "bytes of steps by time over the whole run, as a part of the variant's own calm run",
        _kept,
        lambda _felt, value, _calm: f"{value:.0%}",
        less_is_better=False,
    ),
)


def _table(
    measure: _Measure,
    variants: Sequence[str],
    cases: Sequence[str],
    felt: dict[tuple[str, str], _Felt],
    calm: str,
) -> CrossTable:
    def cell(variant: str, case: str) -> CrossCell:
        own, first = felt[variant, case], felt[variants[0], case]
        still, still_first = (felt.get((one, calm)) for one in (variant, variants[0]))
        wins = variant != variants[0] and _wins(measure, own, still, first, still_first)
        return CrossCell(_words(measure, own, still), wins)

    rows = tuple((variant, tuple(cell(variant, case) for case in cases)) for variant in variants)
    return CrossTable(measure.title, measure.about, tuple(cases), rows)


def _words(measure: _Measure, felt: _Felt, calm: _Felt | None) -> str:
    """A job that died has no worst step and keeps nothing; of several runs it says how many did."""
    if felt.ends:
        when = f" {felt.died}" if felt.died else ""
        return f"{ENDED}{when}" if felt.runs == 1 else f"{felt.ends} of {felt.runs} {ENDED}"
    value = measure.value(felt, calm)
    return UNKNOWN if value is None else measure.words(felt, value, calm)


def _wins(measure: _Measure, own: _Felt, calm: _Felt | None, first: _Felt, first_calm: _Felt | None) -> bool:
    if not own.lives or not first.lives:
        return own.lives and first.ends > 0
    mine, theirs = measure.value(own, calm), measure.value(first, first_calm)
    if mine is None or theirs is None:
        return False
    return mine < theirs * (1 - CLEAR) if measure.less_is_better else mine > theirs * (1 + CLEAR)


def win_words(table: CrossTable) -> str:
    """What the mark means."""
    return (
        f"{WIN} better than {table.rows[0][0]} in the same case, by more than {CLEAR:.0%}, or alive where its job died."
    )
