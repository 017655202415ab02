"""`mrc-testbed report`: the pages of runs, made anew."""

from __future__ import annotations

from pathlib import Path

import typer

from testbed.commands import errors
from testbed.commands.options import Out, Runs, runs_of, warn_of_plugins
from testbed.errors import TestbedError


def report(runs: Runs, out: Out = Path("results")) -> None:
    """Make report.html of run folders: the whole run as one page that needs no network. Every run has one already; this
    makes it anew. A run that was killed gets its verdict first.

    Exit status: 0 when all pages were made, else that of the first that was not.
    """
    from testbed.app.report_page import make_report
    from testbed.rundir.results import run_folder

    failed = []
    for run in runs_of(runs, out):
        try:
            folder = run_folder(run, out)
            typer.echo(make_report(folder))
            warn_of_plugins(folder)
        except TestbedError as error:
            failed.append(errors.show(error))
    raise typer.Exit(failed[0] if failed else 0)
