"""Cases of incidents: run, and made blind. What nothing came of is said to be no case."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mrc_testbed.testbed.app.places import VirtualPlace
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.errors import ExitCode, RunError, UsageError
from mrc_testbed.testbed.incidents.blind import BlindWindow, write_blind
from mrc_testbed.testbed.incidents.case import CaseFolder, drawn_text
from mrc_testbed.testbed.incidents.effect import effect_of
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.rundir.results import LOGS
from mrc_testbed.testbed.runner.phases import RunJob
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.load.effective import plain_text
from mrc_testbed.testbed.scenario.text.yaml_text import parse_source
from mrc_testbed.testbed.whole_files import write_whole

VIRTUAL_RUN = "virtual"


@dataclass(frozen=True, slots=True)
class ObservedCase:
    """What became of a case. `without`: names of faults that nothing came of; `believed`: False where the machine did
    not keep time, so that the case is not scored."""

    without: tuple[str, ...]
    believed: bool

    @property
    def counts(self) -> bool:
        """Whether answers to it can be scored."""
        return self.believed and not self.without


def observe(case: CaseFolder, kernel: bool = False, console: PatientConsole | None = None) -> ObservedCase:
    """Run a case, and fill its folder with what an observer may see.

    Raises UsageError if it was run before, RunError if the run came to nothing, ScenarioError, MissingCapability.
    """
    if "start_ns" in case.about():
        raise UsageError(f"{case.folder}: was observed already; draw the seed into another folder")
    scenario = load_scenario_text(drawn_text(case), overrides=["world=kernel"] if kernel else [])
    folder, believed = _on_kernel(scenario, case.runs, console) if kernel else (_virtually(scenario, case.runs), True)
    record = load_record(folder, scenario)
    window = _window(record, case)
    write_blind(folder, case.folder, record.plan, window, scenario.job.flows is not None)
    without = tuple(name for name in _faults(scenario) if not _had_effect(record, case, window, name, kernel))
    case.update(_told(record, window, kernel))
    case.note({"run": folder.name, "believed": believed, "without_effect": list(without)})
    give(case.folder.iterdir())
    return ObservedCase(without, believed)


def _faults(scenario: Scenario) -> list[str]:
    return [*dict.fromkeys(one.fault for one in scenario.occurrences)]


def _window(record: RunRecord, case: CaseFolder) -> BlindWindow:
    if record.start_ns is None:
        raise RunError(f"{case.truth}: the run ended before its workload: {record.interrupted or 'nobody knows why'}")
    return BlindWindow(record.start_ns, record.start_ns + round(case.about()["lasts_s"] * 1e9))


def _told(record: RunRecord, window: BlindWindow, kernel: bool) -> Mapping[str, Any]:
    return {
        "world": "kernel" if kernel else "virtual",
        "start_ns": window.start_ns,
        "end_ns": window.end_ns,
        "rtt_ns": record.scenario.shape().rtt_ns,
        "base_rtt_ns": record.base_rtt_ns,
    }


def _virtually(scenario: Scenario, runs: Path, name: str = VIRTUAL_RUN) -> Path:
    """A run whose report nobody wants. Returns its folder."""
    folder = runs / name
    (folder / LOGS).mkdir(parents=True)
    write_whole(folder / "scenario.yaml", scenario.dump_yaml())
    place = VirtualPlace(scenario)
    status = place.execute(RunJob(scenario, folder, place.world()), Silent)
    if status == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return folder


def _on_kernel(scenario: Scenario, runs: Path, console: PatientConsole | None) -> tuple[Path, bool]:
    """A whole run with its verdict, and whether the machine kept time."""
    runs.mkdir(exist_ok=True)
    outcome = run_scenario(scenario, runs, quiet=True, console=console)
    if outcome.folder is None or outcome.verdict is None:
        raise RunError(f"{runs}: the run came to no verdict: {outcome.error}")
    return outcome.folder, outcome.verdict.fidelity.ok


def _had_effect(record: RunRecord, case: CaseFolder, window: BlindWindow, fault: str, kernel: bool) -> bool:
    """Only in virtual time can a run without a fault tell: on the kernel any two differ."""
    known = effect_of(record, fault)
    return known if known is not None else kernel or _differs(record, case, window, fault)


def _differs(record: RunRecord, case: CaseFolder, window: BlindWindow, fault: str) -> bool:
    """Whether an observer would see anything else without this fault."""
    data = parse_source(record.scenario.dump_yaml(), "scenario.yaml").data
    faults = [entry for entry in data["faults"] if entry["name"] != fault]
    rest = {key: value for key, value in data.items() if key != "faults"}
    scenario = load_scenario_text(plain_text({**rest, "faults": faults} if faults else rest))
    run = _virtually(scenario, case.runs, f"{VIRTUAL_RUN}-without-{fault}")
    try:
        with TemporaryDirectory(dir=case.truth) as other:
            write_blind(run, Path(other), record.plan, window, scenario.job.flows is not None)
            names = [path.name for path in Path(other).iterdir()]
            _, differ, odd = filecmp.cmpfiles(case.folder, other, names, shallow=False)
            return bool(differ or odd)
    finally:
        shutil.rmtree(run)
