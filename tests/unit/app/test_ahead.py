"""Several runs of virtual time at once: the same results in the same order, and one sentence for what cannot be."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from mrc_testbed.testbed.app import ahead as ahead_module
from mrc_testbed.testbed.app.ahead import RunsAhead, refuse_jobs
from mrc_testbed.testbed.app.batch import Repetitions, load_cases
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.outcome import Case, RunOutcome

SMALL = Path(__file__).parents[1] / "small_virtual.yaml"


def cases(count: int, *changes: str) -> list[Case]:
    return load_cases([SMALL], ["world=virtual", *changes], times=Repetitions(count, vary_seed=True))


def figures(folder: Path) -> str:
    return (folder / "counters.json").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_what_several_processes_find_is_what_one_finds_in_the_same_order(tmp_path: Path) -> None:
    found = {}
    for jobs in (1, 3):
        said = io.StringIO()
        with RunsAhead(cases(4), jobs, tmp_path / str(jobs), True, PatientConsole(file=said, width=300)) as ahead:
            outcomes = [ahead.next_result() for _ in range(4)]
        assert [one.exit_code for one in outcomes] == [ExitCode.PASS] * 4
        folders = [one.folder for one in outcomes if one.folder]
        lines = [line for line in said.getvalue().splitlines() if not line.startswith("warning: ")]
        assert all(str(folder) in line for folder, line in zip(folders, lines, strict=True))
        assert (tmp_path / str(jobs) / "latest").resolve() == folders[-1]
        found[jobs] = [figures(folder) for folder in folders]
    assert found[1] == found[3]
    assert len(set(found[1])) == 4


def test_what_a_process_raises_is_raised_here(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with (
        RunsAhead(cases(1), 2, tmp_path / "file", True, PatientConsole(file=io.StringIO())) as ahead,
        pytest.raises(UsageError, match="is not a folder"),
    ):
        ahead.next_result()


def test_runs_that_nobody_waits_for_are_ended(tmp_path: Path) -> None:
    with RunsAhead(cases(2), 2, tmp_path, True, PatientConsole(file=io.StringIO())) as ahead:
        ahead._begin()
    assert not any(run._process.is_alive() for run in ahead._begun)


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM that can be caught")
def test_sigterm_while_a_process_begins_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead_module, "end_with_parent", lambda: os.kill(os.getpid(), signal.SIGTERM))
    with (
        RunsAhead(cases(1), 2, tmp_path, True, PatientConsole(file=io.StringIO())) as ahead,
        pytest.raises(KeyboardInterrupt),
    ):
        ahead.next_result()


def test_a_run_with_much_to_say_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds: it waited for a reader, and the reader for its end."""

    def endless(*words: object) -> RunOutcome:
        console = words[3]
        assert isinstance(console, PatientConsole)
        console.file.write("x" * 200_000)
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            return RunOutcome(ExitCode.INTERRUPTED, 0.0)
        return RunOutcome(ExitCode.PASS, 60.0)

    monkeypatch.setattr(ahead_module, "run_scenario", endless)
    began_s = time.monotonic()
    with RunsAhead(cases(1), 2, tmp_path, True, PatientConsole(file=io.StringIO())) as ahead:
        ahead._begin()
        time.sleep(0.3)
    assert not ahead._begun[0]._process.is_alive()
    assert time.monotonic() - began_s < 30


def test_a_kernel_carries_one_run_at_a_time() -> None:
    on_kernel = load_cases([SMALL])
    with pytest.raises(UsageError, match="--jobs: a kernel carries one run at a time; add --virtual"):
        refuse_jobs(on_kernel, watched=False)


def test_a_browser_shows_one_run_at_a_time() -> None:
    refuse_jobs(cases(2), watched=False)
    with pytest.raises(UsageError, match="leave --web and --metrics out"):
        refuse_jobs(cases(2), watched=True)
