"""Cells as processes of their own, tied to who started them; the engine of this machine; keys; where jobs may go."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import ClassVar

import pytest

from mrc_testbed.testbed.app.hunt.subject import HuntRequest
from mrc_testbed.testbed.app.hunt.trial import BROKEN_OFF, Candidate, Outcome
from mrc_testbed.testbed.errors import ExitCode, MissingCapability, UsageError
from mrc_testbed.testbed.sweep import hunter, keys
from mrc_testbed.testbed.sweep.cell import CellSpec, run_cell
from mrc_testbed.testbed.sweep.drive import DriveLimits, SweepProgress, drive
from mrc_testbed.testbed.sweep.engine import CellJob, Ended
from mrc_testbed.testbed.sweep.engine_local import LocalEngine
from mrc_testbed.testbed.sweep.folder import SweepFolder
from mrc_testbed.testbed.sweep.placing import Placing, WorkerFacts, wants
from mrc_testbed.testbed.version import install_extra
from tests.unit.calls import Call
from tests.unit.sweep.swept import planned

ROOT = Path(__file__).parents[3]
SHELL = """#!/bin/sh
# SCENARIO --quiet --out OUT --cell FILE --tied 0
{action}
printf '{{"verdict": "{verdict}", "exit_code": {code}, "another_try": {again}, "seconds": 0.1, "run": null,
 "reason": "", "machine": {{"host": "here"}}}}' > "$6"
"""


@pytest.fixture
def stub(tmp_path: Path) -> Callable[..., tuple[str, ...]]:
    def made(action: str = ":", verdict: str = "pass", code: int = 0, again: str = "false") -> tuple[str, ...]:
        path = tmp_path / "stub.sh"
        path.write_text(SHELL.format(action=action, verdict=verdict, code=code, again=again))
        return ("/bin/sh", str(path))

    return made


class Seen:
    """What a sweep tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def show(self, progress: SweepProgress) -> None:
        """Nobody looks."""

    def line(self, text: str) -> None:
        self.lines.append(text)


def driven(folder: SweepFolder, command: tuple[str, ...], retries: int = 2, jobs: int = 2) -> SweepProgress:
    return drive(folder, folder.cells, LocalEngine(jobs), DriveLimits(retries, command=command), Seen())


def test_a_sweep_runs_here_and_is_not_run_again(tmp_path: Path, stub: Callable[..., tuple[str, ...]]) -> None:
    folder = planned(tmp_path, 3)
    assert driven(folder, stub()).verdicts == {"pass": 3}
    assert driven(folder, stub()).tries == 0
    assert folder.exit_code(folder.cells) is ExitCode.PASS


def test_a_fail_is_not_retried_and_a_spoilt_cell_is(tmp_path: Path, stub: Callable[..., tuple[str, ...]]) -> None:
    failing, spoilt = planned(tmp_path, 1, "failing"), planned(tmp_path, 1, "spoilt")
    assert driven(failing, stub(verdict="fail", code=1, again="true")).tries == 1
    assert driven(spoilt, stub(verdict="inconclusive", code=3, again="true")).tries == 3
    assert len(spoilt.tries(spoilt.cells[0])) == 3


def test_on_a_kernel_one_cell_at_a_time(tmp_path: Path) -> None:
    folder = planned(tmp_path, 2)
    engine = LocalEngine(4)
    spec = CellSpec("x", {}, "evidence", {})
    job = CellJob(folder.cells[0], spec, 0)
    assert engine.has_room(job)
    engine._running.append(job)
    assert not engine.has_room(job)


def test_a_run_without_a_verdict_is_inconclusive_with_its_last_words(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", "echo no memory; exit 77")
    found = run_cell(CellSpec("x", {"scenario.yaml": b""}, "evidence", {}, command), lambda: False).document
    assert found["exit_code"] == 3
    assert found["another_try"]
    assert found["reason"] == 'its run ended with status 77: "no memory"'


def test_a_machine_that_cannot_run_it_makes_it_inconclusive() -> None:
    spec = CellSpec("x", {"scenario.yaml": b""}, "evidence", {}, ("/nowhere/command",))
    found = run_cell(spec, lambda: False).document
    assert (found["exit_code"], found["another_try"]) == (3, True)
    assert found["reason"] == "its machine could not run it: No such file or directory"


def test_a_stopped_run_is_interrupted(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", "exec sleep 60")
    spec = CellSpec("x", {"scenario.yaml": b""}, "evidence", {}, command)
    began = time.monotonic()
    assert run_cell(spec, lambda: True).document["verdict"] == "interrupted"
    assert time.monotonic() - began < 20


def test_nobody_waits_for_a_run_that_does_not_end_after_a_second_ctrl_c(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", f"trap '' TERM; echo $$ > {tmp_path}/pid; while true; do sleep 1; done")
    spec = CellSpec("x", {"scenario.yaml": b""}, "evidence", {}, command)
    with ThreadPoolExecutor(1) as pool:
        left = threading.Event()
        future = pool.submit(run_cell, spec, (tmp_path / "pid").exists, left.is_set)
        wait([future], 3)
        assert not future.done()
        left.set()
        began = time.monotonic()
        assert future.result().document["verdict"] == "interrupted"
        assert time.monotonic() - began < 15


TIED = """\
import os, signal, sys, time
from mrc_testbed.testbed.launcher.tied import end_with
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
end_with(0)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_tied_process_ends_with_its_descriptor() -> None:
    child = subprocess.Popen([sys.executable, "-c", TIED], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin
    assert child.stdout
    child.stdout.readline()
    child.stdin.close()
    assert child.wait(10) == 9
    child.stdout.close()


@pytest.mark.slow
def test_a_tied_run_ends_as_by_sigterm(tmp_path: Path) -> None:
    """A long run in virtual time: its folder has a verdict, and says why."""
    command = [sys.executable, "-m", "mrc_testbed", "run", "quickstart", "--virtual", "-q"]
    child = subprocess.Popen([*command, "--out", str(tmp_path), "--tied", "0"], cwd=ROOT, stdin=subprocess.PIPE)
    assert child.stdin
    while not list(tmp_path.glob("*/history.jsonl")):
        time.sleep(0.05)
        assert child.poll() is None
    child.stdin.close()
    assert child.wait(30) == 130
    (history,) = tmp_path.glob("2*/history.jsonl")
    assert "SIGTERM" in history.read_text()


def test_a_run_of_other_code_is_no_result_of_the_sweep(tmp_path: Path) -> None:
    """As where a checkout was changed while its sweep went on."""
    folder = planned(tmp_path, 1)
    spec = CellSpec("a", folder.scenario(folder.cells[0]), "summary", {"version": "0.0.1", "commit": "f" * 40}, other())
    found = run_cell(spec, lambda: False).document
    assert (found["exit_code"], found["run"], found["another_try"]) == (3, None, True)
    assert found["reason"] == "was run by mrc-testbed 9.9 (unknown), and the sweep was planned with 0.0.1 (fffffff)"


def other() -> tuple[str, ...]:
    """In place of `mrc-testbed run`: a program of another version."""
    program = "import sys; open(sys.argv[sys.argv.index('--cell') + 1], 'w').write('{\"version\": \"9.9\"}')"
    return sys.executable, "-c", program


def test_a_descriptor_that_is_not_open_is_refused(call: Call) -> None:
    ended = call("run", "quickstart", "--virtual", "--tied", "999")
    assert ended.status == 2
    assert "--tied 999: is not an open descriptor to read from" in ended.err


def test_a_run_writes_what_a_sweep_keeps(tmp_path: Path, call: Call) -> None:
    small = ROOT / "tests" / "unit" / "small_virtual.yaml"
    words = ("run", str(small), "--virtual", "-q", "--out", str(tmp_path))
    ended = call(*words, "--cell", str(tmp_path / "cell.json"))
    found = json.loads((tmp_path / "cell.json").read_text())
    assert ended.status == found["exit_code"] == 0
    assert found["verdict"] == found["run"]["verdict"] == "pass"
    assert {"host", "kernel", "cpus", "pps"} == found["machine"].keys()
    assert found["run"]["figures"]["step_time.median"] > 0
    assert {"qp_errors == 0", "bytes_wrong == 0"} <= {check["name"] for check in found["run"]["checks"]}
    assert len(found["run"]["plan_sha256"]) == 64


def test_keys_are_for_their_owner_alone_and_not_replaced(tmp_path: Path, call: Call) -> None:
    certs = tmp_path / "certs"
    assert call("sweep", "keys", str(certs)).status == 0
    assert sorted(path.name for path in certs.iterdir()) == ["ca.pem", "key.pem"]
    assert stat.S_IMODE((certs / "key.pem").stat().st_mode) == 0o600
    for purpose in ("sslserver", "sslclient"):
        strict = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", certs / "ca.pem"]
        assert subprocess.run([*strict, certs / "key.pem"], check=False).returncode == 0
    again = call("sweep", "keys", str(certs))
    assert again.status == 2
    assert "keys are not replaced" in again.err


def test_keys_that_have_expired_are_told(tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    keys.make_keys(certs, 30)
    now_s = time.time()
    keys.require_valid(certs, now_s + 29 * 86400)
    with pytest.raises(UsageError, match=r"certs: expired on 20\d\d-.* UTC; make new ones by `mrc"):
        keys.require_valid(certs, now_s + 31 * 86400)
    with pytest.raises(UsageError, match=r"certs: are good from 20\d\d-.* on; set the clock of this machine"):
        keys.require_valid(certs, now_s - 86400)
    (certs / "ca.pem").write_text("none")
    with pytest.raises(UsageError, match="is no certificate of an authority"):
        keys.require_valid(certs, now_s)


def test_keys_without_openssl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingCapability, match="apt-get install openssl"):
        keys.make_keys(tmp_path / "certs", 30)


def facts(name: str, host: str = "", cpus: float | None = None, fabric: float | None = 1) -> WorkerFacts:
    return WorkerFacts(name, host or name, 1, fabric, cpus)


def job(tmp_path: Path, *not_on: str) -> CellJob:
    (cell,) = planned(tmp_path, 1).cells
    return CellJob(cell, CellSpec(cell.id, {}, "evidence", {}), 0, frozenset(not_on))


def test_a_spoilt_cell_goes_to_another_machine_then_another_worker_then_any(tmp_path: Path) -> None:
    placing, spoilt = Placing(), job(tmp_path, "a")
    both = {"a": facts("a", "one"), "b": facts("b", "one"), "c": facts("c", "two")}
    assert placing.allowed(spoilt, both) == {"c"}
    assert placing.allowed(spoilt, {name: both[name] for name in "ab"}) == {"b"}
    assert placing.allowed(spoilt, {"a": both["a"]}) == {"a"}


def test_a_worker_that_spoils_three_of_five_is_set_aside_unless_it_is_the_last(tmp_path: Path) -> None:
    placing, wanted = Placing(), job(tmp_path)
    assert [placing.ended("a", spoilt) for spoilt in (True, False, True, False, True)] == [False] * 4 + [True]
    assert placing.allowed(wanted, {"a": facts("a"), "b": facts("b")}) == {"b"}
    assert placing.allowed(wanted, {"a": facts("a")}) == {"a"}


def test_a_big_cell_goes_to_a_big_machine_where_all_say_what_they_carry(tmp_path: Path) -> None:
    placing, wanted = Placing(), job(tmp_path)
    need = wanted.cell.cpus
    workers = {"a": facts("a", cpus=need / 2), "b": facts("b", cpus=need)}
    assert placing.allowed(wanted, workers) == {"b"}
    assert wants(wanted, workers.values()) == {"fabric": 1, "cpus": need}
    unsaid = workers | {"c": facts("c")}
    assert placing.allowed(wanted, unsaid) == {"a", "b", "c"}
    assert wants(wanted, unsaid.values()) == {"fabric": 1}


def test_a_cell_that_no_worker_can_take_does_not_hold_up_the_others(
    tmp_path: Path, stub: Callable[..., tuple[str, ...]]
) -> None:
    class Busy(LocalEngine):
        begun: ClassVar[list[float]] = []

        def has_room(self, job: CellJob) -> bool:
            return super().has_room(job) and (job.cell.cpus < most or len(self.begun) >= 2)

        def submit(self, job: CellJob) -> None:
            self.begun.append(job.cell.cpus)
            super().submit(job)

    folder = planned(tmp_path, 2, matrix=("fabric.port_rate=20mbit,10mbit",))
    sizes = sorted(cell.cpus for cell in folder.cells)
    most = sizes[-1]
    assert sizes[0] < most == folder.cells[0].cpus
    assert drive(folder, folder.cells, Busy(1), DriveLimits(command=stub()), Seen()).verdicts == {"pass": 4}
    assert Busy.begun == [sizes[0]] * 2 + [most] * 2


def test_what_a_worker_refused_is_no_try(tmp_path: Path, stub: Callable[..., tuple[str, ...]]) -> None:
    class Refusing(LocalEngine):
        refused = False

        def next_ended(self, timeout_s: float) -> Ended | None:
            ended = super().next_ended(timeout_s)
            if ended and not self.refused:
                self.refused = True
                return Ended(ended.job, "here", problem="other version", refused=True)
            return ended

    folder = planned(tmp_path, 1)
    drive(folder, folder.cells, Refusing(1), DriveLimits(0, command=stub()), Seen())
    assert [one.number for one in folder.tries(folder.cells[0])] == [1]


def test_ctrl_c_keeps_what_is_there(tmp_path: Path, stub: Callable[..., tuple[str, ...]]) -> None:
    class Interrupted(LocalEngine):
        def next_ended(self, timeout_s: float) -> Ended | None:
            if not self._stop.is_set():
                os.kill(os.getpid(), signal.SIGTERM)
            return super().next_ended(timeout_s)

    folder = planned(tmp_path, 2)
    progress = drive(folder, folder.cells, Interrupted(1), DriveLimits(command=stub("exec sleep 30")), Seen())
    assert progress.interrupted
    assert folder.open_cells() == list(folder.cells)


def test_without_the_extra_one_line_names_it(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scheduler", "engine_dask", "hunting"):
        monkeypatch.delitem(sys.modules, f"mrc_testbed.testbed.sweep.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    on = ("--on", "tcp://127.0.0.1:9")
    for words in (("sweep", "run", str(planned(tmp_path, 1).path)), ("hunt", "hunts/training")):
        ended = call(*words, *on)
        assert ended.status == 4
        assert ended.said == [f"mrc-testbed: --on a scheduler needs Dask. Fix: {install_extra('sweep')}"]


def test_three_shares_are_the_whole_sweep(tmp_path: Path, call: Call, stub: Callable[..., tuple[str, ...]]) -> None:
    folder = planned(tmp_path, 5)
    for index in "012":
        words = ("sweep", "cell", str(folder.path), "--index", index, "--of", "3")
        assert call(*words, "--cell-command", " ".join(stub())).status == 0
    assert [len(folder.tries(cell)) for cell in folder.cells] == [1] * 5


def test_a_share_without_cells_is_no_failure(tmp_path: Path, call: Call, stub: Callable[..., tuple[str, ...]]) -> None:
    """An array may have more tasks than the sweep has cells."""
    words = ("sweep", "cell", str(planned(tmp_path, 2).path), "--of", "4", "--cell-command", " ".join(stub()))
    ended = [call(*words, "--index", str(index)) for index in range(4)]
    assert [one.status for one in ended] == [0] * 4
    assert sum("of 4 has no cells" in one.out for one in ended) == 2


@pytest.mark.parametrize(
    ("status", "failures"), [(0, {}), (-9, {}), (-11, {BROKEN_OFF: "its process died with status -11"})]
)
def test_a_try_whose_process_had_just_gone_for_want_of_work_is_made_by_another(
    monkeypatch: pytest.MonkeyPatch, status: int, failures: dict[str, str]
) -> None:
    class Going:
        made = 0
        is_there = True

        def __init__(self, spec: hunter.HuntSpec) -> None:
            Going.made += 1
            self.status = status

        def attempt(self, job: Candidate, stopped: Callable[[], bool]) -> Outcome:
            if Going.made == 1:
                raise EOFError
            return Outcome()

        def end(self) -> None:
            """It has ended."""

        end_by_itself = end

    monkeypatch.setattr(hunter, "_Hunter", Going)
    spec = hunter.HuntSpec(HuntRequest(Path("x")), str(status))
    assert hunter.attempt_here(spec, Candidate(1), lambda: False).failures == failures
