"""`mrc-testbed results`: lists runs, and removes them."""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mrc_testbed.testbed.commands.help import HelpGroup
from mrc_testbed.testbed.commands.options import Out
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.terminal import say

_RESULTS = Path("results")
_SHOWN = 20
"""Names shown before the question; more are only counted."""


class ResultsGroup(HelpGroup):
    """`results FOLDER` is `results --out FOLDER`; a folder with the name of a command needs the option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A first word that is not a command is the folder."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["--out", *args]
        return super().parse_args(ctx, args)


class Removable(StrEnum):
    """Values of `--verdict`: states in the list, except running."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    MEASURED = "measured"
    DIED = "died"
    KILLED = "killed"
    UNJUDGED = "no verdict"
    DAMAGED = "damaged"


def list_results(
    context: typer.Context,
    out: Out = _RESULTS,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the runs and comparisons in results/, the newest last: scenario, verdict, figures, age and size.

    `results FOLDER` lists those of another folder.
    """
    if context.invoked_subcommand is not None:
        return
    from mrc_testbed.testbed.report.listing import runs_as_list, show_runs
    from mrc_testbed.testbed.report.runs import listed_results

    if out != _RESULTS and not out.exists():
        raise UsageError(f"{out}: no such folder")
    runs = listed_results(out)
    if json_:
        say(json.dumps(runs_as_list(runs), indent=1))
    else:
        show_runs(runs, out)


def remove_results(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="Runs to remove, or latest.", show_default=False)
    ] = None,
    keep: Annotated[int | None, typer.Option(metavar="N", min=0, help="Keep the N newest.", show_default=False)] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Only runs older than this, as in 7d.", show_default=False)
    ] = None,
    verdict: Annotated[
        Removable | None,
        typer.Option(
            metavar="VERDICT", help=f"Only runs with this verdict: {', '.join(Removable)}.", show_default=False
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    out: Out = _RESULTS,
) -> None:
    """Remove runs: those named, or those for which all of the options hold.

    Runs in progress are kept. Nothing outside the results folder is touched, and folders that are not runs are refused.
    """
    from mrc_testbed.testbed.app.removal import RunSelection, named, parse_age, remove, selected
    from mrc_testbed.testbed.report.listing import summed_up
    from mrc_testbed.testbed.report.runs import RunState

    age_s = None if older_than is None else parse_age(older_than)
    selection = RunSelection(keep, age_s, RunState(verdict.value) if verdict else None)
    if bool(runs) != selection.empty:
        raise UsageError("name the runs to remove, or choose them by --keep, --older-than, --verdict; not both")
    going = named(out, runs) if runs else selected(out, selection, time.time())
    if not going:
        say(f"{out}: nothing to remove")
        return
    for run in going[:_SHOWN]:
        say(f"{run.folder}  {run.state}  {run.headline}".rstrip())
    if len(going) > _SHOWN:
        say(f"and {len(going) - _SHOWN} more")
    if not yes and not _agreed(f"remove {summed_up(going)}?"):
        say("nothing removed")
        return
    remove(out, going)
    say(f"removed {summed_up(going)}")


def _agreed(question: str) -> bool:
    """Raises UsageError without a terminal to ask on."""
    if not sys.stdin.isatty():
        raise UsageError("standard input is not a terminal: confirm with --yes")
    try:
        return typer.confirm(question)
    except typer.Abort:
        say()
        raise typer.Exit(ExitCode.INTERRUPTED) from None
