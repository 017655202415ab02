"""The table of a pack: figure, what the paper reports, what was observed here, verdict, time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mrc_testbed.testbed.checks.observed import observed_words
from mrc_testbed.testbed.report.batch import batch_as_dict, style_of, totals
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.scenario.model.scale import speed_words
from mrc_testbed.testbed.scenario.model.transports import WorldKind

if TYPE_CHECKING:
    from rich.table import Table

_NARROW = 9
"""Maximum width of the columns for figure and time."""
COLUMNS = ("figure", "the paper reports", "observed here", "verdict", "time")


class PackRow(NamedTuple):
    """One scenario of a pack, or a variant of one.

    `observed`: a line per expectation named by `paper.shows`; empty without a verdict. `why`: the reason if it is not a
    pass. `seconds`: of all its tries; None if it was not run. `folder`: the name of the last run's.
    """

    figure: str
    reports: str
    observed: tuple[str, ...]
    verdict: str
    why: str = ""
    seconds: float | None = None
    folder: str = ""

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
    if outcome is None:
        return PackRow(figure, reports, (), case.said)
    folder = outcome.folder.name if outcome.folder else ""
    return PackRow(figure, reports, _observed(case), case.said, outcome.reason, case.seconds, folder)


def pack_table(cases: Sequence[Case]) -> Table:
    """For a rich console of at least 80 columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", show_lines=True)
    for heading, ratio in zip(COLUMNS, (None, 4, 7, 4, None), strict=True):
        table.add_column(heading, ratio=ratio, overflow="fold", max_width=None if ratio else _NARROW)
    for case in cases:
        row = row_of(case)
        verdict = Text(row.verdict, style=style_of(case))
        verdict.append(f"\n{row.why}" if row.why else "", style="none")
        table.add_row(Text(row.figure), Text(row.reports), Text("\n".join(row.observed)), verdict, Text(row.time))
    return table


def pack_markdown(cases: Sequence[Case], when: str) -> str:
    """The same as a Markdown document beside the run folders. `when`: for its first line."""
    lines = [
        "# Figures of the paper, here",
        "",
        f"`mrc-testbed paper`, {when}, {world_words(cases)}; {totals(cases)}. Figures of inconclusive runs are not "
        "reliable.",
        "",
        _line(*COLUMNS),
        _line(*("---" for _ in COLUMNS)),
        *(_markdown_row(row_of(case)) for case in cases),
    ]
    return "\n".join(lines) + "\n"


def world_words(cases: Sequence[Case]) -> str:
    """Where the figures are from, and how many times faster than written the runs are."""
    worlds = {case.scenario.world for case in cases}
    words = {WorldKind.KERNEL: "on the kernel", WorldKind.VIRTUAL: "in virtual time"}
    where = " and ".join(words[world] for world in WorldKind if world in worlds)
    return where + speed_words(case.scenario.speed for case in cases)


def pack_as_dict(cases: Sequence[Case]) -> dict[str, Any]:
    """Like `run --json` (docs/ci.md); each run also has `figure`, `reports`, `observed`, `shows`,
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
    return {**about, "world": case.scenario.world.value, "speed": case.scenario.speed}


def _markdown_row(row: PackRow) -> str:
    verdict = f"[{row.verdict}](../{row.folder})" if row.folder else row.verdict
    verdict += f": {row.why}" if row.why else ""
    cells = (row.figure, row.reports, "; ".join(row.observed), verdict, row.time)
    return _line(*(cell.replace("|", "\\|").replace("\n", " ") for cell in cells))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
