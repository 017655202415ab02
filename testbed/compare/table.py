"""A comparison on a terminal of 100 columns: groups side by side, along an axis, at the crossings of two, or variants
crossed with cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.compare.comparison import Comparison, ComparisonCell, ComparisonRow
from mrc_testbed.testbed.compare.crossing import CrossTable, crossed, win_words
from mrc_testbed.testbed.compare.sequence import SequenceDiff
from mrc_testbed.testbed.compare.sequence_words import sequence_lines
from mrc_testbed.testbed.compare.spread import ABOUT, FigureSpread, apart_words, spreads
from mrc_testbed.testbed.compare.transports import heads, side_by_side, trust, variant_rows
from mrc_testbed.testbed.compare.words import caveat, estimate_words, findings, value_words, zero_words
from mrc_testbed.testbed.report.console import plain_table
from mrc_testbed.testbed.report.trust import short_lines

WIDTH = 100
SIDE_BY_SIDE = 5
"""Groups that fit beside the names of figures; more groups become rows."""
FIGURES_ACROSS = 5
"""Maximum number of figures in one table, if groups are rows."""
MOST_RUNS = 12
"""Maximum number of listed runs; beyond it only those that did not pass."""
LAST_HEAD = 7
"""Column of the table of variants that holds words, behind those of figures."""
_USUAL = (Status.PASS, Status.MEASURED, Status.DIED)
_STYLES = {"better": "green", "worse": "red", "more": "yellow", "less": "yellow"}


def show_comparison(comparison: Comparison, sequences: SequenceDiff | None, console: Console) -> None:
    """The difference of the sequences, if any, then the tables, at least as wide as they need."""
    console.width = max(console.width, WIDTH)
    if sequences:
        for line in sequence_lines(sequences):
            console.print(Text(f"- {line}", style="bold red" if line.startswith("NOT") else "none"))
        console.print()
    console.print(render_comparison(comparison))


def render_comparison(comparison: Comparison) -> RenderableType:
    """Everything for a rich console, readable without colour."""
    crossing = crossed(comparison)
    runs = _runs(comparison, all_of_them=not crossing)
    parts: list[RenderableType] = [runs] if runs.row_count else []
    parts += [Text(f"note: {note}", style="yellow") for note in comparison.notes]
    apart = side_by_side(comparison)
    if apart and not crossing:
        parts += ["", _variants(comparison)]
    parts += ["", *_of_cases(crossing)] if crossing else []
    if apart:
        parts += [Text(line, style="dim") for line in short_lines(trust(comparison))]
    parts += ["", *(() if crossing else _tables(comparison))]
    if (apart_by_seed := spreads(comparison)) and not crossing:
        parts += [_spreads(apart_by_seed), Text(ABOUT, style="dim"), ""]
    parts += [Text(zero)] if (zero := zero_words(comparison)) else []
    parts += [Text(caveat(comparison))]
    parts += [Text(f"- {line}") for line in findings(comparison)]
    return Group(*parts)


def _tables(comparison: Comparison) -> Iterator[RenderableType]:
    rows = [row for row in comparison.rows if row.figure.main] or list(comparison.rows)
    if comparison.grid:
        tables = [_crossed(comparison, row) for row in rows]
    elif len(comparison.columns) <= SIDE_BY_SIDE:
        tables = [_side_by_side(comparison, rows)]
    else:
        parts = ceil(len(rows) / FIGURES_ACROSS)
        ends = [len(rows) * number // parts for number in range(parts + 1)]
        tables = [_down(comparison, rows[begin:end]) for begin, end in pairwise(ends)]
    for table in tables:
        yield table
        yield ""


def _of_cases(tables: Sequence[CrossTable]) -> Iterator[RenderableType]:
    """A row a variant and a column a case. What is better than the first variant is bold, and has a mark."""
    for one in tables:
        table = plain_table()
        for number, heading in enumerate(("", *one.cases)):
            table.add_column(_heading(heading), justify="right" if number else "left", no_wrap=True)
        for variant, cells in one.rows:
            _add(table, variant, *(Text(cell.narrow, style="bold" if cell.wins else "none") for cell in cells))
        yield Text.assemble((one.title, "bold"), f": {one.about}")
        yield table
        yield ""
    yield Text(win_words(tables[0]), style="dim")


def _runs(comparison: Comparison, all_of_them: bool) -> Table:
    """Each run, or only those that did not do what they should, where cells say the rest."""
    table = plain_table()
    for heading in ("group", "seed", "verdict", "folder", "why"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "folder")
    for column in comparison.columns:
        listed = column.runs
        if not all_of_them:
            listed = tuple(run for run in listed if run.verdict.status not in _USUAL)
        elif len(comparison.runs) > MOST_RUNS and len(column.runs) > 1:
            counts = ", ".join(f"{count} {verdict}" for verdict, count in column.verdicts.items())
            _add(table, column.label, "", counts)
            listed = tuple(run for run in listed if run.verdict.status not in (Status.PASS, Status.MEASURED))
        for run in listed:
            first = run is listed[0] and (listed is column.runs or not all_of_them)
            verdict = run.verdict.status.value + ("" if run in column.counted else ", not counted")
            cells = (column.label if first else "", str(run.seed), verdict, run.folder_name, run.verdict.reason)
            _add(table, *cells)
    return table


def _variants(comparison: Comparison) -> Table:
    """A row a group: what a job feels of faults, whatever its transport."""
    table = plain_table()
    for number, heading in enumerate(heads(comparison)):
        table.add_column(heading, justify="right" if 0 < number < LAST_HEAD else "left", overflow="fold")
    for row in variant_rows(comparison):
        name = Text(row.label).append(f"\n{row.transport}\n{row.routing}", style="dim")
        stall = row.stall
        _add(table, name, row.first, row.worst, stall.seconds, stall.in_rtts, row.kept, row.wasted, row.job)
    return table


def _side_by_side(comparison: Comparison, rows: Sequence[ComparisonRow]) -> Table:
    table = plain_table()
    table.add_column("", min_width=16, overflow="fold")
    for number, column in enumerate(comparison.columns):
        base = "\n(base)" if number == comparison.base else ""
        table.add_column(_heading(column.label + base), justify="right", overflow="fold")
    for row in rows:
        _add(table, row.figure.title, *(_cell(row, cell) for cell in row.cells))
    return table


def _down(comparison: Comparison, rows: Sequence[ComparisonRow]) -> Table:
    """A row per group, with a column per axis."""
    table = plain_table()
    headings = [axis.short for axis in comparison.axes] or ["group"]
    for heading in headings:
        table.add_column(_heading(heading), overflow="fold")
    for row in rows:
        table.add_column(_heading(row.figure.title), justify="right", overflow="fold")
    for number, column in enumerate(comparison.columns):
        place = column.place or (column.label,)
        _add(table, *place, *(_cell(row, row.cells[number]) for row in rows))
    return table


def _crossed(comparison: Comparison, row: ComparisonRow) -> Table:
    """One figure: the first axis downwards, the second across."""
    down, across = comparison.axes
    cells = {column.place: row.cells[number] for number, column in enumerate(comparison.columns)}
    table = _titled(row.figure.title)
    table.add_column(_heading(down.short))
    for value in across.values:
        table.add_column(_heading(f"{across.short}={value}"), justify="right", overflow="fold")
    for value in down.values:
        _add(table, value, *(_cell(row, cells[value, other]) for other in across.values))
    return table


def _spreads(found: Sequence[FigureSpread]) -> Table:
    """A row a group, below its figure."""
    table = _titled("spread between seeds")
    for head in ("", "", "seeds", "least", "median", "most", "apart"):
        table.add_column(_heading(head), justify="right" if head else "left", overflow="fold", no_wrap=bool(head))
    for one in found:
        for number, group in enumerate(one.groups):
            shown = (one.figure.shown(value) for value in (group.values[0], group.median, group.values[-1]))
            title = "" if number else one.figure.title
            _add(table, title, group.label, str(len(group.values)), *shown, apart_words(group))
    return table


def _titled(title: str) -> Table:
    return plain_table(title=title, title_justify="left", title_style="bold")


def _add(table: Table, *cells: str | Text) -> None:
    """A row. Brackets are no markup: values such as `[p][0-1]` have some."""
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))


def _heading(text: str) -> Text:
    return Text(text, style="bold")


def _cell(row: ComparisonRow, cell: ComparisonCell) -> Text:
    """The mean; below it the ratio to the base, its interval, and the finding if it is more than chance."""
    cell_text = Text(value_words(row, cell))
    if cell.estimate is None:
        return cell_text
    what, interval = estimate_words(row, cell.estimate)
    cell_text.append(f"\n{what}" + (f" {cell.reads}" if cell.reads else ""), style=_STYLES.get(cell.reads, "none"))
    return cell_text.append(f"\n{interval}" if interval else "", style="dim")
