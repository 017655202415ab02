"""`mrc-testbed doctor` and `mrc-testbed clean`: the machine's features, and runs that were killed."""

from __future__ import annotations

from pathlib import Path

import typer

from testbed.commands.options import Out


def doctor() -> None:
    """Show what this machine can do, what is lost without each part, and the fix."""
    from testbed.report.doctor import show_doctor

    raise typer.Exit(show_doctor())


def clean(out: Out = Path("results")) -> None:
    """Give each killed run its verdict. Nothing else is touched.

    A killed run leaves no process, namespace or link behind; the kernel removes them with it.
    """
    from testbed.app.clean import finish_abandoned

    finished = finish_abandoned(out)
    for folder, outcome in finished:
        typer.echo(f"{folder}: was killed; {outcome}")
    if not finished:
        typer.echo(f"{out}: nothing to clean")
