"""Sweeps that were planned, with tries as runs leave them, without running any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from mrc_testbed.testbed.app.batch import Repetitions, load_cases
from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.scenario.cells.axes import Sweep
from mrc_testbed.testbed.sweep.document import cell_document
from mrc_testbed.testbed.sweep.evidence import ALL, pack
from mrc_testbed.testbed.sweep.folder import CellTry, SweepCell, SweepFolder
from mrc_testbed.testbed.sweep.plan import plan_sweep
from tests.unit.checks.test_folder import SCENARIO
from tests.unit.recorded import record_run

SMALL = """\
name: small
seed: 7
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1}
workload: [{train: {hosts: all, steps: 4, compute: 20ms, allreduce: 64KiB}}]
expect: [qp_errors == 0]
"""
MACHINE = {"host": "vm0", "kernel": "6.1", "cpus": 2, "pps": 17000.0}
ENDED: dict[str, Any] = {"reason": "", "another_try": False, "seconds": 1.0, "machine": MACHINE, "run": None}
PASS = {"verdict": "pass", "exit_code": 0, **ENDED}
FAIL = {"verdict": "fail", "exit_code": 1, **ENDED, "reason": "failed: qp_errors == 0"}
SPOILT = {"verdict": "inconclusive", "exit_code": 3, **ENDED, "reason": "not reliable", "another_try": True}


def planned(
    place: Path, repeat: int = 3, name: str = "sweep", text: str = SMALL, matrix: tuple[str, ...] = ()
) -> SweepFolder:
    """A sweep of this scenario."""
    file = place / f"{name}.yaml"
    file.write_text(text)
    cases = load_cases([file], (), None, Repetitions(repeat, vary_seed=repeat > 1), Sweep(matrix))
    return plan_sweep(cases, place / name, {})


def keep(folder: SweepFolder, cell: SweepCell, document: dict[str, Any], **changes: Any) -> CellTry:
    """One more try of a cell."""
    return folder.keep(cell, document | changes)


def real_document(place: Path) -> tuple[dict[str, Any], bytes]:
    """What a run says of itself, and its evidence: the hand-made run of other tests."""
    folder = record_run(place / "20260101T000000Z-small")
    outcome = judge_folder(folder, Console(quiet=True), quiet=True)
    scenario = load_cases([folder / "scenario.yaml"])[0].scenario
    document = cell_document(Case(folder / "scenario.yaml", scenario, 1, 1, (outcome,)))
    return json.loads(json.dumps(document)), pack(folder, ALL)


RECORDED_SCENARIO = f"{SCENARIO}  - qp_errors == 0\n"
"""Of that run, with an expectation."""
