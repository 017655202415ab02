"""`mrc-testbed clean`: the books of runs whose process is gone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.app.judge import judge_folder, write_page
from mrc_testbed.testbed.checks.judge import VERDICT_FILE, read_verdict
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.errors import RunError, TestbedError
from mrc_testbed.testbed.folders import require_own_way
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.files import RecordError, any_values
from mrc_testbed.testbed.rundir.ownership import OWNER, abandoned, being_written, hand_over, release
from mrc_testbed.testbed.rundir.recorder import note_interrupt

_BEFORE, _AFTER = "was killed; verdict {}", "was killed after its verdict, {}; its page is made"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of a killed run, in words. Not `judged`: it stays as it is."""

    folder: Path
    words: str
    judged: bool


def finish_abandoned(out: Path) -> list[Cleaned]:
    """Give every killed run in `out` its verdict, which is never pass: who waited for the run saw it fail to end.
    One that had its verdict keeps it, and gets the page that was lacking.

    A folder that cannot be judged stays as it is, with the reason in place of a verdict; the others are not held up.
    """
    owners = sorted(out.glob(f"*/{OWNER}"))
    folders = [owner.parent for owner in owners if not owner.parent.is_symlink()]
    return [done for done in map(_finished, folders) if done]


def finish(folder: Path) -> RunOutcome:
    """Give a killed run its verdict, which says so, and all that follows from it; one with a verdict gets its page.
    Raises TestbedError."""
    with being_written(folder):
        if not (folder / OWNER).exists():
            raise RunError(f"{folder}: another process has just judged it")
        outcome = _with_its_page(folder) or _judged(folder)
        release(folder)
    hand_over(folder)
    return outcome


def _with_its_page(folder: Path) -> RunOutcome | None:
    """Of a run that was judged before its process ended; None where there is no verdict that can be read."""
    try:
        verdict = read_verdict(folder)
    except RecordError:
        return None
    write_page(load_record(folder), verdict, PatientConsole(quiet=True))
    return RunOutcome(verdict.exit_code, 0.0, verdict, folder)


def _judged(folder: Path) -> RunOutcome:
    note_interrupt(folder, "the process of the run ended before there was a verdict")
    return judge_folder(folder, PatientConsole(quiet=True), quiet=True)


def _finished(folder: Path) -> Cleaned | None:
    """None for a run that goes on."""
    try:
        if not abandoned(folder):
            return None
        require_own_way(folder)
        words = _BEFORE if not (folder / VERDICT_FILE).exists() else _AFTER
        with any_values(folder):
            return Cleaned(folder, words.format(finish(folder).word), judged=True)
    except TestbedError as error:
        reason = str(error)
    except Exception as error:  # a folder may hold anything
        reason = f"{type(error).__name__}: {error}"
    return Cleaned(folder, f"cannot be judged: {reason}; it stays as it is, with what it holds", judged=False)
