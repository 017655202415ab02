"""`mrc-testbed clean`: the books of runs whose process is gone."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from testbed.runner.folder import OWNER, abandoned, hand_over, release
from testbed.runner.judge import judge_folder
from testbed.runner.run import note_interrupt


def finish_abandoned(out: Path) -> list[tuple[Path, str]]:
    """Give every killed run in `out` its verdict, which is never pass. Returns the folders with their verdicts."""
    finished: list[tuple[Path, str]] = []
    for owner in sorted(out.glob(f"*/{OWNER}")):
        folder = owner.parent
        if abandoned(folder):
            note_interrupt(folder, "the run was killed together with its supervisor")
            verdict = judge_folder(folder, Console(quiet=True), quiet=True)
            release(folder)
            hand_over(folder)
            finished.append((folder, verdict.status))
    return finished
