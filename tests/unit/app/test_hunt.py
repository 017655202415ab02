"""A hunt as a whole, on a fabric so small that a try takes a tenth of a second."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest

from mrc_testbed.testbed.app.hunt import hunt as hunting
from mrc_testbed.testbed.app.hunt import trial
from mrc_testbed.testbed.app.hunt import workers as working
from mrc_testbed.testbed.app.hunt.progress import ProgressLine
from mrc_testbed.testbed.app.hunt.search import Tally, search
from mrc_testbed.testbed.app.hunt.subject import HuntRequest, Subject
from mrc_testbed.testbed.app.hunt.trial import BROKEN_OFF, STUCK, Candidate, Outcome, attempt
from mrc_testbed.testbed.app.hunt.workers import Workers
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.rundir.files import write_failed
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.virtual.host import VirtualHost
from tests.unit.calls import Call, Ended

TINY = """
name: tiny
fabric: {planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 10ms}
workload: [{train: {hosts: all, steps: 4, compute: 5ms, allreduce: 128KiB}}]
"""
STORM = "faults: [{at: 0s, for: 150ms, name: storm, chaos: {link-down: {times: 20/s, for: 20ms}}}]\n"
STRICT = STORM + "expect: [packets_lost <= 10, qp_errors == 0]\n"
"""Fails for some seeds only."""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY + STRICT)
    return file


Hunt = Callable[..., Ended]


@pytest.fixture
def hunt(call: Call, tiny: Path) -> Hunt:
    """With options."""
    return lambda *options: call("hunt", str(tiny), "--out", str(tiny.parent / "out"), "--jobs", "1", *options)


def test_the_scenario_may_come_from_a_pipe(call: Call, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are processes, and have no standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(tiny.read_bytes())))
    options = ("--seeds", "1", "--seed", str(lowest(tiny, range(1, 100))), "--jobs", "1", "--shrink-runs", "2")
    done = call("hunt", "-", "--out", str(tiny.parent / "out"), *options)
    assert done.status == 1, done.err
    assert "fails: packets_lost <= 10" in done.out


def lowest(file: Path, seeds: range) -> int:
    subject = Subject(HuntRequest(file))
    return next(seed for seed in seeds if attempt(subject, Candidate(seed), file.parent).failures)


def test_what_is_found_is_shrunk_and_written_as_a_scenario_that_fails(tiny: Path, hunt: Hunt) -> None:
    seed = lowest(tiny, range(1, 100))
    done = hunt()
    assert done.status == 1, done.err
    assert f"seed {seed} fails: packets_lost <= 10" in done.out
    file = tiny.parent / "out" / f"tiny-seed-{seed}.yaml"
    assert f"wrote {file}" in done.out
    assert file.read_text().startswith("# Found by `mrc-testbed hunt")
    written, before = load_scenario(file), load_scenario(tiny, seed=seed)
    assert 1 <= len(written.occurrences) < len(before.occurrences)
    assert attempt(Subject(HuntRequest(file)), Candidate(text=file.read_text()), tiny.parent).failures
    (folder,) = (each for each in file.parent.glob("*-tiny") if not each.is_symlink())
    assert "failed: packets_lost <= 10" in (folder / "verdict.json").read_text() or (folder / "report.html").exists()


@pytest.mark.nightly
def test_an_expectation_that_is_a_block_of_yaml_is_written_as_a_scenario_that_can_be_read(
    tiny: Path, hunt: Hunt
) -> None:
    tiny.write_text(TINY + STORM + "expect:\n  - |\n    packets_lost <= 10\n")
    assert hunt().status == 1
    (file,) = (tiny.parent / "out").glob("*.yaml")
    assert load_scenario(file).expect[0].text == "packets_lost <= 10"


def test_any_number_of_processes_find_the_same(tiny: Path) -> None:
    found = []
    for jobs in (1, 2):
        tally = Tally(6)
        with Workers(HuntRequest(tiny), jobs) as workers:
            search(workers, 1, True, tally, lambda _: None)
        found.append((tally.findings, tally.done, tally.failed, tally.unjudged))
    assert found[0] == found[1]
    assert 0 < found[0][2] < 6


def pid_of(workers: Workers) -> int:
    """That of the first."""
    pid = workers._workers[0]._process.pid
    assert pid
    return pid


def test_without_keep_going_the_lowest_seed_counts() -> None:
    results = {41: Outcome({"early": ""}), 42: Outcome({"late": ""})}
    begun: list[list[int | None]] = []

    class Fast:
        """Three at once; the later ones are done first."""

        def outcomes(self, jobs: Iterator[Candidate]) -> Iterator[tuple[Candidate, Outcome]]:
            while batch := list(islice(jobs, 3)):
                begun.append([job.seed for job in batch])
                for job in reversed(batch):
                    yield job, results.get(job.seed or 0, Outcome())

    tally = Tally(100)
    search(cast(Any, Fast()), 40, False, tally, lambda _: None)
    assert [(one.check, one.seed) for one in tally.findings] == [("early", 41), ("late", 42)]
    assert begun == [[40, 41, 42], [42, 41]]
    assert tally.done == 3


def test_what_does_not_fail_again_with_its_seed_is_no_finding_and_the_search_goes_on() -> None:
    seen: list[int | None] = []

    class Once:
        """Seed 2 fails the first time only, seed 4 each time."""

        def outcomes(self, jobs: Iterator[Candidate]) -> Iterator[tuple[Candidate, Outcome]]:
            for job in jobs:
                seen.append(job.seed)
                fails = job.seed == 4 or seen == [1, 2]
                yield job, Outcome({"the check": "9"} if fails else {})

    tally = Tally(100)
    search(cast(Any, Once()), 1, False, tally, lambda _: None)
    assert seen == [1, 2, 2, 3, 4, 4]
    assert [(one.check, one.seed) for one in tally.findings] == [("the check", 4)]
    assert (tally.done, tally.failed, tally.unjudged) == (4, 1, 1)
    assert tally.problem == "failed once, and not again with the same seed: the check (9)"


def test_a_hunt_that_finds_nothing_ends_with_0(tiny: Path, hunt: Hunt) -> None:
    tiny.write_text(TINY + STORM + "expect: [bytes_wrong == 0]\n")
    done = hunt("--seeds", "2")
    assert (done.status, done.out.strip().endswith("none failed")) == (0, True)
    assert not (tiny.parent / "out").exists()


def test_an_out_that_cannot_be_a_folder_is_told_before_the_first_try(tiny: Path, hunt: Hunt) -> None:
    (tiny.parent / "out").write_text("")
    done = hunt()
    assert done.status == 2
    assert not done.out
    assert done.said == [f"mrc-testbed: --out {tiny.parent}/out: is not a folder"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (STORM, "has no expectations, so nothing can fail"),
        ("expect: [bytes_wrong == 0]\n", "has no faults to vary"),
        (STORM + "expect: [packets_lost >= 1]\n", "fails without any fault: packets_lost >= 1 (observed: 0)"),
        (STRICT + "transport: tcp\n", "tcp"),
        (STRICT + "matrix: {endpoint.ev_active: [2, 4]}\n", "has several cells"),
        (STRICT + "nonsense: 1\n", "nonsense"),
    ],
)
def test_bad_input_is_one_line_and_status_2(tiny: Path, hunt: Hunt, text: str, says: str) -> None:
    tiny.write_text(TINY + text)
    done = hunt()
    assert done.status == 2
    assert says in done.err
    assert str(tiny) in done.err


@pytest.mark.python_core
def test_a_crash_of_the_endpoint_is_found(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(host: VirtualHost) -> None:
        raise ZeroDivisionError("of the endpoint")

    monkeypatch.setattr("mrc_testbed.testbed.virtual.loop.InboxLoop.receive", fails)
    outcome = attempt(Subject(HuntRequest(tiny)), Candidate(1), tiny.parent)
    assert "the endpoint failed" in outcome.failures[BROKEN_OFF]


@pytest.mark.python_core
def test_a_crash_of_the_world_is_found_with_its_place(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrc_testbed.testbed.virtual.fabric.VirtualFabric.queues", lambda _: 1 // 0)
    outcome = attempt(Subject(HuntRequest(tiny)), Candidate(1), tiny.parent)
    assert re.search(r"ZeroDivisionError: .* \(test_hunt.py:\d+\)", outcome.failures[BROKEN_OFF])


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RunError("cannot write x: No space left"),
        MemoryError(),
        SystemError("error return without exception set"),
    ],
)
def test_a_machine_without_space_is_no_failure(tiny: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr("resource.getrlimit", lambda which: (40 << 20, 40 << 20))
    monkeypatch.setattr(trial, "keep_plugins", full)
    outcome = attempt(Subject(HuntRequest(tiny)), Candidate(1), tiny.parent)
    assert not outcome.failures
    assert outcome.problem.startswith("its machine could not run it: ")


@pytest.mark.python_core
def test_memory_that_runs_out_in_an_endpoint_is_no_failure(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(host: VirtualHost) -> None:
        raise MemoryError

    monkeypatch.setattr("mrc_testbed.testbed.virtual.loop.InboxLoop.receive", full)
    outcome = attempt(Subject(HuntRequest(tiny)), Candidate(1), tiny.parent)
    assert not outcome.failures
    assert outcome.spoiled


@pytest.mark.parametrize("write", ["rows", "event"])
def test_a_disk_that_is_full_in_the_middle_of_a_try_is_no_failure(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """The run ends early, and its history, which is short, still says why."""
    wanted = getattr(Recorder, write)

    def full(recorder: Recorder, *given: object) -> None:
        history = recorder.folder / "history.jsonl"
        if not history.exists() or '"phase":"run"' not in history.read_text():
            return wanted(recorder, *given)
        raise write_failed(recorder.folder, OSError(errno.ENOSPC, "No space left")) from OSError(errno.ENOSPC, "")

    monkeypatch.setattr(Recorder, write, full)
    outcome = attempt(Subject(HuntRequest(tiny)), Candidate(1), tiny.parent)
    assert not outcome.failures
    assert "No space left" in outcome.problem


def test_a_hunt_in_which_no_try_could_be_judged_found_nothing_out(
    tiny: Path, hunt: Hunt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workers, "outcomes", lambda _, jobs: ((job, Outcome(problem="no space")) for job in jobs))
    done = hunt("--seeds", "3")
    assert done.status == 3
    assert "3 could not be judged, the last: no space" in done.out


def test_a_try_leaves_nothing_behind(tiny: Path) -> None:
    attempt(Subject(HuntRequest(tiny)), Candidate(1), tiny.parent)
    assert list(tiny.parent.iterdir()) == [tiny]


def test_a_try_that_never_ends_is_found_and_its_process_replaced(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "_LOOK_S", 0.01)
    with Workers(HuntRequest(tiny), 1, longest_s=0.01) as workers:
        assert list(workers.outcome(Candidate(1)).failures) == [STUCK]
        workers._longest_s = working.LONGEST_S
        assert STUCK not in workers.outcome(Candidate(1)).failures


def test_a_process_that_dies_is_found_and_replaced(tiny: Path) -> None:
    with Workers(HuntRequest(tiny), 1) as workers:
        workers.outcome(Candidate(1))
        os.kill(pid_of(workers), signal.SIGABRT)
        assert "died" in workers.outcome(Candidate(1)).failures[BROKEN_OFF]
        assert BROKEN_OFF not in workers.outcome(Candidate(1)).failures


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
@pytest.mark.nightly
def test_a_process_that_is_killed_says_nothing_of_the_scenario(tiny: Path, name: str) -> None:
    """As the system does where memory runs out, or a person with `kill`."""
    with Workers(HuntRequest(tiny), 1) as workers:
        workers.outcome(Candidate(1))
        os.kill(pid_of(workers), signal.Signals[name])
        outcome = workers.outcome(Candidate(1))
        assert not outcome.failures
        assert f"killed by {name}" in outcome.problem
        assert not workers.outcome(Candidate(1)).problem


def test_what_a_machine_spoils_is_not_taken_for_a_smaller_schedule_that_passes(
    tiny: Path, hunt: Hunt, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Workers.outcome
    asked: list[Candidate] = []

    def outcome(workers: Workers, job: Candidate) -> Outcome:
        asked.append(job)
        return whole(workers, job) if len(asked) < 5 else Outcome.by_machine("No space left")

    monkeypatch.setattr(Workers, "outcome", outcome)
    done = hunt("--seeds", "100")
    assert done.status == 1
    assert "then stopped: its machine could not run it: No space left" in done.out
    assert "wrote " in done.out


def test_what_cannot_be_run_on_a_kernel_is_said_in_a_line(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mrc_testbed.testbed.app.hunt import found
    from mrc_testbed.testbed.errors import MissingCapability

    def lacking(*_: object) -> None:
        raise MissingCapability("root is missing", "sudo")

    monkeypatch.setattr(found, "run_scenario", lacking)
    assert found.confirm(tiny, "x", 3, tiny.parent, cast(Any, None)) == "not confirmed: root is missing. Fix: sudo"


def test_ctrl_c_ends_with_what_was_found_so_far(tiny: Path, hunt: Hunt, monkeypatch: pytest.MonkeyPatch) -> None:
    def show(_: ProgressLine, tally: Tally) -> None:
        if tally.failed:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "show", show)
    monkeypatch.setattr("mrc_testbed.testbed.app.hunt.search._TOLD_EVERY_S", 0)
    done = hunt("--keep-going")
    assert done.status == 130
    (file,) = (tiny.parent / "out").glob("tiny-seed-*.yaml")
    assert "shrunk to" in done.out
    assert f"wrote {file}" in done.out


def test_limits_are_those_of_the_options(monkeypatch: pytest.MonkeyPatch, call: Call, tiny: Path) -> None:
    seen = []
    monkeypatch.setattr(hunting, "hunt", lambda *given: seen.append(given) or 0)
    call("hunt", str(tiny), "--seeds", "7", "--seed", "3", "--confirm", "--confirm-runs", "2", "--move")
    request, limits, *_, elsewhere = seen[0]
    assert (request.move, limits.seeds, limits.first, limits.confirm) == (True, 7, 3, 2)
    assert elsewhere is None
