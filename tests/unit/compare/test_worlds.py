"""Both worlds side by side: what agrees, what differs, what is not known, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.app import run as runner
from mrc_testbed.testbed.app import worlds as worlds_app
from mrc_testbed.testbed.app.worlds import pairs_of_scenarios
from mrc_testbed.testbed.compare.figures import RunFigures
from mrc_testbed.testbed.compare.runs import load_runs
from mrc_testbed.testbed.compare.tolerances import TOLERANCES, Tolerance
from mrc_testbed.testbed.compare.worlds import Agreement, Reads, agreement
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from tests.unit.calls import Call
from tests.unit.checks.test_folder import HOSTS, SCENARIO, RunFolder
from tests.unit.outcomes import outcome
from tests.unit.recorded import record_run

USUAL = [1.0, 1.0, 1.0, 1.2, 1.1, 1.0, 1.0, 1.0]
VIRTUAL = SCENARIO.replace("name: small\n", "name: small\nworld: virtual\n")


def made(folder: Path, scenario: str, factor: float = 1.0, **rest: Any) -> Path:
    """A run folder; `factor` of its step times."""
    run = RunFolder(expect=["qp_errors == 0"], scenario=scenario, durations=[factor * one for one in USUAL])
    for key, value in rest.items():
        setattr(run, key, value)
    return record_run(folder / f"20260101T00000{len(list(folder.iterdir()))}Z-small", run)


def late(folder: Path) -> Path:
    """A run on a machine that did not keep time."""
    fidelity = {**(RunFolder().fidelity or {}), "lateness_p99_ns": dict.fromkeys(HOSTS, 90_000_000)}
    return made(folder, SCENARIO, fidelity=fidelity)


@dataclass
class Recorded:
    """In place of runs: what was to be run, and where each is said to be."""

    folders: list[Path]
    asked: list[tuple[Scenario, Path | None]] = field(default_factory=list)

    def __call__(self, scenario: Scenario, *rest: Any) -> RunOutcome:
        self.asked.append((scenario, rest[-1]))
        return outcome(folder=str(self.folders[len(self.asked) - 1]))


def test_runs_that_are_alike_agree(tmp_path: Path, call: Call) -> None:
    runs = [made(tmp_path, SCENARIO), made(tmp_path, VIRTUAL, 0.97)]
    ended = call("worlds", *map(str, runs))
    assert (ended.status, ended.err) == (0, "")
    assert "small: agrees" in ended.out
    assert "1 scenario: 1 agrees" in ended.out


def test_a_figure_beyond_its_tolerance_is_named(tmp_path: Path, call: Call) -> None:
    runs = [made(tmp_path, SCENARIO), made(tmp_path, VIRTUAL, 0.9)]
    ended = call("worlds", *map(str, runs))
    assert ended.status == 1
    assert "small: differs: step, clean median, step, median, goodput, clean" in ended.out


def test_the_order_of_runs_does_not_matter_and_repeats_are_one_side(tmp_path: Path, call: Call) -> None:
    runs = [made(tmp_path, VIRTUAL), made(tmp_path, SCENARIO, 1.02), made(tmp_path, SCENARIO, 1.04)]
    ended = call("worlds", *map(str, runs), "--json", "-")
    (one,) = json.loads(ended.out)["scenarios"]
    (clean,) = (each for each in one["figures"] if each["key"] == "step_time.median clean")
    assert (ended.status, len(one["kernel"]), len(one["virtual"])) == (0, 2, 1)
    assert clean["kernel"]["values"] == pytest.approx([1.02e9, 1.04e9])
    assert clean["virtual"]["values"] == pytest.approx([1e9])
    assert clean["allowed"] == pytest.approx(0.05 * 1.03e9)


def test_a_call_that_is_killed_before_its_last_scenario_does_not_agree(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `--json` has after each scenario; an older file is gone before anything runs."""
    worlds = [world.replace("name: small", f"name: {name}") for name in ("one", "two") for world in (SCENARIO, VIRTUAL)]
    (tmp_path / "runs").mkdir()
    runs = [made(tmp_path / "runs", world) for world in worlds]
    report = tmp_path / "worlds.json"
    report.write_text('{"reads": "agrees"}')
    seen: list[tuple[str, list[str]]] = []

    def completed(pair: worlds_app.Pair, *_: Any) -> Agreement:
        whole = json.loads(report.read_text())
        seen.append((whole["reads"], whole["not_run"]))
        return agreement(pair.runs)

    monkeypatch.setattr(worlds_app, "completed", completed)
    assert call("worlds", *map(str, runs), "--json", str(report)).status == 0
    assert [(reads, len(names)) for reads, names in seen] == [("not known", 2), ("not known", 1)]
    assert json.loads(report.read_text())["reads"] == "agrees"


def test_three_runs_on_the_kernel_tell_how_much_it_varies_itself(tmp_path: Path, call: Call) -> None:
    runs = [made(tmp_path, SCENARIO, factor) for factor in (0.95, 1.0, 1.05)]
    assert call("worlds", *map(str, [*runs, made(tmp_path, VIRTUAL, 0.9)])).status == 0


@pytest.mark.parametrize(("given_world", "missing"), [(SCENARIO, WorldKind.VIRTUAL), (VIRTUAL, WorldKind.KERNEL)])
def test_a_run_is_replayed_in_the_other_world(
    given_world: str, missing: WorldKind, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = made(tmp_path, given_world)
    run = Recorded([made(tmp_path, VIRTUAL if missing is WorldKind.VIRTUAL else SCENARIO)])
    monkeypatch.setattr(runner, "run_scenario", run)
    assert call("worlds", str(there)).status == 0
    ((scenario, replayed),) = run.asked
    assert (scenario.world, replayed) == (missing, there)


def test_a_scenario_is_run_on_the_kernel_and_its_schedule_in_virtual_time(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(VIRTUAL + "  - qp_errors == 0\n")
    out = tmp_path / "runs"
    out.mkdir()
    run = Recorded([made(out, SCENARIO), made(out, VIRTUAL)])
    monkeypatch.setattr(runner, "run_scenario", run)
    assert call("worlds", str(file), "--seed", "3").status == 0
    assert [(one.world, one.seed) for one, _ in run.asked] == [(WorldKind.KERNEL, 3), (WorldKind.VIRTUAL, 1)]
    assert [replayed for _, replayed in run.asked] == [None, run.folders[0]]


def test_a_kernel_run_that_stays_inconclusive_is_not_replayed(tmp_path: Path, call: Call) -> None:
    ended = call("worlds", str(late(tmp_path)))
    assert ended.status == 3
    assert "small: not known: kernel: machine: timers late (p99): observed 90 ms" in ended.out


def test_inconclusive_runs_beside_others_do_not_count(tmp_path: Path, call: Call) -> None:
    runs = [late(tmp_path), made(tmp_path, SCENARIO), made(tmp_path, VIRTUAL)]
    ended = call("worlds", *map(str, runs), "--json", "-")
    (one,) = json.loads(ended.out)["scenarios"]
    assert (ended.status, [run["counted"] for run in one["kernel"]]) == (0, [False, True])


@pytest.mark.parametrize("lacking", [1, 2])  # a repeat on the kernel, and the only run in virtual time
def test_what_one_run_lacks_is_not_0_in_both_worlds(tmp_path: Path, lacking: int) -> None:
    key = "unrestored_evs"
    runs = load_runs([made(tmp_path, SCENARIO), made(tmp_path, SCENARIO), made(tmp_path, VIRTUAL)])
    runs = [replace(run, figures=RunFigures({**run.figures.values, key: 0.0})) for run in runs]
    assert "EVs not restored" in agreement(runs).zero
    others = {one: value for one, value in runs[lacking].figures.values.items() if one != key}
    runs[lacking] = replace(runs[lacking], figures=RunFigures(others, {key: "no final counters"}))
    found = agreement(runs)
    assert "EVs not restored" not in found.zero
    assert [row.reads for row in found.rows if row.row.figure.key == key] == [Reads.UNKNOWN]
    assert found.reads is Reads.AGREES


def test_cells_of_one_name_say_what_sets_them_apart(tmp_path: Path, call: Call) -> None:
    for rtt in ("20ms", "40ms"):
        for scenario in (SCENARIO, VIRTUAL):
            made(tmp_path, scenario.replace("rtt: 20ms", f"rtt: {rtt}"))
    ended = call("worlds", *map(str, sorted(tmp_path.iterdir())), "--json", "-")
    assert [one["name"] for one in json.loads(ended.out)["scenarios"]] == ["small [rtt=20ms]", "small [rtt=40ms]"]


def test_a_machine_without_a_fabric_says_so(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(_: object) -> None:
        raise MissingCapability("veth is missing", "load its module")

    monkeypatch.setattr(capabilities, "require", lacking)
    ended = call("worlds", "quickstart", "--out", str(tmp_path))
    assert ended.status == 4
    assert ended.said[-1].startswith("mrc-testbed: veth is missing")
    assert "--virtual" in ended.said[-1]


def test_what_speaks_kernel_tcp_is_refused_or_left_out(tmp_path: Path, call: Call) -> None:
    over_tcp = SCENARIO.replace("workload:", "transport: tcp\nrouting: ecmp-static\nworkload:")
    folder = made(tmp_path, over_tcp, events=[])
    assert call("worlds", str(folder)).said == [
        f"mrc-testbed: {folder}: speaks the kernel's TCP, which virtual time does not have"
    ]
    pairs, left_out = pairs_of_scenarios([Path("stories/lost-nic-port")], [], None)
    assert [pair.name for pair in pairs] == ["lost-nic-port [mrc]", "lost-nic-port [roce-lossy]"]
    assert left_out == ["lost-nic-port [tcp]"]


def test_a_run_is_compared_as_it_was(tmp_path: Path, call: Call) -> None:
    ended = call("worlds", str(made(tmp_path, SCENARIO)), "--seed", "4")
    assert (ended.status, ended.said) == (
        2,
        ["mrc-testbed: --set, --seed and --variants change scenarios; a run is compared as it was"],
    )


@pytest.mark.parametrize(("key", "kernel", "virtual"), [("bytes_wrong", 4096.0, 0.0), ("job_died", 1.0, 1.0)])
def test_what_must_be_equal_is_not_widened_by_runs_that_differ_among_themselves(
    key: str, kernel: float, virtual: float
) -> None:
    runs = [0.0, 0.0, kernel]
    assert TOLERANCES[key].allowed(runs, virtual) == 0 < abs(fmean(runs) - virtual)


COUNTS = st.integers(0, 10**6).map(float)


@given(COUNTS, COUNTS, st.sampled_from(list(TOLERANCES.values())))
def test_a_tolerance_is_the_same_both_ways_and_holds_for_equal_figures(
    one: float, other: float, tolerance: Tolerance
) -> None:
    assert tolerance.allowed([one], other) == tolerance.allowed([other], one) >= 0
