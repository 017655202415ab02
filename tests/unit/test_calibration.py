from __future__ import annotations

import json
import os
import pwd
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from hypothesis import given
from hypothesis import strategies as st
from outcomes import outcome

from testbed import calibration
from testbed.app import calibrate as runner
from testbed.app.calibrate import CLOSE_ENOUGH, FIRST_PPS, MAX_RUNS, scenario_text, search, step_of
from testbed.calibration import Calibration, Step, budget_warnings, load_calibration, machine, machine_capacity
from testbed.checks.result import FidelityFigure, Status
from testbed.errors import ExitCode
from testbed.report.outcome import RunOutcome
from testbed.scenario import load_scenario_text
from topos.budget import ANY_MACHINE
from topos.shape import Shape

ROOT = Path(__file__).parents[2]
QUICKSTART = str(ROOT / "scenarios" / "quickstart.yaml")
STANDARD = Shape(4, 2, 4, 4, 12_500_000, 40_000_000)


def calibrated(pps: float = 12_000, **changes: Any) -> Calibration:
    kernel, cpus, host = machine()
    steps = (
        Step(pps, True, 0.2, "CPU pressure"),
        Step(2 * pps, False, 0.0, "CPU pressure", "not reliable: late"),
    )
    found = Calibration("2026-11-21T10:00:00+00:00", host, kernel, cpus, "port program", pps, steps)
    return replace(found, **changes)


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("testbed.state._home", lambda: tmp_path / "home")
    return tmp_path / "state" / "mrc-testbed" / "calibration.json"


def save(path: Path, found: Calibration) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(found)))


def test_what_was_saved_is_read_back_and_is_the_budget(state: Path) -> None:
    assert machine_capacity() == ANY_MACHINE
    assert budget_warnings(STANDARD) == ()
    save(state, calibrated(pps=6_000))
    assert load_calibration() == calibrated(pps=6_000)
    (warning,) = budget_warnings(STANDARD)
    assert "over the machine's packet budget of 6,000 (calibrated on 2026-11-21)" in warning


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kernel": "2.4.0"}, "it was measured with kernel 2.4.0"),
        ({"cpus": 999}, "it was measured with 999 CPUs"),
        ({"host": "elsewhere"}, "it was measured on elsewhere"),
    ],
)
def test_a_calibration_of_another_machine_is_noticed_and_not_used(
    state: Path, call: Call, changes: dict[str, Any], why: str
) -> None:
    save(state, calibrated(**changes))
    assert machine_capacity().pps == ANY_MACHINE.pps
    assert why in machine_capacity().known_by
    ended = call("calibrate", "--show")
    assert ended.status == 3
    assert ended.err.startswith(f"stale, not used: {why}")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"steps": [1]}', '{"steps": [], "pps": 3}'])
def test_a_damaged_file_is_none(state: Path, content: str) -> None:
    save(state, calibrated())
    state.write_text(content)
    assert load_calibration() is None


def test_run_without_sudos_environment_is_found_with_it(state: Path, tmp_path: Path) -> None:
    save(tmp_path / "home" / ".local" / "state" / "mrc-testbed" / "calibration.json", calibrated())
    assert load_calibration() == calibrated()
    save(state, calibrated(pps=5_000))
    assert machine_capacity().pps == 5_000


def test_under_sudo_it_is_kept_in_the_callers_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("SUDO_UID", str(os.getuid()))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    user = pwd.getpwuid(os.getuid())
    assert calibration.state_file() == Path(user.pw_dir) / ".local/state/mrc-testbed/calibration.json"


def test_validate_and_run_warn_by_it(state: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    save(state, calibrated(pps=6_000))
    monkeypatch.setattr("testbed.app.run.run_scenario", lambda *_, **__: outcome())
    for command in ("validate", "run"):
        ended = call(command, QUICKSTART)
        assert ended.status == 0
        assert "budget of 6,000 (calibrated on 2026-11-21)" in ended.err


@given(st.floats(800, 10**6))
def test_the_search_ends_soon_and_holds_the_budget_between_two_loads(true_pps: float) -> None:
    steps = search(lambda pps: Step(pps, pps <= true_pps, 0.1, ""))
    carried = [step.offered_pps for step in steps if step.carried]
    refused = [step.offered_pps for step in steps if not step.carried]
    assert steps[0].offered_pps == FIRST_PPS
    assert len(steps) <= MAX_RUNS
    assert max(carried, default=0) <= true_pps < min(refused, default=float("inf"))
    if 7_000 < true_pps < 90_000:
        assert min(refused) / max(carried) < CLOSE_ENOUGH


@given(st.floats(1_500, 500_000))
def test_a_load_is_a_scenario_that_sends_so_much_and_whose_packets_in_flight_suit_it(pps: float) -> None:
    shape = load_scenario_text(scenario_text(pps)).shape()
    assert shape.fabric_pps == pytest.approx(pps, rel=0.01)
    assert shape.plane_bdp_packets >= 14


def test_a_step_tells_the_tightest_figure() -> None:
    passed = outcome()
    assert passed.verdict is not None
    figures = (
        FidelityFigure("waiting for a CPU", 10, 25, "%", True),
        FidelityFigure("CPU pressure", 60, 75, "%", True),
        FidelityFigure("socket drops", 0, 0, "packets", True),
        FidelityFigure("port rate error", None, 5, "%", True, "not known"),
    )
    fidelity = replace(passed.verdict.fidelity, figures=figures)
    step = step_of(24_000, replace(passed, verdict=replace(passed.verdict, fidelity=fidelity)))
    assert (step.carried, step.worst, step.margin) == (True, "CPU pressure", pytest.approx(0.2))
    late = step_of(24_000, outcome(Status.INCONCLUSIVE))
    assert (late.carried, late.margin, late.worst) == (False, 0, "timers late (p99)")
    assert late.reason.startswith("not reliable: ")


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[RunOutcome]:
    """Runs of the calibration come to these ends."""
    left: list[RunOutcome] = []
    monkeypatch.setattr(runner, "run_scenario", lambda *_, **__: left.pop(0))
    return left


def test_calibrate_tells_each_load_saves_and_shows(call: Call, loads: list[RunOutcome], state: Path) -> None:
    loads += [outcome(Status.INCONCLUSIVE), outcome(), outcome(Status.INCONCLUSIVE), outcome(Status.INCONCLUSIVE)]
    ended = call("calibrate")
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "17,000 packets/s: not carried: not reliable: timers late (p99) 7 ms, limit 5 ms"
    assert lines[1].startswith("8,500 packets/s: carried")
    assert "8 hosts x 4 planes" in ended.out
    assert lines[-1] == f"saved in {state}"
    found = load_calibration()
    assert found is not None
    assert (found.pps, len(found.steps), found.stale()) == (8_500, 4, "")
    shown = call("calibrate", "--show")
    assert shown.status == 0
    assert "carries 8,500 data packets/s" in " ".join(shown.out.split())


def test_a_machine_that_carries_nothing_is_told_so_and_nothing_is_saved(
    call: Call, loads: list[RunOutcome], state: Path
) -> None:
    loads += [outcome(Status.INCONCLUSIVE)] * MAX_RUNS
    ended = call("calibrate")
    assert ended.status == 3
    assert "not even 2,125 packets/s were carried" in ended.err
    assert not state.exists()


def test_ctrl_c_ends_it_and_saves_nothing(call: Call, loads: list[RunOutcome], state: Path) -> None:
    loads += [outcome(), RunOutcome(ExitCode.INTERRUPTED, 1.0)]
    assert call("calibrate").status == 130
    assert not state.exists()


def test_show_before_any_calibration_says_what_to_do(call: Call, state: Path) -> None:
    ended = call("calibrate", "--show")
    assert ended.status == 2
    assert ended.said == [f"mrc-testbed: --show: there is no {state}; run `mrc-testbed calibrate`"]
