"""The table of a pack: figure, what the paper reports, what was observed here, verdict, time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from mrc_testbed.testbed.checks.observed import observed_words
from mrc_testbed.testbed.report.batch import batch_as_dict, style_of, totals
from mrc_testbed.testbed.report.console import plain_table
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.scenario.model.paper import MRC_PAPER
from mrc_testbed.testbed.scenario.model.scale import speed_words
from mrc_testbed.testbed.scenario.model.transports import WorldKind

_RATIOS = {"the paper reports": 4, "observed here": 7, "verdict": 4, "within": 3}
"""Of the widths of the columns that are as wide as there is room."""
_NARROW = 9
"""Maximum width of the columns for figure and time."""
COLUMNS = ("figure", "the paper reports", "observed here", "verdict", "time")
BOUND = "within"
"""Beside what was observed, in tables of published numbers: the bounds of these expectations."""


class PackRow(NamedTuple):
    """One scenario of a pack, or a variant of one.

    `observed`: a line per expectation named by `paper.shows`; empty without a verdict. `bounds`: theirs. `why`: the
    reason if it is not a pass. `seconds`: of all its tries; None if it was not run. `folder`: the name of the last
    run's.
    """

    figure: str
    reports: str
    observed: tuple[str, ...]
    verdict: str
    why: str = ""
    seconds: float | None = None
    folder: str = ""
    bounds: tuple[str, ...] = ()

    @property
    def time(self) -> str:
        """The wall time as text, empty where nothing ran."""
        return "" if self.seconds is None else f"{self.seconds:.0f} s"


def row_of(case: Case) -> PackRow:
    """A row for a case whose scenario repeats a figure. Raises ValueError for others."""
    paper, outcome = case.scenario.paper, case.outcome
    if paper is None:
        raise ValueError(f"{case.name} repeats no figure")
    variant = case.scenario.variant or ""
    figure = " ".join(filter(None, (paper.figure, variant)))
    reports = paper.reports_of(variant, case.scenario.judged)
    bounds = tuple(case.scenario.expect[index].demand for index in paper.shows)
    if outcome is None:
        return PackRow(figure, reports, (), case.said, bounds=bounds)
    folder = outcome.folder.name if outcome.folder else ""
    return PackRow(figure, reports, _observed(case), case.said, outcome.reason, case.seconds, folder, bounds)


def columns_of(cases: Sequence[Case]) -> tuple[str, ...]:
    """The headings. Those of MRC's paper are shapes, which a bound beside them would not explain."""
    figure, reports, observed, *rest = COLUMNS
    return COLUMNS if sources_of(cases) <= {MRC_PAPER} else (figure, reports, observed, BOUND, *rest)


def sources_of(cases: Sequence[Case]) -> set[str]:
    """The papers whose figures are repeated."""
    return {case.scenario.paper.source for case in cases if case.scenario.paper}


def pack_table(cases: Sequence[Case]) -> Table:
    """For a rich console of at least 80 columns."""
    table = plain_table(show_lines=True)
    headings = columns_of(cases)
    for heading in headings:
        ratio = _RATIOS.get(heading)
        table.add_column(heading, ratio=ratio, overflow="fold", max_width=None if ratio else _NARROW)
    for case in cases:
        row = row_of(case)
        verdict = Text(row.verdict, style=style_of(case))
        verdict.append(f"\n{row.why}" if row.why else "", style="none")
        cells = {"verdict": verdict} | {key: Text("\n".join(lines)) for key, lines in _lines(row).items()}
        table.add_row(*(cells[heading] for heading in headings))
    return table


def _lines(row: PackRow) -> dict[str, tuple[str, ...]]:
    """The cells of a row below each heading, without the verdict."""
    values = ((row.figure,), (row.reports,), row.observed, (row.time,))
    return dict(zip((*COLUMNS[:3], COLUMNS[4]), values, strict=True)) | {BOUND: row.bounds}


def pack_markdown(cases: Sequence[Case], when: str) -> str:
    """The same as a Markdown document beside the run folders. `when`: for its first line."""
    others = sorted(sources_of(cases) - {MRC_PAPER})
    headings = columns_of(cases)
    lines = [
        f"# Figures of {' and '.join(others) or 'the paper'}, here",
        "",
        f"`mrc-testbed paper`, {when}, {world_words(cases)}; {totals(cases)}. Figures of inconclusive runs are not "
        "reliable.",
        "",
        _line(*headings),
        _line(*("---" for _ in headings)),
        *(_markdown_row(row_of(case), headings) for case in cases),
    ]
    return "\n".join(lines) + "\n"


def world_words(cases: Sequence[Case]) -> str:
    """Where the figures are from, and how many times faster than written the runs are."""
    worlds = {case.scenario.world for case in cases}
    words = {WorldKind.KERNEL: "on the kernel", WorldKind.VIRTUAL: "in virtual time"}
    where = " and ".join(words[world] for world in WorldKind if world in worlds)
    return where + speed_words(case.scenario.speed for case in cases)


def pack_as_dict(cases: Sequence[Case]) -> dict[str, Any]:
    """Like `run --json` (docs/ci.md); each run also has `figure`, `reports`, `source`, `observed`, `shows`,
    `world` and `speed`, how many times faster than written it is."""
    whole = batch_as_dict(cases)
    runs = zip(whole["runs"], cases, strict=True)
    return {**whole, "runs": [{**_of_paper(case), **run} for run, case in runs]}


def _observed(case: Case) -> tuple[str, ...]:
    verdict = case.outcome.verdict if case.outcome else None
    if verdict is None or case.scenario.paper is None:
        return ()
    # Checks begin with those of `expect`, in its order.
    pairs = [(case.scenario.expect[index], verdict.checks[index]) for index in case.scenario.paper.shows]
    return tuple(observed_words(wanted, check) for wanted, check in pairs)


def _of_paper(case: Case) -> dict[str, Any]:
    row = row_of(case)
    shows = case.scenario.paper.shows if case.scenario.paper else ()
    about = {"figure": row.figure, "reports": row.reports, "observed": list(row.observed), "shows": list(shows)}
    source = case.scenario.paper.source if case.scenario.paper else ""
    return {**about, "source": source, "world": case.scenario.world.value, "speed": case.scenario.speed}


def _markdown_row(row: PackRow, headings: Sequence[str]) -> str:
    verdict = f"[{row.verdict}](../{row.folder})" if row.folder else row.verdict
    verdict += f": {row.why}" if row.why else ""
    texts = {"verdict": verdict} | {key: "; ".join(lines) for key, lines in _lines(row).items()}
    cells = [texts[heading] for heading in headings]
    return _line(*(cell.replace("|", "\\|").replace("\n", " ") for cell in cells))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
