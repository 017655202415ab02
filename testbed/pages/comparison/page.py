"""The comparison as one self-contained page. Pure but for the files of the page itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from mrc_testbed.testbed.compare.comparison import Comparison, ComparisonCell, ComparisonRow
from mrc_testbed.testbed.compare.crossing import crossed, win_words
from mrc_testbed.testbed.compare.document import machine
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.sequence import SequenceDiff
from mrc_testbed.testbed.compare.sequence_words import bound_words, chapter_lines, gravest_first
from mrc_testbed.testbed.compare.spread import ABOUT, FigureSpread, GroupSpread, apart_words, spreads
from mrc_testbed.testbed.compare.transports import heads, side_by_side, trust, variant_rows
from mrc_testbed.testbed.compare.words import caveat, estimate_words, findings, title, value_words, zero_words
from mrc_testbed.testbed.pages.assemble import assemble
from mrc_testbed.testbed.pages.charts import CHART_SCRIPTS, CHART_STYLES
from mrc_testbed.testbed.pages.comparison.curves import curves
from mrc_testbed.testbed.pages.comparison.flow_sizes import slowdown_curves
from mrc_testbed.testbed.pages.comparison.forest import panels
from mrc_testbed.testbed.pages.comparison.outages import stall_panels
from mrc_testbed.testbed.pages.report.write import REPORT_FILE
from mrc_testbed.testbed.pages.terms import TERM_SCRIPTS, term

_TERMS = {
    "stall": "stall",
    "wasted": "wasted",
    "uplink_share": "uplink share",
    "step_time": "step time",
    "goodput": "goodput",
    "fair_share": "fair share",
    "recovery": "recovery",
    "goodput_back": "goodput back",
    "evs_retired": "retire",
    "retransmissions": "retransmission",
    "trims": "trim",
    "ecn_skips": "SKIP",
    "nacks": "NACK",
    "timeouts": "timeout",
    "marks": "ECN mark",
    "queue_drops": "queue drop",
    "unrestored_evs": "restore",
    "qp_errors": "QP",
    "data_on_bad_ev": "ASSUMED_BAD",
}
"""Terms of the glossary by metric."""


class Shown(NamedTuple):
    """A cell of the table."""

    value: str
    ratio: str = ""
    interval: str = ""
    reads: str = ""


class RunRow(NamedTuple):
    """A run in the list of runs. `link`: to its page, from that of the comparison."""

    group: str
    run: ComparedRun
    counted: bool
    link: str
    machine: str


def comparison_page(comparison: Comparison, sequences: SequenceDiff | None, folder: Path, command: str) -> str:
    """The text of compare.html in `folder`."""
    apart, crossing = side_by_side(comparison), crossed(comparison)
    # A chart of as many groups, or their ratios to one of them in another case, tell nothing.
    over_time = None if crossing else curves(comparison)
    scale, forest, quiet = panels(comparison)
    stalls, seconds = stall_panels(comparison) if apart and not crossing else ([], None)
    values: dict[str, Any] = {
        "title": title(comparison),
        "comparison": comparison,
        "findings": list(findings(comparison)),
        "caveat": caveat(comparison),
        "heads": _heads(comparison),
        "short": " / ".join(axis.short for axis in comparison.axes) if len(comparison.axes) > 1 else "",
        "rows": [(row, [_shown(row, cell) for cell in row.cells]) for row in comparison.rows],
        "titles": _titles(comparison.rows),
        "zero": zero_words(comparison),
        "spreads": [(one.figure, [_spread(one, group) for group in one.groups]) for one in spreads(comparison)],
        "about_spreads": ABOUT,
        "panels": [] if crossing else forest,
        "marks": scale.marks,
        "alike": ", ".join(quiet),
        "curves": over_time,
        "slowdown": None if crossing else slowdown_curves(comparison),
        "crossing": crossing,
        "wins": win_words(crossing[0]) if crossing else "",
        "heads_of_variants": heads(comparison) if apart else (),
        "variants": variant_rows(comparison) if apart and not crossing else [],
        "trust": trust(comparison) if apart else [],
        "stalls": stalls,
        "seconds": seconds.marks if seconds else [],
        "sequences": sequences,
        "bound": bound_words(sequences) if sequences else "",
        "chapters": [(one, list(chapter_lines(one))) for one in gravest_first(sequences.chapters)] if sequences else [],
        "runs": _runs(comparison, folder),
        "command": command,
    }
    styles = (*CHART_STYLES, "comparison/compare.css")
    scripts = (*TERM_SCRIPTS, *CHART_SCRIPTS, "comparison/compare.js")
    return assemble("comparison/compare.html", values, {"curves": over_time}, styles, scripts)


def _heads(comparison: Comparison) -> list[list[tuple[str, int]]]:
    """Rows of headings above the columns, a row an axis: texts, and how many columns each is for. Below the first axis
    values alone, as there are many columns side by side."""
    if len(comparison.axes) < 2:
        return [[(column.label, 1) for column in comparison.columns]]
    places = [column.place for column in comparison.columns]
    rows = []
    for depth, axis in enumerate(comparison.axes):
        runs = [list(group) for _, group in groupby(places, key=lambda place: place[: depth + 1])]
        name = "" if depth else f"{axis.short}="
        rows.append([(f"{name}{run[0][depth]}", len(run)) for run in runs])
    return rows


def _titles(rows: Iterable[ComparisonRow]) -> dict[str, str]:
    """Of figures, by key; the first one of a metric that the glossary has carries its definition."""
    titles, left = {}, dict(_TERMS)
    for figure in (row.figure for row in rows):
        name = left.pop(re.split(r"[. ]", figure.key)[0], "")
        titles[figure.key] = term(figure.title, name) if name else figure.title
    return titles


def _shown(row: ComparisonRow, cell: ComparisonCell) -> Shown:
    if cell.estimate is None:
        return Shown(value_words(row, cell))
    return Shown(value_words(row, cell), *estimate_words(row, cell.estimate), cell.reads)


def _spread(found: FigureSpread, group: GroupSpread) -> list[str]:
    shown = (found.figure.shown(value) for value in (group.values[0], group.median, group.values[-1]))
    return [group.label, str(len(group.values)), *shown, apart_words(group)]


def _runs(comparison: Comparison, folder: Path) -> Sequence[RunRow]:
    return [
        RunRow(column.label, run, run in column.counted, _link(run.folder, folder), machine_words(run))
        for column in comparison.columns
        for run in column.runs
    ]


def _link(run: Path, folder: Path) -> str:
    """To the page of a run, or to its folder where it has none."""
    page = run / REPORT_FILE
    return quote(os.path.relpath(page if page.exists() else run, folder))


def machine_words(run: ComparedRun) -> str:
    """Whether it kept time, and by how much. With a caveat, as of a run that was broken off, it may have."""
    found = machine(run)
    if not found["kept_time"]:
        doubted = found["virtual"] or run.verdict.fidelity.caveat
        return f"{'not reliable' if doubted else 'did not keep time'}: {found['why']}"
    if found["virtual"]:
        return "virtual time"
    if found["share"] is None:
        return "not known"
    return f"kept time; {found['nearest']} {found['share']:.0%} of its limit"
