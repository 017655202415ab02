"""`mrc-testbed doctor` and `mrc-testbed clean`: the machine's features, and runs that were killed."""

from __future__ import annotations

from pathlib import Path

import typer

from mrc_testbed.testbed.commands.options import Out
from mrc_testbed.testbed.terminal import say


def doctor() -> None:
    """Show what this machine can do, what is lost without each part, and the fix."""
    from mrc_testbed.testbed.report.doctor import show_doctor

    raise typer.Exit(show_doctor())


def clean(out: Out = Path("results")) -> None:
    """Give each killed run its verdict, and remove the temporary folders of killed sweeps and hunts.

    A killed run leaves no process, namespace or link behind; the kernel removes them with it. Exit status: 3 if a
    folder could not be judged, else 0.
    """
    from mrc_testbed.testbed.app.clean import finish_abandoned
    from mrc_testbed.testbed.errors import ExitCode
    from mrc_testbed.testbed.rundir.scratch import PREFIXES, remove_left

    finished = finish_abandoned(out)
    for done in finished:
        say(f"{done.folder}: {done.words}", err=not done.judged)
    if not finished:
        say(f"{out}: nothing to clean")
    for folder in remove_left(*PREFIXES):
        say(f"{folder}: removed; it was left by a killed sweep or hunt")
    raise typer.Exit(ExitCode.PASS if all(done.judged for done in finished) else ExitCode.INCONCLUSIVE)
