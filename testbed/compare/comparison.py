"""Groups of runs -> the comparison of their figures: values of each group, and differences from the base. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean

from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.compare.copies import unlike_copies
from mrc_testbed.testbed.compare.figures import LESS, MORE, ComparedFigure, figures_among
from mrc_testbed.testbed.compare.groups import Axis, RunGroup, grouped
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.statistics import (
    Estimate,
    blocked_difference,
    blocked_ratio,
    difference,
    paired,
    ratio,
    shared,
)
from mrc_testbed.topos.units import plural

FEW = 10
"""Below this a count is too small for a ratio."""
NEGLIGIBLE = 0.01
"""A ratio nearer to 1 than this is neither better nor worse, however exact it is."""
RATIO, DIFFERENCE = "ratio", "difference"


@dataclass(frozen=True)
class ComparisonColumn:
    """A group or, if all runs have the same settings, one run. `counted`: the runs whose figures count."""

    label: str
    runs: tuple[ComparedRun, ...]
    counted: tuple[ComparedRun, ...]
    place: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """Without the keys if there are several axes, as `4 / nscc`."""
        return " / ".join(self.place) if len(self.place) > 1 else self.label

    @property
    def machines(self) -> frozenset[str]:
        """Of the runs that count; empty where they are not told apart."""
        return frozenset(run.machine for run in self.counted) - {""}

    @property
    def verdicts(self) -> dict[str, int]:
        """Number of runs per verdict."""
        statuses = [run.verdict.status for run in self.runs]
        return {status.value: statuses.count(status) for status in Status if status in statuses}


@dataclass(frozen=True, slots=True)
class ComparisonCell:
    """A figure of a column: the values of its counted runs, their mean, and the difference from the base (None for the
    base, and without data). `runs`: how many count, with the figure or without.

    `reads`: `better`, `worse`, `more` or `less`, if the difference is more than chance and not negligible.
    """

    values: tuple[float, ...]
    runs: int
    mean: float | None = None
    estimate: Estimate | None = None
    reads: str = ""

    @property
    def whole(self) -> bool:
        """Every run that counts has the figure."""
        return len(self.values) == self.runs


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """A figure in all columns. `kind`: RATIO (geometric means) or DIFFERENCE (arithmetic means)."""

    figure: ComparedFigure
    kind: str
    cells: tuple[ComparisonCell, ...]


@dataclass(frozen=True)
class Comparison:
    """`alike`: all runs have the same settings, so each is a column. `zero`: figures that are known to be 0 in every
    run that counts. `with_inconclusive`: inconclusive runs count too, as requested. `unlike`: of runs that had to be
    copies of each other and are not, a line each, which is an error; `notes` begin with them."""

    columns: tuple[ComparisonColumn, ...]
    rows: tuple[ComparisonRow, ...]
    zero: tuple[ComparedFigure, ...]
    axes: tuple[Axis, ...]
    grid: bool
    base: int
    alike: bool
    notes: tuple[str, ...]
    with_inconclusive: bool
    unlike: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[ComparedRun, ...]:
        """All runs, by column."""
        return tuple(run for column in self.columns for run in column.runs)

    @property
    def machines(self) -> frozenset[str]:
        """That ran what counts, where there are several; empty otherwise."""
        found = frozenset[str]().union(*(column.machines for column in self.columns))
        return found if len(found) > 1 else frozenset()

    @property
    def paired(self) -> bool:
        """Every group shares seeds with the base."""
        blocks = [{(run.machine, run.seed): (0.0,) for run in column.counted} for column in self.columns]
        return all(paired(one, blocks[self.base]) for one in blocks)

    @property
    def intervals(self) -> int:
        """Number of intervals; about one in twenty is beyond chance by chance alone."""
        cells = (cell for row in self.rows for cell in row.cells)
        return sum(cell.estimate is not None and cell.estimate.low is not None for cell in cells)


Block = tuple[str, int]
"""The machine and the seed of a run."""
_Values = Mapping[Block, Sequence[float]]
_PARTLY = "not every run that counts has the figure"


def compare(runs: Sequence[ComparedRun], with_inconclusive: bool = False) -> Comparison:
    """The comparison of at least two runs."""
    grouping = grouped(runs)
    alike = len(grouping.groups) == 1
    columns = tuple(
        ComparisonColumn(
            one.label, one.runs, tuple(run for run in one.runs if run.believed or with_inconclusive), one.place
        )
        for one in (_single(runs) if alike else grouping.groups)
    )
    base = 0 if alike else grouping.base
    keys = [key for run in runs for key in run.figures.values]
    rows = [row for figure in figures_among(keys) if (row := _row(figure, columns, base))]
    zero = [row.figure for row in rows if all(cell.whole and not any(cell.values) for cell in row.cells)]
    shown = tuple(row for row in rows if row.figure not in zero)
    unlike = tuple(unlike_copies(runs))
    notes = [*unlike, *grouping.notes, *_left_out(columns, with_inconclusive), *_strangers(columns, base)]
    shape = (grouping.axes, grouping.grid, base, alike, (*notes, *_partly(rows, columns)))
    return Comparison(columns, shown, tuple(zero), *shape, with_inconclusive, unlike)


def _single(runs: Sequence[ComparedRun]) -> Iterator[RunGroup]:
    """Each repeat as a group."""
    seeds = len({run.seed for run in runs}) > 1
    for number, run in enumerate(runs, 1):
        yield RunGroup(f"run {number}" + (f", seed {run.seed}" if seeds else ""), (run,))


def _row(figure: ComparedFigure, columns: Sequence[ComparisonColumn], base: int) -> ComparisonRow | None:
    """None if no run has the figure."""
    found = [_values(figure, column) for column in columns]
    everything = [value for values in found for some in values.values() for value in some]
    if not everything:
        return None
    least = FEW if figure.counts else 0
    kind = RATIO if all(value > 0 and value >= least for value in everything) else DIFFERENCE
    whole = len(_flat(found[base])) == len(columns[base].counted)
    cells = [
        _cell(kind, values, len(column.counted), {} if column is columns[base] else found[base])
        for column, values in zip(columns, found, strict=True)
    ]
    return ComparisonRow(figure, kind, tuple(_judged(figure, kind, cell, whole) for cell in cells))


def _values(figure: ComparedFigure, column: ComparisonColumn) -> _Values:
    known = [run for run in column.counted if figure.key in run.figures.values]
    return gathered(((run.machine, run.seed), run.figures.values[figure.key]) for run in known)


def _cell(kind: str, values_of: _Values, runs: int, base: _Values) -> ComparisonCell:
    """Without a base it is not compared."""
    values = _flat(values_of)
    if not values:
        return ComparisonCell((), runs)
    mean = geometric_mean(values) if kind == RATIO else fmean(values)
    return ComparisonCell(values, runs, mean, _estimate(kind, values_of, base) if base else None)


def _judged(figure: ComparedFigure, kind: str, cell: ComparisonCell, base_whole: bool) -> ComparisonCell:
    """The cell with what it reads. Where repeats lack the figure, as goodput that was never back, the others may be the
    better part: then there is no interval either."""
    if cell.estimate is None:
        return cell
    if not (cell.whole and base_whole):
        return replace(cell, estimate=Estimate(cell.estimate.value, why=_PARTLY))
    return replace(cell, reads=_reads(figure, kind, cell.estimate))


def _estimate(kind: str, of: _Values, base: _Values) -> Estimate:
    """Of pairs with the same seed on the same machine; else within machines where there are several; else of all
    values together."""
    ours, theirs = (of, base) if paired(of, base) else (_by_machine(of), _by_machine(base))
    if len(ours.keys() | theirs.keys()) > 1 and shared(ours, theirs):
        return blocked_ratio(ours, theirs) if kind == RATIO else blocked_difference(ours, theirs)
    values, others = _flat(of), _flat(base)
    return ratio(values, others) if kind == RATIO else difference(values, others)


def _by_machine(values_of: _Values) -> dict[str, list[float]]:
    return gathered((machine, value) for (machine, _), values in values_of.items() for value in values)


def _flat(values_of: _Values) -> tuple[float, ...]:
    return tuple(value for values in values_of.values() for value in values)


def _strangers(columns: Sequence[ComparisonColumn], base: int) -> list[str]:
    mine = columns[base].machines
    others = [column.label for column in columns if column.machines and mine and not column.machines & mine]
    if not others:
        return []
    return [f"no machine ran both {columns[base].label} and {', '.join(others)}: what differs may be the machines"]


def _reads(figure: ComparedFigure, kind: str, estimate: Estimate) -> str:
    nothing = 1.0 if kind == RATIO else 0.0
    if not estimate.clear_of(nothing) or (kind == RATIO and abs(estimate.value - 1) < NEGLIGIBLE):
        return ""
    more = estimate.value > nothing
    if figure.better in (LESS, MORE):
        return "better" if more == (figure.better == MORE) else "worse"
    return "more" if more else "less"


def _left_out(columns: Sequence[ComparisonColumn], everything: bool) -> list[str]:
    open_ = sum(not run.believed for column in columns for run in column.runs)
    if not open_:
        return []
    runs = plural(open_, "inconclusive run")
    if everything:
        return [f"{runs} counted (--count-inconclusive): the machine may have caused their figures"]
    return [f"{runs} shown, not counted; --count-inconclusive counts them"]


def _partly(rows: Sequence[ComparisonRow], columns: Sequence[ComparisonColumn]) -> list[str]:
    """Figures that only some of the repeats have, and why the first of the others has not: one note for those alike."""
    found: dict[str, list[str]] = {}
    for row in rows:
        parts = [(column, cell) for column, cell in zip(columns, row.cells, strict=True) if cell.values]
        parts = [(column, cell) for column, cell in parts if not cell.whole]
        if parts:
            where = ", ".join(f"{len(cell.values)} of {cell.runs} runs of {column.label}" for column, cell in parts)
            lacking = (run.figures.lacking.get(row.figure.key, "") for run in parts[0][0].counted)
            why = next(filter(None, lacking), "not measured")
            found.setdefault(f"{where} ({why})", []).append(row.figure.title)
    return [f"{'; '.join(titles)}: not judged, because only known for {where}" for where, titles in found.items()]
