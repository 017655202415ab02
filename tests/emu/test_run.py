"""Runs from the command line: they pass, and whatever is done to them they end soon, say why, and leave nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from mrc_testbed.hosts import compiled
from tests.documented import undocumented
from tests.emu.runs import COMMAND, DAEMON, SMALL, Run, wait_for

FLAP = """
faults:
  - {at: 500ms, link-flap: p1-t0-0:p1-t1-0, period: 1s, count: 2, name: flap}
  - {at: 1s, switch-reboot: p0-t1-1, boot: 1s, name: reboot}
"""
ROCE = """
transport: roce
qps: 4
faults:
  - {at: 500ms, plane-loss: p0, loss: 2%, for: 1s, name: loss}
"""


def test_a_run_with_faults_passes_and_leaves_its_evidence(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=20, extra=FLAP)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    files = {path.name for path in run.folder.iterdir()}
    assert files >= {
        *("scenario.yaml", "plan.json", "environment.json", "history.jsonl", "events.jsonl", "samples.csv"),
        *("completions.csv", "counters.json", "fidelity.json", "verdict.json", "summary.txt", "logs"),
    }
    assert "owner.json" not in files
    assert undocumented(run.folder) == [], "docs/results.md knows every file, key and type"
    phases = [line["phase"] for line in run.history() if line["op"] == "phase" and line["type"] == "ok"]
    assert phases == ["build", "verify", "warm up", "barrier", "run", "heal", "settle", "tear down"]
    done = [(line["op"], line["fault"]) for line in run.history() if line.get("fault") and line["type"] == "ok"]
    occurrence = ("inject", "heal", "read-back")
    assert sorted(done) == sorted([(op, "flap") for op in occurrence * 2] + [(op, "reboot") for op in occurrence])
    assert "Traceback" not in run.output + run.errors


@pytest.mark.nightly
def test_a_host_cut_off_for_good_breaks_its_qp_and_that_is_a_result(tmp_path: Path) -> None:
    cut = "faults:\n  - {at: 300ms, link-down: [h0:p0-t0-0, h0:p1-t0-0], for: 60s}\n"
    run = Run(tmp_path, steps=30, extra=cut, options=("--set", "fabric.rtt=5ms"))
    assert run.finish() in (1, 3)
    held = {check["name"]: check["unbelieved"] or check["status"] for check in run.verdict["checks"]}
    assert held["qp_errors == 0"] == "fail"
    assert held["data_on_bad_ev == 0"] == held["the fabric was as planned"] == "pass"
    assert held["every fault was injected and healed"] == "pass"
    assert run.verdict["fidelity"]["figures"]
    assert not run.verdict["fidelity"]["caveat"]
    finished = next(check for check in run.verdict["checks"] if "finished" in check["name"])
    assert "all ports down" in " ".join(run.output.split())
    assert "QP " in finished["why"] or finished["unbelieved"]


BROKEN = """
name: broken
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - train: {steps: 40, compute: 100ms, allreduce: 256KiB}
faults:
  - {at: 2s, link-down: ["h0:p0-t0-0", "h0:p1-t0-0"], for: 60s}
expect:
  - qp_errors >= 1
  - unfinished >= 1
"""


@pytest.mark.nightly
def test_a_scenario_whose_right_outcome_is_a_broken_qp_passes(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=BROKEN)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    places = [check["place"] for check in run.verdict["checks"] if check["line"]]
    assert [place.rpartition(":")[2] for place in places] == ["9", "10"]
    assert all(place.startswith(str(tmp_path)) for place in places), "the file that was run, not its copy"


@pytest.mark.skipif(
    not (Path(compiled.folder()).is_dir() or os.environ.get("CI")), reason="the core is not compiled here"
)
@pytest.mark.parametrize(
    "scenario", [SMALL + FLAP, SMALL.replace("  - data_on_bad_ev == 0\n", ROCE)], ids=["mrc", "roce"]
)
@pytest.mark.nightly(keep=1)
def test_a_run_passes_with_the_compiled_core_in_every_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str
) -> None:
    monkeypatch.setenv(compiled.SWITCH, "compiled")
    run = Run(tmp_path, steps=20, scenario=scenario)
    run.wait_until_step(1)
    daemons = [Path(f"/proc/{pid}/maps").read_text(encoding="utf-8") for pid in run.pids(DAEMON)]
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert daemons
    assert all(compiled.folder() in maps for maps in daemons)
    assert json.loads((run.folder / "environment.json").read_text(encoding="utf-8"))["core"] == "compiled"


@pytest.mark.nightly
def test_two_runs_at_once_never_meet(tmp_path: Path) -> None:
    runs = [Run(tmp_path / name, steps=10) for name in ("one", "two")]
    for run in runs:
        run.finish()
        run.assert_passed_or_machine_was_busy()


def test_a_killed_daemon_ends_the_run_with_its_host_named(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=1000)
    run.wait_until_step(2)
    os.kill(run.pids(DAEMON)[0], signal.SIGKILL)
    start = time.monotonic()
    assert run.finish() == 3
    assert time.monotonic() - start < 20
    assert run.verdict["verdict"] == "inconclusive"
    assert "the endpoint daemon was killed by SIGKILL" in run.history()[-1]["error"]
    assert run.history()[-1]["error"].startswith(("h0: ", "h1: "))
    assert "was killed by SIGKILL" in " ".join(run.output.split())


@pytest.mark.nightly
def test_a_killed_shell_of_a_node_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=15)
    run.wait_until_step(1)
    os.kill(run.pids("mininet:p1-t1-0")[0], signal.SIGKILL)
    assert run.finish() == 3
    assert run.history()[-1]["error"] == "p1-t1-0: enter its namespace: its shell is gone; was it killed?"
    assert "Traceback" not in run.output + run.errors


def test_root_lifts_the_limit_of_open_files(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=2, wrapper=["sh", "-c", 'ulimit -n 40; exec "$0" "$@"'])
    if run.finish() == 4:  # not root of every container may
        assert "open files, and the hard limit" in run.errors
    else:
        run.assert_passed_or_machine_was_busy()


@pytest.mark.nightly
def test_a_rank_that_stops_ends_in_the_time_limit(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=30, extra="time_limit: 6s\n")
    run.wait_until_step(2)
    stopped = run.pids(DAEMON)[0]
    os.kill(stopped, signal.SIGSTOP)
    assert run.finish(timeout_s=40) in (1, 3)
    assert run.verdict["verdict"] != "pass"
    assert "h0" in run.history()[-1]["error"] or "h1" in run.history()[-1]["error"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.nightly(keep=1)
def test_an_interrupted_run_keeps_its_results(tmp_path: Path, number: signal.Signals) -> None:
    run = Run(tmp_path, steps=1000)
    run.wait_until_step(1)
    os.killpg(run.process.pid, number)  # as the terminal does: to every process of the foreground group
    assert run.finish() == 130
    assert run.verdict["verdict"] == "inconclusive"
    assert "interrupted" in run.history()[-1]["error"]
    assert "Traceback" not in run.output + run.errors


@pytest.mark.nightly
def test_kill_9_of_the_supervisor_is_told(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=1000)
    run.wait_until_step(1)
    commands = run.pids("mrc-testbed run")
    assert len(commands) == 3, "caller, warden, supervisor"
    os.kill(commands[2], signal.SIGKILL)
    assert run.finish() == 3
    assert run.history()[-1]["error"] == "the supervisor of the run was killed by SIGKILL"


def test_clean_finishes_a_run_that_was_killed_as_a_whole(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=1000)
    run.wait_until_step(1)
    os.kill(run.process.pid, signal.SIGKILL)
    run.finish()
    assert not (run.folder / "verdict.json").exists()
    cleaned = subprocess.run([*COMMAND, "clean", "--out", str(run.out)], capture_output=True, text=True, check=True)
    assert "was killed; verdict inconclusive" in cleaned.stdout
    assert run.verdict["verdict"] == "inconclusive"
    again = subprocess.run([*COMMAND, "clean", "--out", str(run.out)], capture_output=True, text=True, check=True)
    assert "nothing to clean" in again.stdout


@pytest.mark.nightly
def test_clean_leaves_a_living_run_alone(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=15)
    run.wait_until_step(1)
    cleaned = subprocess.run([*COMMAND, "clean", "--out", str(run.out)], capture_output=True, text=True, check=True)
    assert "nothing to clean" in cleaned.stdout
    run.finish()
    run.assert_passed_or_machine_was_busy()


@pytest.mark.nightly
def test_a_full_disk_ends_the_run(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=160k tmpfs "$0"; exec "$@"'
    (tmp_path / "results").mkdir()
    wrapper = ["unshare", "--mount", "sh", "-c", script, str(tmp_path / "results")]
    run = Run(tmp_path, steps=1000, wrapper=wrapper)
    assert run.finish(timeout_s=60) not in (0, 130)
    assert "No space left on device" in run.errors
    assert "Traceback" not in run.output + run.errors


def test_without_root_it_says_so() -> None:
    # A user namespace without a mapping: the same files can be read, but the user is nobody.
    ran = subprocess.run(
        ["unshare", "--user", *COMMAND, "run", "scenarios/quickstart.yaml"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 4
    assert "root" in ran.stderr
    assert "sudo" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_without_mnexec_it_says_so(tmp_path: Path) -> None:
    for tool in ("ip", "tc", "sh", "unshare", "ifconfig"):
        found = shutil.which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    ran = subprocess.run(
        [*COMMAND, "run", "scenarios/quickstart.yaml", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
    )
    assert ran.returncode == 4
    assert "mnexec is missing" in ran.stderr
    assert "mininet" in ran.stderr


@pytest.mark.nightly
def test_a_reader_that_leaves_does_not_stop_a_run(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=5)
    assert run.process.stdout is not None
    run.process.stdout.close()
    run.process.stdout = None
    run.finish()
    run.assert_passed_or_machine_was_busy()


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-", "<&- >&- 2>&-"])
@pytest.mark.nightly
def test_output_that_goes_nowhere_does_not_stop_a_run(tmp_path: Path, redirection: str) -> None:
    run = Run(tmp_path, steps=5, wrapper=["sh", "-c", f'exec "$0" "$@" {redirection}'])
    run.finish()
    run.assert_passed_or_machine_was_busy()
    told = f"mrc-testbed: standard output: No space left on device; read {run.folder}/summary.txt\n"
    errors = [line for line in run.errors.splitlines(keepends=True) if not line.startswith("warning: a plane holds")]
    assert errors == ([told] if "full" in redirection else [])


def test_the_wait_helper_fails_in_time() -> None:
    with pytest.raises(AssertionError, match="nothing"):
        wait_for(lambda: False, "nothing", seconds=0.1)


def test_results_belong_to_the_user_behind_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    run = Run(tmp_path, steps=2)
    run.finish()
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in (run.folder, *run.folder.rglob("*"))}
    assert owners == {(12345, 12346)}
