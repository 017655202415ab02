"""The line that says how far a sweep is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from mrc_testbed.testbed.app.pack import rough
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.sweep.drive import SweepProgress

_LOG_EVERY_S = 30.0


class SweepLine:
    """A context manager."""

    def __init__(self, console: PatientConsole, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet
        self._next_s = time.monotonic() + _LOG_EVERY_S
        columns = (TextColumn("cells"), BarColumn(None), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._bar = Bar(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> SweepLine:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, progress: SweepProgress) -> None:
        """How far it is."""
        done = progress.done_before + progress.settled
        if self._console.is_terminal:
            self._bar.update(self._task, completed=done, total=progress.cells, description=words(progress))
        elif not self._quiet and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _LOG_EVERY_S
            self.line(f"{done} of {progress.cells} cells; {words(progress)}")

    def line(self, text: str) -> None:
        """Above the bar."""
        self._console.print(text, soft_wrap=True)


def words(progress: SweepProgress) -> str:
    """`7 pass, 1 fail; 2 running on 2 machines; about 3 min left`."""
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(progress.verdicts.items()))
    machines = f"{progress.running} running on {progress.machines} machine{'s' * (progress.machines != 1)}"
    left = None if progress.left_s is None else f"about {rough(progress.left_s)} left"
    return "; ".join(filter(None, (verdicts, machines, left)))
