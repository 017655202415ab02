"""Runs whose files the oracles read: made once in virtual time, and kept for as long as what makes them is the same."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_cells
from mrc_testbed.testbed.scenario.model.transports import WorldKind

ROOT = Path(__file__).parents[2]
SCENARIOS = Path(__file__).parent / "scenarios"
NAMES = tuple(sorted(file.stem for file in SCENARIOS.glob("*.yaml")))
_KEPT = ROOT / ".venv" / f"oracles-{os.geteuid()}"
"""Of each user: what root has made here, others could not replace."""
_JUDGES = ("checks", "expect", "mapper", "compare", "report", "pages", "web", "live", "commands", "sweep", "bench")
"""Rooms that make nothing of what the oracles read, but for the mapper, where a scenario has one."""


@cache
def run_of(name: str) -> Path:
    """The folder of a run, which nobody may change."""
    folder = _KEPT / f"{name}-{_hash(name)}"
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for old in _KEPT.glob(f"{name}-*"):
                shutil.rmtree(old)
            _make(name, folder)
    return folder


def _make(name: str, folder: Path) -> None:
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    (cell,) = load_cells(SCENARIOS / f"{name}.yaml")
    assert cell.scenario.world is WorldKind.VIRTUAL
    done = run_scenario(cell.scenario, scratch, True, PatientConsole(file=io.StringIO()))
    assert done.folder is not None
    done.folder.rename(folder)
    shutil.rmtree(scratch)


@cache
def _hash(name: str) -> str:
    whole = hashlib.sha256((SCENARIOS / f"{name}.yaml").read_bytes())
    for file in _sources():
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    for room in ("topos", "hosts", "testbed"):
        for file in sorted((ROOT / room).rglob("*.py")):
            if file.relative_to(ROOT).parts[1] not in _JUDGES:
                yield file
