"""What a sweep keeps of a run: its verdict and figures, the machine and the code, as one JSON object.

The run writes it (`run --cell FILE`), while the machine that it is about is at hand. Thousands of them are read in
seconds, which run folders are not.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.calibration import machine, machine_capacity
from mrc_testbed.testbed.compare.runs import load_run
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.outcome import Case, RunOutcome
from mrc_testbed.testbed.rundir.planned import PLAN
from mrc_testbed.testbed.scenario import SCENARIO_FILE
from mrc_testbed.testbed.sweep.code import code_version
from mrc_testbed.topos.cost import Cost


def machine_facts(cost: Cost) -> dict[str, Any]:
    """This machine: name, kernel, CPUs, and the packets a second that it carries."""
    kernel, cpus, host = machine()
    return {"host": host, "kernel": kernel, "cpus": cpus, "pps": machine_capacity(cost).pps}


def cell_document(case: Case) -> dict[str, Any]:
    """Of a case that was run. Raises TestbedError where its folder cannot be read."""
    outcome = case.outcome or RunOutcome(ExitCode.INCONCLUSIVE, 0.0, error="it was not run")
    return {
        "verdict": outcome.word,
        "exit_code": int(outcome.exit_code),
        "reason": outcome.reason,
        "another_try": _is_of_machine(outcome),
        "seconds": round(outcome.seconds, 3),
        "machine": machine_facts(case.scenario.transport.cost),
        **code_version(),
        "warnings": list(outcome.warnings),
        "base_rtt_ns": outcome.base_rtt_ns,
        "run": _of_folder(outcome.folder) if outcome.folder and outcome.verdict else None,
    }


def _is_of_machine(outcome: RunOutcome) -> bool:
    """Another machine may do it: this one spoiled it, lacks something, shut down, or had no space left for it."""
    if outcome.exit_code in (ExitCode.MISSING, ExitCode.INTERRUPTED):
        return True
    broken_off = outcome.verdict is None or bool(outcome.verdict.fidelity.caveat)
    return outcome.worth_another_try or (outcome.exit_code is ExitCode.INCONCLUSIVE and broken_off)


def _of_folder(folder: Path) -> dict[str, Any]:
    return {
        "folder": folder.name,
        "scenario_sha256": _sha256(folder / SCENARIO_FILE),
        "plan_sha256": _sha256(folder / PLAN),
        **load_run(folder).as_dict(),
    }


def _sha256(path: Path) -> str | None:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else None
