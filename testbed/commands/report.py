"""`mrc-testbed report`: makes the pages of runs again."""

from __future__ import annotations

from pathlib import Path

import typer

from mrc_testbed.testbed.commands import errors
from mrc_testbed.testbed.commands.options import Out, Runs, runs_of, warn_of_plugins
from mrc_testbed.testbed.terminal import say


def report(runs: Runs, out: Out = Path("results")) -> None:
    """Make report.html of run folders: the whole run as one page that needs no network.

    Every run has one already; this makes it again. A killed run gets its verdict first. Exit status: 0 if all pages
    were made, else that of the first failure.
    """
    from mrc_testbed.testbed.app.report_page import make_report
    from mrc_testbed.testbed.rundir.results import run_folder

    failed = []
    for run in runs_of(runs, out):
        try:
            folder = run_folder(run, out)
            say(make_report(folder))
            warn_of_plugins(folder)
        except Exception as error:  # a folder may hold anything, and the next one is another
            failed.append(errors.show(error))
    raise typer.Exit(failed[0] if failed else 0)
