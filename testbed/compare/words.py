"""Texts of values, ratios and findings of a comparison. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.compare.comparison import RATIO, Comparison, ComparisonCell, ComparisonRow
from mrc_testbed.testbed.compare.statistics import ALIKE, Estimate

MOST_FINDINGS = 3
MOST_COLUMNS = 5
"""More findings are better shown in a table."""
CLOSE = 0.05
"""A ratio nearer to 1 than this is shown with one more digit."""
NOTHING = "-"
TIMES = "\N{MULTIPLICATION SIGN}"


def value_words(row: ComparisonRow, cell: ComparisonCell) -> str:
    """The mean with its unit: `1.58 s`; where some repeats lack the figure `1.58 s (2 of 3 runs)`."""
    return NOTHING if cell.mean is None else f"{row.figure.shown(cell.mean)}{part_words(len(cell.values), cell.runs)}"


def part_words(known: int, runs: int) -> str:
    """` (2 of 3 runs)` behind a figure that only some of the runs have; empty where all have it."""
    return f" ({known} of {runs} runs)" if known < runs else ""


def zero_words(comparison: Comparison) -> str:
    """`0 in every run: queue drops, QP errors`; empty without such figures."""
    titles = ", ".join(figure.title for figure in comparison.zero)
    all_count = all(len(column.counted) == len(column.runs) for column in comparison.columns)
    return f"0 in every run{'' if all_count else ' that counts'}: {titles}" if titles else ""


def estimate_words(row: ComparisonRow, estimate: Estimate) -> tuple[str, str]:
    """The ratio or the difference with its interval, `0.98 to 1.12`; without one, `repeats alike` or nothing."""
    words, interval = _ratio_words(estimate) if row.kind == RATIO else _difference_words(row, estimate)
    return words, interval or (ALIKE if estimate.why == ALIKE else "")


def _ratio_words(estimate: Estimate) -> tuple[str, str]:
    close = abs(estimate.value - 1) < CLOSE
    ends = [_ratio(end, close) for end in (estimate.low, estimate.high) if end is not None]
    return f"{TIMES}{_ratio(estimate.value, close)}", " to ".join(ends)


def _difference_words(row: ComparisonRow, estimate: Estimate) -> tuple[str, str]:
    size = max(abs(end) for end in (estimate.value, estimate.low or 0, estimate.high or 0))
    ends = [_signed(row, end, size) for end in (estimate.low, estimate.high) if end is not None]
    return _signed(row, estimate.value, size), " to ".join(ends)


def _ratio(value: float, close: bool) -> str:
    return f"{value:.3g}" if value >= 10 or value < 0.1 else f"{value:.{3 if close else 2}f}"


def _signed(row: ComparisonRow, value: float, size: float) -> str:
    sign = "+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
    return f"{sign}{row.figure.shown(abs(value), size)}"


def findings(comparison: Comparison) -> Iterator[str]:
    """With intervals and few columns, a sentence per group except the base: the differences beyond chance."""
    if comparison.alike or not comparison.intervals or len(comparison.columns) > MOST_COLUMNS:
        return
    base = comparison.columns[comparison.base].label
    for number_, column in enumerate(comparison.columns):
        if number_ == comparison.base:
            continue
        found = [(row, row.cells[number_]) for row in comparison.rows if row.cells[number_].reads]
        differing = [_finding(row, cell) for row, cell in sorted(found, key=lambda pair: not pair[0].figure.main)]
        more = f"; and {len(differing) - MOST_FINDINGS} more" if len(differing) > MOST_FINDINGS else ""
        text = f"{'; '.join(differing[:MOST_FINDINGS])}{more}" if differing else _nothing(comparison, number_)
        yield f"{column.label} against {base}: {text}"


def _finding(row: ComparisonRow, cell: ComparisonCell) -> str:
    if cell.estimate is None:
        return row.figure.title
    what, interval = estimate_words(row, cell.estimate)
    return f"{row.figure.title} {what} ({interval}), {cell.reads}"


def _nothing(comparison: Comparison, number_: int) -> str:
    cells = [row.cells[number_] for row in comparison.rows]
    if not any(cell.values for cell in cells):
        return "nothing to compare"
    known = any(cell.estimate and cell.estimate.low is not None for cell in cells)
    return "no difference beyond chance" if known else "chance is unknown: each group needs two runs"


def caveat(comparison: Comparison) -> str:
    """How to read all intervals together; without any, the reason."""
    if comparison.unlike:
        return "No figure is known: runs in virtual time differ that had to be copies of each other."
    if comparison.alike:
        return "All runs have the same settings: differences are chance or the machine."
    if not comparison.intervals:
        return "No intervals: each group needs two runs that count, better three (run --repeat 3)."
    by_chance = comparison.intervals / 20
    many = f"about {by_chance:.0f}" if by_chance >= 1 else "hardly any"
    machines = len(comparison.machines)
    how = f"within each of {machines} machines, then over all of them" if machines else "Welch, on logarithms"
    if comparison.paired:
        how = f"of pairs with the same seed, {how if machines else 'on logarithms'}"
    return (
        f"Ratios are of geometric means, with 95 % intervals ({how}). Of"
        f" {comparison.intervals} {'interval' if comparison.intervals == 1 else 'intervals'},"
        f" {many} would be beyond chance by chance alone."
    )


def title(comparison: Comparison) -> str:
    """`quickstart by planes and loss`, `quickstart, 3 times`, `quickstart and fig14`."""
    names = list(dict.fromkeys(run.scenario for run in comparison.runs))
    if comparison.alike:
        return f"{names[0]}, {len(comparison.runs)} times"
    axes = " and ".join(axis.short for axis in comparison.axes)
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{listed} by {axes}" if axes else listed


def headline(comparison: Comparison) -> str:
    """How many runs in how many groups."""
    groups = "" if comparison.alike else f" in {len(comparison.columns)} groups"
    return f"{len(comparison.runs)} runs{groups}"
