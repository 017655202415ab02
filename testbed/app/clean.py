"""`mrc-testbed clean`: the books of runs whose process is gone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from testbed.app.judge import judge_folder
from testbed.errors import RunError, TestbedError
from testbed.report.console import PatientConsole
from testbed.report.outcome import RunOutcome
from testbed.rundir.ownership import OWNER, abandoned, being_written, hand_over, release
from testbed.rundir.recorder import came_to_its_end, note_interrupt


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of a killed run, in words. Not `judged`: it stays as it is."""

    folder: Path
    words: str
    judged: bool


def finish_abandoned(out: Path) -> list[Cleaned]:
    """Give every killed run in `out` its verdict, which is never pass: but where only the pages about it were lacking.

    A folder that cannot be judged stays as it is, with the reason in place of a verdict; the others are not held up.
    """
    owners = sorted(out.glob(f"*/{OWNER}"))
    folders = [owner.parent for owner in owners if not owner.parent.is_symlink()]
    return [done for done in map(_finished, folders) if done]


def finish(folder: Path) -> RunOutcome:
    """Give a killed run its verdict, which says so, and all that follows from it; one that had come to its end, and
    whose files were still being written, the verdict that it has. Raises TestbedError."""
    with being_written(folder):
        if not (folder / OWNER).exists():
            raise RunError(f"{folder}: another process has just judged it")
        if not came_to_its_end(folder):
            note_interrupt(folder, "the run was killed together with its supervisor")
        outcome = judge_folder(folder, PatientConsole(quiet=True), quiet=True)
        release(folder)
    hand_over(folder)
    return outcome


def _finished(folder: Path) -> Cleaned | None:
    """None for a run that goes on."""
    try:
        if not abandoned(folder):
            return None
        return Cleaned(folder, f"was killed; verdict {finish(folder).word}", judged=True)
    except TestbedError as error:
        reason = str(error)
    except Exception as error:  # nobody knows what may stand in a folder
        reason = f"{type(error).__name__}: {error}"
    return Cleaned(folder, f"cannot be judged: {reason}; remove the folder if it is of no use", judged=False)
