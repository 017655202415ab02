"""A whole run in virtual time: the same bytes each time, the same folder as the kernel's, and one sentence for no."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import ExitCode, ScenarioError
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.planned import recorded_scenario
from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotReader
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.scenario.cells.cells import load_cells
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.virtual.fabric import VirtualFabric

ROOT = Path(__file__).parents[3]
SMALL = ROOT / "tests/unit/small_virtual.yaml"
FIGURES = "08f4229b0f26f6bf"
"""Of the files with figures. It changes with whatever changes figures: say which in the changelog."""
WITH_FIGURES = ("completions.csv", "counters.json", "events.jsonl", "ports.csv", "samples.csv", "waits.csv")
PYTHON = "import sys; from mrc_testbed.testbed.cli import main; sys.argv = ['mrc-testbed', *sys.argv[1:]]; main()"


def quiet() -> PatientConsole:
    return PatientConsole(file=open(os.devnull, "w", encoding="utf-8"))


def run(out: Path, *changes: str) -> RunOutcome:
    return run_scenario(load_scenario(SMALL, ["world=virtual", *changes]), out, True, quiet())


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> RunOutcome:
    return run(tmp_path_factory.mktemp("virtual"))


def folder_of(outcome: RunOutcome) -> Path:
    assert outcome.folder is not None
    return outcome.folder


def test_a_batch_keeps_no_fabric_but_the_last(tmp_path: Path) -> None:
    """The objects of a run hold each other, and nothing looks for cycles while one runs."""
    for number in range(3):
        run(tmp_path / str(number))
    assert sum(isinstance(found, VirtualFabric) for found in gc.get_objects()) <= 1


def in_another_python(place: Path, hash_seed: int) -> Path:
    """The run folder of the same run, by a program whose sets and dicts of text are in another order.

    In a results folder of its own: there a second run of the same second has a longer name, and the page has sizes of
    files with that name in them.
    """
    out = place / str(hash_seed)
    out.mkdir()
    command = [sys.executable, "-c", PYTHON, "run", str(SMALL), "--virtual", "-q", "--out", str(out)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    subprocess.run(command, env=environment, cwd=out, check=True, capture_output=True)
    return (out / "latest").resolve()


def content(folder: Path) -> dict[str, str]:
    """Every file but for where the folder is."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    where = (str(folder), folder.name)
    found = {}
    for path in files:
        text = path.read_text(encoding="utf-8")
        for word in where:
            text = text.replace(word, "RUN")
        found[str(path.relative_to(folder))] = text
    return found


def figures_of(folder: Path) -> str:
    """A digest of the figures, however snapshots are written."""
    text = content(folder)
    rows = map(SnapshotReader().whole, map(json.loads, text["events.jsonl"].splitlines()))
    text["events.jsonl"] = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return sha256("".join(text[name] for name in WITH_FIGURES).encode()).hexdigest()[:16]


def test_it_passes_and_says_in_which_world_it_was(outcome: RunOutcome) -> None:
    assert outcome.exit_code is ExitCode.PASS
    folder = folder_of(outcome)
    assert json.loads((folder / "environment.json").read_text())["world"] == "virtual"
    assert "virtual time: " in (folder / "summary.txt").read_text()
    assert "computed in virtual time" in (folder / "report.html").read_text()
    assert "kept time" not in (folder / "summary.txt").read_text()


def test_the_same_run_is_the_same_bytes(tmp_path: Path) -> None:
    one, other = (in_another_python(tmp_path, seed) for seed in (1, 2))
    assert one != other
    first, second = content(one), content(other)
    assert first.keys() == second.keys()
    for name, text in first.items():
        at = next((at for at, pair in enumerate(zip(text, second[name], strict=False)) if pair[0] != pair[1]), 0)
        assert text == second[name], (name, text[at - 200 : at + 100], second[name][at - 200 : at + 100])


def test_its_figures_are_those_of_every_machine(outcome: RunOutcome) -> None:
    assert figures_of(folder_of(outcome)) == FIGURES


def test_another_seed_is_another_run(outcome: RunOutcome, tmp_path: Path) -> None:
    other = folder_of(run(tmp_path, "seed=12"))
    assert content(other)["events.jsonl"] != content(folder_of(outcome))["events.jsonl"]


def test_a_replay_is_the_same_again(outcome: RunOutcome, tmp_path: Path) -> None:
    folder = folder_of(outcome)
    again = folder_of(run_scenario(recorded_scenario(folder), tmp_path, True, quiet(), replays=folder))
    for name in WITH_FIGURES:
        assert content(again)[name] == content(folder)[name], name


def test_a_run_can_change_worlds_when_it_is_replayed(outcome: RunOutcome) -> None:
    folder = folder_of(outcome)
    assert recorded_scenario(folder).world is WorldKind.VIRTUAL
    other = recorded_scenario(folder, virtual=False)
    assert other.world is WorldKind.KERNEL
    assert other.occurrences == recorded_scenario(folder).occurrences
    assert "world: kernel" in other.dump_yaml()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("transport=tcp", "tcp is the kernel's own, and virtual time has no kernel"),
        ("fabric.switch=plain", "plain shapers are the kernel's own"),
        ("world=moon", "unknown world .moon."),
    ],
)
def test_what_only_the_kernel_has_is_refused(change: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        load_scenario(SMALL, ["world=virtual", change])


def test_variants_over_kernel_tcp_are_left_out() -> None:
    cells = load_cells(ROOT / "scenarios/stories/hash-collisions.yaml", ["world=virtual"])
    assert "tcp" not in [cell.scenario.variant for cell in cells]
    (told,) = cells[0].scenario.left_out
    assert told.startswith("variant tcp is left out")


@pytest.mark.python_core
def test_an_endpoint_that_fails_ends_the_run_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("of the endpoint")

    monkeypatch.setattr("mrc_testbed.hosts.mrc.endpoint.Endpoint.handle_timeout", fail)
    ended = run(tmp_path)
    assert ended.exit_code is ExitCode.INCONCLUSIVE
    assert "the endpoint failed: ZeroDivisionError: of the endpoint" in ended.reason
    logs = [path.read_text() for path in (folder_of(ended) / "logs").iterdir()]
    assert any("Traceback" in text for text in logs)


def test_a_host_that_is_busy_with_each_packet_is_slower(outcome: RunOutcome, tmp_path: Path) -> None:
    slow = run(tmp_path, "virtual.busy=2ms", "faults=[]", "expect=[qp_errors == 0]")
    fast = run(tmp_path, "faults=[]", "expect=[qp_errors == 0]")
    assert slow.exit_code is fast.exit_code is ExitCode.PASS
    ended = [max(int(line.split(",")[3]) for line in rows(each)) for each in (slow, fast)]
    assert ended[0] > 1.2 * (ended[1] - 10**9)
    assert late_share(slow) > 0.1
    assert late_share(fast) == 0


def late_share(outcome: RunOutcome) -> float:
    """Of the packets of the slowest host, the part that it handled late."""
    hosts = json.loads((folder_of(outcome) / "counters.json").read_text(encoding="utf-8"))["hosts"].values()
    return max(host["counters"]["packets_late"] / host["counters"]["packets_in"] for host in hosts)


def test_turns_of_hosts_are_a_little_late_unless_they_are_to_be_exact(outcome: RunOutcome, tmp_path: Path) -> None:
    exact = run(tmp_path, "virtual.lateness=0s")
    late_ns = [
        host["lateness"]["max_ns"]
        for each in (outcome, exact)
        for host in json.loads((folder_of(each) / "counters.json").read_text())["hosts"].values()
    ]
    assert min(late_ns[:4]) > 100_000
    assert max(late_ns[4:]) == 0


def rows(outcome: RunOutcome) -> list[str]:
    return (folder_of(outcome) / "completions.csv").read_text().splitlines()[1:]


def test_a_port_dead_at_the_start_carries_nothing_until_it_is_healed(tmp_path: Path) -> None:
    """As tests/emu/test_cold_start.py asks it of the kernel."""
    dead = 'faults=[{at: cold-start, link-down: "h0:p1-t0-0", for: 200ms, name: port}]'
    folder = folder_of(run(tmp_path, dead))
    events, history = (
        [json.loads(line) for line in (folder / name).read_text().splitlines()]
        for name in ("events.jsonl", "history.jsonl")
    )
    done = {(line["op"], line["type"]): line["t_ns"] for line in history if line.get("fault") == "port"}
    ports = [one for one in events if one["event"] == "port_state"]
    own = [one for one in ports if (one["host"], one["peer"], one["plane"]) == ("h0", None, 1)]
    assert [one["state"] for one in own] == ["DOWN", "RISING", "UP"]
    assert done["inject", "ok"] <= own[0]["t_ns"] < done["heal", "invoke"] <= own[1]["t_ns"]
    states = [one for one in events if one["event"] == "ev_state" and one["plane"] == 1]
    assert [one for one in states if one["t_ns"] < done["heal", "invoke"]] == [], "no packet was spent on the dead port"
