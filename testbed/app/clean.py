"""`mrc-testbed clean`: the books of runs whose process is gone."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from testbed.app.judge import judge_folder
from testbed.errors import TestbedError
from testbed.report.outcome import RunOutcome
from testbed.rundir.ownership import OWNER, abandoned, hand_over, release
from testbed.rundir.recorder import note_interrupt


def finish_abandoned(out: Path) -> list[tuple[Path, str]]:
    """Give every killed run in `out` its verdict, which is never pass. Returns each folder with what became of it.

    A folder that cannot be judged stays as it is, with the reason in place of a verdict; the others are not held up.
    """
    owners = sorted(out.glob(f"*/{OWNER}"))
    folders = [owner.parent for owner in owners if not owner.parent.is_symlink()]
    return [(folder, _finish(folder)) for folder in folders if abandoned(folder)]


def finish(folder: Path) -> RunOutcome:
    """Give a killed run its verdict, which says so, and all that follows from it. Raises TestbedError."""
    note_interrupt(folder, "the run was killed together with its supervisor")
    outcome = judge_folder(folder, Console(quiet=True), quiet=True)
    release(folder)
    hand_over(folder)
    return outcome


def _finish(folder: Path) -> str:
    try:
        outcome = finish(folder)
    except TestbedError as error:
        return f"cannot be judged: {error}; remove the folder if it is of no use"
    return f"verdict {outcome.word}"
