"""The list of runs for people, and as data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.report.runs import ListedRun, RunState
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.topos.units import plural

if TYPE_CHECKING:
    from rich.table import Table

LISTING_WIDTH = 200
"""Width where the output is not a terminal: one line per run."""
_STYLES = {
    RunState.PASS: "green",
    RunState.FAIL: "bold red",
    RunState.MEASURED: "cyan",
    RunState.DIED: "bold magenta",
    RunState.RUNNING: "cyan",
    RunState.COMPARISON: "dim",
}
_OTHERS = "bold yellow"
_AGES = ((2 * 86400, 86400, "d"), (2 * 3600, 3600, "h"), (120, 60, "min"))
"""Smallest age in seconds for each unit."""
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_ROUNDS_UP = 0.9995
"""Of a unit; from here on three digits say 1 of it, and 1000 of the one below."""


def show_runs(runs: Sequence[ListedRun], out: Path) -> None:
    """Print the table and a summary line on standard output."""
    from mrc_testbed.testbed.report.console import open_console

    console = open_console()
    if not console.is_terminal:
        console.width = LISTING_WIDTH
    if runs:
        console.print(runs_table(runs, time.time()))
        console.print()
    console.print(f"{out}: {summed_up(runs)}")


def runs_table(runs: Sequence[ListedRun], now_s: float) -> Table:
    """A row per run, in their order; with the scenario where folder names do not show it, and the worlds where not all
    were run on the kernel."""
    from rich.text import Text

    from mrc_testbed.testbed.report.console import plain_table

    table = plain_table()
    names_tell = all(run.scenario in run.folder.name for run in runs)
    table.add_column("run", no_wrap=True)  # a name in two pieces cannot be copied
    if not names_tell:
        table.add_column("scenario", overflow="fold", ratio=2)
    worlds = {run.world for run in runs if run.world} - {WorldKind.KERNEL.value}
    if worlds:
        table.add_column("world", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("figures", overflow="fold", ratio=4)
    for heading in ("age", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in runs:
        summary = Text(", ".join(filter(None, (run.headline, run.note))))
        verdict = Text(run.state, style=_STYLES.get(run.state, _OTHERS))
        age = age_words(now_s - run.began_s) if run.began_s else "?"
        name = [Text(run.folder.name), *([] if names_tell else [Text(run.scenario)])]
        where = [Text(run.world)] if worlds else []
        table.add_row(*name, *where, verdict, summary, age, size_words(run.size_bytes))
    return table


def summed_up(runs: Sequence[ListedRun]) -> str:
    """`3 runs, 1 comparison, 12 MB`."""
    if not runs:
        return "no runs"
    kinds = [run.state is RunState.COMPARISON for run in runs]
    counts = [(kinds.count(False), "run"), (kinds.count(True), "comparison")]
    counted = [plural(count, what) for count, what in counts if count]
    return f"{', '.join(counted)}, {size_words(sum(run.size_bytes for run in runs))}"


def runs_as_list(runs: Sequence[ListedRun]) -> list[dict[str, Any]]:
    """The content of `results --json`: an object per run; docs/results.md lists its keys."""
    return [
        {
            "run": run.folder.name,
            "folder": str(run.folder),
            "scenario": run.scenario,
            "world": run.world or None,
            "verdict": run.state.value,
            "headline": run.headline,
            "note": run.note,
            "began": _moment(run.began_s),
            "size_bytes": run.size_bytes,
        }
        for run in runs
    ]


def _moment(began_s: float) -> str | None:
    """None where it is unknown; a file may bear any time."""
    try:
        return datetime.fromtimestamp(began_s, UTC).isoformat() if began_s else None
    except (ValueError, OverflowError, OSError):
        return None


def age_words(seconds: float) -> str:
    """`40 s`, `7 min`, `3 h`, `12 d`; a time in the future (the clock was set back) counts as now."""
    seconds = max(0.0, seconds)
    for least, unit_s, unit in _AGES:
        if seconds >= least:
            return f"{seconds // unit_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def size_words(size_bytes: int) -> str:
    """`5.4 MB`, in powers of ten."""
    for unit_bytes, unit in _SIZES:
        if size_bytes >= _ROUNDS_UP * unit_bytes:
            return f"{number(size_bytes / unit_bytes)} {unit}"
    return f"{size_bytes} B"
