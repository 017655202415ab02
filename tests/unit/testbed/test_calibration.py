from __future__ import annotations

import json
import os
import pwd
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts import compiled
from mrc_testbed.testbed import calibration
from mrc_testbed.testbed.app import calibrate as runner
from mrc_testbed.testbed.app.calibrate import (
    CLOSE_ENOUGH,
    HOLDS,
    MOST_LOADS,
    MOST_ROUNDS,
    Trials,
    confirm,
    due_pps,
    scenario_text,
    search,
    step_of,
)
from mrc_testbed.testbed.calibration import (
    MARGIN,
    ROOM,
    Calibration,
    CarriedLoad,
    Crowd,
    Step,
    budget_warnings,
    lasting_pps,
    load_calibration,
    machine,
    machine_capacity,
    refused_pps,
)
from mrc_testbed.testbed.checks.fidelity import _LABELS
from mrc_testbed.testbed.checks.result import FidelityFigure, Status
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.testbed.transports.base import Transport
from mrc_testbed.testbed.transports.registry import TRANSPORTS
from mrc_testbed.topos.budget import Capacity, usual_capacity
from mrc_testbed.topos.cost import STANDARD_COST, cpus
from mrc_testbed.topos.families.clos2 import clos2_shape
from tests.unit.calls import Call
from tests.unit.outcomes import outcome

COSTS = [one.cost for one in TRANSPORTS.values()]
ROOT = Path(__file__).parents[3]
QUICKSTART = str(ROOT / "scenarios" / "quickstart.yaml")
STANDARD = clos2_shape(4, 2, 4, 4, 12_500_000, 40_000_000)


def load_of(pps: float) -> CarriedLoad:
    """That many packets/s are promised, and twice as many are refused."""
    steps = (
        Step(MARGIN * pps, True, 0.2, "CPU pressure"),
        Step(2 * pps, False, 0.0, "CPU pressure", "not reliable: late"),
    )
    return CarriedLoad("2026-11-21T10:00:00+00:00", "port program", steps)


def calibrated(changes: dict[str, Any] | None = None, /, **pps: float) -> Calibration:
    kernel, cpus, host = machine()
    found = Calibration(host, kernel, cpus, {name: load_of(one) for name, one in (pps or {"mrc": 12_000}).items()})
    return replace(found, **changes or {})


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("mrc_testbed.testbed.state._home", lambda: tmp_path / "home")
    return tmp_path / "state" / "mrc-testbed" / "calibration.json"


def save(path: Path, found: Calibration) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(found)))


def test_what_was_saved_is_read_back_and_is_the_budget_of_its_transport(state: Path) -> None:
    assert [machine_capacity(one) for one in COSTS] == [usual_capacity(one) for one in COSTS]
    assert budget_warnings(STANDARD, STANDARD_COST, 4) == ()
    save(state, calibrated(mrc=6_000, tcp=5_000))
    assert load_calibration() == calibrated(mrc=6_000, tcp=5_000)
    for transport, carried in ((TRANSPORTS["mrc"], "0.28 to 0.67"), (TRANSPORTS["tcp"], "0.22 to 0.50")):
        (warning,) = budget_warnings(STANDARD, transport.cost, 4)
        assert (
            f"does not fit: this machine carries {carried} CPUs for {transport} (calibrated on 2026-11-21)" in warning
        )
    assert machine_capacity(COSTS[1]) == usual_capacity(COSTS[1])


def test_a_file_from_before_there_were_transports_is_of_mrc(state: Path) -> None:
    one = calibrated(mrc=6_000)
    about = {"host": one.host, "kernel": one.kernel, "cpus": one.cpus}
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({**about, **asdict(one.transports["mrc"])}))
    assert load_calibration() == one


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kernel": "2.4.0"}, "it was measured with kernel 2.4.0"),
        ({"cpus": 999}, "it was measured with 999 CPUs"),
        ({"host": "elsewhere"}, "it was measured on elsewhere"),
        ({"core": "in C"}, "it was measured with `core: in C`, here it is "),
    ],
)
def test_a_calibration_of_another_machine_is_noticed_and_not_used(
    state: Path, call: Call, changes: dict[str, Any], why: str
) -> None:
    save(state, calibrated(changes))
    assert machine_capacity(STANDARD_COST).pps == STANDARD_COST.usual_pps
    assert why in machine_capacity(STANDARD_COST).known_by
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
    save(state, calibrated(mrc=5_000))
    assert machine_capacity(STANDARD_COST).pps == 5_000


def test_under_sudo_it_is_kept_in_the_callers_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("SUDO_UID", str(os.getuid()))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    user = pwd.getpwuid(os.getuid())
    assert calibration.state_file() == Path(user.pw_dir) / ".local/state/mrc-testbed/calibration.json"


def test_validate_and_run_warn_by_it(state: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    save(state, calibrated(mrc=6_000))
    monkeypatch.setattr("mrc_testbed.testbed.app.run.run_scenario", lambda *_, **__: outcome())
    for command in ("validate", "run"):
        ended = call(command, QUICKSTART)
        assert ended.status == 0
        assert "this machine carries 0.28 to 0.67 CPUs for mrc (calibrated on 2026-11-21)" in ended.err


def test_of_several_cells_the_warning_names_those_that_it_is_about(
    state: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(state, calibrated(mrc=17_000, roce=6_000, tcp=17_000))
    monkeypatch.setattr("mrc_testbed.testbed.app.run.run_scenario", lambda *_, **__: outcome())
    ended = call("validate", QUICKSTART, "--against", "baselines")
    (warning,) = ended.said
    assert warning.startswith("warning: [roce-1], [roce-16]: its workload takes")
    ended = call("run", QUICKSTART, "--matrix", "transport=mrc,roce")
    (warning,) = (line for line in ended.said if line.startswith("warning: "))
    assert warning.startswith("warning: quickstart [transport=roce]: its workload takes")
    assert "and does not fit: this machine carries 0.27 to 0.62 CPUs for roce" in warning
    assert call("topo", "show", QUICKSTART, "--set", "transport=roce").err.startswith("warning: its workload takes")


@given(st.floats(800, 10**6))
def test_the_search_ends_soon_and_holds_the_budget_between_two_loads(true_pps: float) -> None:
    steps = search(17_000, lambda pps: Step(pps, pps <= true_pps, 0.1, ""))
    carried = [step.offered_pps for step in steps if step.carried]
    refused = [step.offered_pps for step in steps if not step.carried]
    assert steps[0].offered_pps == 17_000
    assert len(carried) + len(set(refused)) <= MOST_LOADS
    assert len(refused) == 2 * len(set(refused))
    assert max(carried, default=0) <= true_pps < min(refused, default=float("inf"))
    if 7_000 < true_pps < 90_000:
        assert min(refused) / max(carried) < CLOSE_ENOUGH


def test_a_load_that_fails_once_is_not_promised_but_not_refused_either() -> None:
    """64 hosts were refused 8,300 packets/s for one port that was counted badly, and carried 9,200."""
    runs: Counter[float] = Counter()

    def measure(pps: float) -> Step:
        runs[pps] += 1
        unlucky = 17_000 < pps < 40_000 and runs[pps] == 1
        return Step(pps, pps <= 40_000 and not unlucky, 0.2, "")

    steps = search(17_000, measure)
    assert refused_pps(steps) > 40_000
    assert lasting_pps(steps) == 17_000


@given(st.floats(1_500, 500_000), st.sampled_from(list(TRANSPORTS.values())))
def test_a_load_is_a_scenario_that_sends_so_much_and_whose_packets_in_flight_suit_it(
    pps: float, transport: Transport
) -> None:
    scenario = load_scenario_text(scenario_text(pps, transport))
    shape = scenario.shape()
    assert scenario.transport is transport
    assert shape.fabric_pps == pytest.approx(pps, rel=0.01)
    assert shape.plane_bdp_packets >= 14


@pytest.mark.parametrize("transport", TRANSPORTS.values())
@pytest.mark.parametrize("pps", [10_000, 17_000, 34_000])
def test_what_is_carried_is_the_cpu_time_of_the_training_that_was_tried(transport: Transport, pps: float) -> None:
    scenario = load_scenario_text(scenario_text(pps, transport))
    takes = cpus(scenario.shape(), offered_load(scenario), transport.cost)
    assert Capacity(pps, "calibrated", transport.cost).cpus == pytest.approx(takes, rel=0.11)


def test_figures_that_are_not_of_the_load_are_known() -> None:
    assert set(runner._NOT_OF_LOAD) <= set(_LABELS.values())


def test_a_step_tells_the_tightest_figure() -> None:
    passed = outcome()
    assert passed.verdict is not None
    figures = (
        FidelityFigure("waiting for a CPU", 10, 25, "%", True),
        FidelityFigure("CPU pressure", 60, 75, "%", True),
        FidelityFigure("socket drops", 0, 0, "packets", True),
        FidelityFigure("late on links", None, 5, "%", True, "not known"),
        FidelityFigure("port rate error", 4.9, 5, "%", True),  # of slow ports, whatever the load
    )
    fidelity = replace(passed.verdict.fidelity, figures=figures)
    step = step_of(24_000, replace(passed, verdict=replace(passed.verdict, fidelity=fidelity)))
    assert (step.carried, step.worst, step.margin) == (True, "CPU pressure", pytest.approx(0.2))
    late = step_of(24_000, outcome(Status.INCONCLUSIVE))
    assert (late.carried, late.margin, late.worst) == (False, 0, "timers late (p99)")
    assert late.reason.startswith("machine: ")


def roomy() -> RunOutcome:
    """A run that passed, with a fifth of room."""
    passed = outcome()
    assert passed.verdict is not None
    figures = (FidelityFigure("CPU pressure", 60, 75, "%", True),)
    return replace(passed, verdict=replace(passed.verdict, fidelity=replace(passed.verdict.fidelity, figures=figures)))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[RunOutcome]:
    """Runs of the calibration come to these ends."""
    left: list[RunOutcome] = []
    monkeypatch.setattr(runner, "run_scenario", lambda *_, **__: left.pop(0))
    return left


def test_calibrate_tells_each_load_saves_and_shows(call: Call, loads: list[RunOutcome], state: Path) -> None:
    late = outcome(Status.INCONCLUSIVE)
    loads += [*[late] * 2, roomy(), *[late] * 6]  # of 8 hosts: what is not carried is tried twice
    loads += [roomy(), *[late] * 6]  # of 64
    loads += [roomy()] * 4  # both again, twice, in turn
    ended = call("calibrate")
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "mrc, 17,000 packets/s: not carried: machine: timers late (p99): observed 7 ms, expected <= 5 ms"
    assert lines[1] == lines[0]
    assert lines[2].startswith("mrc, 8,500 packets/s: held")
    assert lines[9].startswith("mrc, 64 hosts, 2,")
    assert ": held; the tightest" in lines[9]
    assert [line.startswith("mrc, 8,500 packets/s: held") for line in lines[16:20]] == [True, False, True, False]
    assert "8 hosts x 4 planes" in ended.out
    assert lines[-1] == f"saved in {state}"
    found = load_calibration()
    assert found is not None
    load = found.transports["mrc"]
    assert (load.pps, len(load.steps), found.stale()) == (pytest.approx(8_500 / MARGIN), 11, "")
    assert found.core == compiled.in_use()
    assert found.crowd is not None
    assert found.crowd.pps == found.crowd.steps[0].offered_pps / MARGIN
    assert machine_capacity(COSTS[1]).cost.crowd == machine_capacity(STANDARD_COST).cost.crowd == found.crowding
    shown = call("calibrate", "--show")
    assert shown.status == 0
    words = " ".join(shown.out.split())
    assert "carries 7,391 data packets/s of the standard training at any time, 0.36 to 0.48 CPUs, over mrc" in words
    assert "8,500 packets/s were held each of 3 times, at least 20% inside the limits" in words
    assert "times as much as one among 8: 64 hosts carry" not in words


def test_a_measured_transport_stays_when_others_are_measured_and_fail(
    call: Call, loads: list[RunOutcome], state: Path
) -> None:
    save(state, calibrated({"core": compiled.in_use()}, mrc=6_000))
    up_to_640_000 = 6
    loads += [*[roomy()] * (up_to_640_000 + HOLDS - 1), *[outcome(Status.INCONCLUSIVE)] * 2 * MOST_LOADS]
    ended = call("calibrate", "--transport", "tcp,roce")
    assert ended.status == 3
    assert "roce: not even " in ended.err
    found = load_calibration()
    assert found is not None
    assert list(found.transports) == ["mrc", "tcp"]
    assert found.transports["tcp"].pps > TRANSPORTS["tcp"].cost.usual_pps
    shown = " ".join(call("calibrate", "--show").out.split())
    assert "carries 6,000 data packets/s of the standard training at any time, 0.28 to 0.67 CPUs, over mrc" in shown
    assert "carries at least" in shown


@pytest.mark.parametrize("other", [{"cpus": 999}, {"core": "another"}, {"core": ""}])
def test_a_calibration_of_another_machine_or_core_is_not_added_to(
    call: Call, loads: list[RunOutcome], state: Path, other: dict[str, Any]
) -> None:
    save(state, calibrated({"core": compiled.in_use(), **other}))
    loads += [roomy()] * (MOST_LOADS + HOLDS)
    assert call("calibrate", "--transport", "tcp").status == 0
    found = load_calibration()
    assert found is not None
    assert list(found.transports) == ["tcp"]


@pytest.mark.parametrize(("words", "said"), [("tpc", "did you mean 'tcp'"), ("mrc,quic", "'quic'"), ("", "mrc, roce")])
def test_an_unknown_transport_is_refused_before_anything_is_measured(call: Call, words: str, said: str) -> None:
    ended = call("calibrate", "--transport", words)
    assert ended.status == 2
    assert "--transport" in ended.err
    assert said in ended.err


def held(pps: float) -> Step:
    return Step(pps, True, ROOM, "")


def close(pps: float) -> Step:
    return Step(pps, True, ROOM / 2, "")


def late(pps: float) -> Step:
    return Step(pps, False, 0, "")


@pytest.mark.parametrize(
    ("steps", "lasting", "refused"),
    [
        ([held(10), late(20)], 10, 20),
        ([held(10), close(15), late(20)], 10, 20),  # 15 may be carried
        ([held(10), held(15), late(15), late(20)], 10, 20),
        ([late(10), held(15), late(20)], 0, 20),
        ([held(10), late(15), close(20)], 10, 20),
        ([close(10)], 0, 10),
    ],
)
def test_what_lasts_was_always_held_and_what_is_refused_was_never_carried(
    steps: list[Step], lasting: float, refused: float
) -> None:
    assert (lasting_pps(steps), refused_pps(steps)) == (lasting, refused)
    assert (lasting_pps(steps[::-1]), refused_pps(steps[::-1])) == (lasting, refused)


STEPS = st.builds(Step, st.floats(1_500, 1e6), st.booleans(), st.floats(0, 1), st.just(""))


@given(st.lists(STEPS, min_size=1, max_size=12), st.floats(1_500, 1e6))
def test_a_run_that_fails_never_raises_what_is_promised(steps: list[Step], pps: float) -> None:
    assert lasting_pps([*steps, late(pps)]) <= lasting_pps(steps)
    assert lasting_pps(steps) <= refused_pps(steps) or not any(step.carried for step in steps)


def test_a_load_that_is_held_twice_and_then_not_gives_way_to_a_lower_one() -> None:
    answers = {20_000.0: [held, late], 20_000 / CLOSE_ENOUGH: [held] * HOLDS}
    trials = Trials(lambda pps: answers[pps].pop(0)(pps), [held(20_000), late(21_500)])
    confirm((trials,))
    assert lasting_pps(trials.steps) == 20_000 / CLOSE_ENOUGH
    assert due_pps(trials.steps) == 0
    assert not any(answers.values())


def test_a_machine_that_never_holds_a_load_is_not_tried_for_ever() -> None:
    trials = Trials(close, [close(20_000), late(21_500)])
    confirm((trials,))
    assert (len(trials.steps), lasting_pps(trials.steps)) == (2 + MOST_ROUNDS, 0)


def test_loads_without_room_are_not_saved(call: Call, loads: list[RunOutcome], state: Path) -> None:
    loads += [outcome(), *[outcome(Status.INCONCLUSIVE)] * 8, *[outcome()] * MOST_ROUNDS]
    ended = call("calibrate", "--transport", "tcp")
    assert ended.status == 3
    assert "tcp: no load was carried with room each time" in ended.err
    assert not state.exists()


def test_a_file_of_before_is_read_by_its_steps_alone(state: Path) -> None:
    now = calibrated(mrc=10_000)
    many = Crowd("2026-11-28", 64, (Step(4_000, True, 0.2, ""), Step(4_400, False, 0, "")))
    save(state, replace(now, crowd=many))
    value = json.loads(state.read_text())
    value["transports"]["mrc"]["pps"] = 37_077  # 1 % inside its limits
    value["crowd"] |= {"pps": 8_866, "crowd": 1.03}
    state.write_text(json.dumps(value))
    assert load_calibration() == replace(now, crowd=many)
    capacity = machine_capacity(STANDARD_COST)
    assert (capacity.pps, capacity.cost.crowd != 1.03) == (pytest.approx(10_000), True)
    assert capacity.spread == pytest.approx(2 / 1, rel=0.25)


def test_a_machine_that_carries_nothing_is_told_so_and_nothing_is_saved(
    call: Call, loads: list[RunOutcome], state: Path
) -> None:
    loads += [outcome(Status.INCONCLUSIVE)] * 2 * MOST_LOADS
    ended = call("calibrate")
    assert ended.status == 3
    assert "mrc: not even 2,125 packets/s were carried" in ended.err
    assert not state.exists()


def test_ctrl_c_ends_it_and_saves_nothing(call: Call, loads: list[RunOutcome], state: Path) -> None:
    loads += [outcome(), RunOutcome(ExitCode.INTERRUPTED, 1.0)]
    assert call("calibrate").status == 130
    assert not state.exists()


def test_show_before_any_calibration_says_what_to_do(call: Call, state: Path) -> None:
    ended = call("calibrate", "--show")
    assert ended.status == 2
    assert ended.said == [f"mrc-testbed: --show: there is no {state}; run `mrc-testbed calibrate`"]
