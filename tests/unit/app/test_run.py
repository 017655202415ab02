from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mrc_testbed.testbed.app import clean, run
from mrc_testbed.testbed.app import judge as judge_module
from mrc_testbed.testbed.errors import ExitCode, FabricError, MachineLateError, RunError, WorkloadError
from mrc_testbed.testbed.fabric import capabilities, sandbox
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir import ownership
from mrc_testbed.testbed.rundir.ownership import OWNER, abandoned, is_running
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import LATEST, point_latest, run_folders
from mrc_testbed.testbed.runner import phases
from mrc_testbed.testbed.runner.kernel_world import KernelWorld
from mrc_testbed.testbed.runner.phases import RunJob
from mrc_testbed.testbed.runner.progress import Progress, Screen, Silent
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from tests.unit.checks.test_folder import RunFolder

SCENARIO = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 3, compute: 100ms, allreduce: 1MiB}}]
"""


@pytest.fixture
def scenario() -> Scenario:
    return load_scenario_text(SCENARIO)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No probe: a machine that can do everything."""
    monkeypatch.setattr(capabilities, "probe", list)
    monkeypatch.setattr(capabilities, "choose", lambda *_: FabricOptions("ifb", "endpoint"))


def ends(monkeypatch: pytest.MonkeyPatch, supervise: Callable[[], int]) -> None:
    monkeypatch.setattr(sandbox, "run_isolated", lambda _, **__: supervise())


def history(out: Path) -> list[dict[str, Any]]:
    (folder,) = (path for path in out.iterdir() if not path.is_symlink())
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("status", "told"),
    [(137, "was killed by SIGKILL"), (139, "was killed by SIGSEGV"), (70, "crashed, see above")],
)
def test_the_death_of_the_supervisor_is_in_the_history(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, told: str
) -> None:
    ends(monkeypatch, lambda: status)
    assert run.run_scenario(scenario, tmp_path, quiet=True).exit_code == ExitCode.INCONCLUSIVE
    assert history(tmp_path)[-1]["error"] == f"the supervisor of the run {told}"
    (folder,) = run_folders(tmp_path)
    assert json.loads((folder / "verdict.json").read_text())["verdict"] == "inconclusive"
    assert not (folder / OWNER).exists()


class Unseen:
    """A screen that nobody sees."""

    def draw(self, frame: object) -> None: ...

    def close(self) -> None: ...


class Watcher:
    """Notes what it is told."""

    interactive = False

    def __init__(self) -> None:
        self.ended: list[RunOutcome] = []

    def begin(self, *_: object) -> None: ...

    def screens(self) -> Sequence[Screen]:
        return [Unseen()]

    def feeds(self, *_: object) -> Sequence[Progress]:
        return ()

    def serve(self, *_: object) -> None: ...

    def end(self, outcome: RunOutcome) -> None:
        self.ended.append(outcome)


def test_who_watches_is_told_of_a_run_without_a_verdict(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RunError("cannot write verdict.json: No space left on device")

    ends(monkeypatch, lambda: 0)
    monkeypatch.setattr("mrc_testbed.testbed.app.judge.judge_folder", full)
    watcher = Watcher()
    with pytest.raises(RunError):
        run.run_scenario(scenario, tmp_path, quiet=True, audience=watcher)
    assert [one.reason for one in watcher.ended] == ["machine: cannot write verdict.json: No space left on device"]


def test_an_interrupted_run_is_judged_and_ends_in_130(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends(monkeypatch, lambda: 130)
    assert run.run_scenario(scenario, tmp_path, quiet=True).exit_code == 130
    (folder,) = run_folders(tmp_path)
    assert (folder / "verdict.json").exists()


def test_the_verdict_and_not_the_supervisor_decides_the_exit_status(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends(monkeypatch, lambda: 0)
    assert run.run_scenario(scenario, tmp_path, quiet=True).exit_code == ExitCode.INCONCLUSIVE, "nothing was measured"


def test_a_folder_belongs_to_the_run_while_it_lasts_and_holds_the_scenario(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def supervise() -> int:
        (folder,) = run_folders(tmp_path)
        seen.extend([(folder / OWNER).exists(), is_running(folder), (folder / "scenario.yaml").read_text()])
        return 0

    ends(monkeypatch, supervise)
    run.run_scenario(scenario, tmp_path, quiet=True)
    assert seen == [True, True, scenario.dump_yaml()]


def test_latest_is_the_run_that_began_last(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(monkeypatch, lambda: 0)
    first, second = (run.run_scenario(scenario, tmp_path, quiet=True).folder for _ in range(2))
    assert first != second
    assert (tmp_path / LATEST).readlink() == Path(second.name if second else "")
    (tmp_path / LATEST).unlink()
    monkeypatch.setattr(Path, "symlink_to", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert run.run_scenario(scenario, tmp_path, quiet=True).verdict, "a run needs no link"
    assert capsys.readouterr().err.startswith("warning: cannot make the link ")


def test_a_folder_that_never_got_its_scenario_is_nobodys(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`clean` could never give it a verdict, and would stop at it each time."""

    def full(*_: Any) -> None:
        raise RunError("cannot write scenario.yaml: No space left on device")

    monkeypatch.setattr(Recorder, "text", full)
    with pytest.raises(RunError):
        run.run_scenario(scenario, tmp_path, quiet=True)
    (folder,) = tmp_path.iterdir()
    assert not (folder / OWNER).exists()


def test_clean_judges_what_was_killed_and_nothing_else(
    tmp_path: Path, scenario: Scenario, going_on: Callable[[Path], None]
) -> None:
    folders = [tmp_path / name for name in ("done", "killed", "running")]
    for folder in folders:
        folder.mkdir()
        Recorder(folder).text("scenario.yaml", scenario.dump_yaml())
    going_on(folders[2])
    (folders[1] / OWNER).write_text("torn")
    point_latest(folders[1])
    assert abandoned(folders[1])
    assert clean.finish_abandoned(tmp_path) == [clean.Cleaned(folders[1], "was killed; verdict inconclusive", True)]
    assert json.loads((folders[1] / "verdict.json").read_text())["verdict"] == "inconclusive"
    assert [(folder / "verdict.json").exists() for folder in folders] == [False, True, False]
    assert clean.finish_abandoned(tmp_path) == []
    assert clean.finish_abandoned(tmp_path / "nowhere") == []


def left_unjudged(tmp_path: Path) -> Path:
    """A run that came to its end, and whose process is gone."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / OWNER).write_text("torn")
    RunFolder().write(folder)
    recorder = Recorder(folder)
    recorder.history("ok", op="phase", phase="tear down")
    recorder.close()
    return folder


def test_a_judged_run_keeps_its_verdict_when_its_page_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt("SIGTERM")

    folder = left_unjudged(tmp_path)
    with monkeypatch.context() as page:
        page.setattr(judge_module, "write_report", stop)
        with pytest.raises(KeyboardInterrupt):
            judge_module.judge_folder(folder, Console(quiet=True), quiet=True)
    said = (folder / "verdict.json").read_text()
    (cleaned,) = clean.finish_abandoned(tmp_path)
    assert cleaned == clean.Cleaned(folder, "was killed after its verdict, pass; its page is made", True)
    assert (folder / "verdict.json").read_text() == said
    assert (folder / "report.html").exists()
    assert '"interrupt"' not in (folder / "history.jsonl").read_text()
    assert not (folder / OWNER).exists()


@pytest.mark.parametrize("file", ["junit.xml", "summary.txt", "verdict.json"])
def test_clean_makes_no_pass_of_a_run_that_ended_without_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Its command had ended with status 3, and its caller was told so."""
    folder = left_unjudged(tmp_path)

    def full(path: Path, *_: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as disk:
        disk.setattr(judge_module, "write_whole", lambda path, text: full(path) if path.name == file else None)
        if file == "verdict.json":
            disk.setattr(judge_module, "write_verdict", lambda _verdict, place, _line: full(place / file))
        with pytest.raises(RunError, match="the run has no verdict"):
            judge_module.judge_folder(folder, Console(quiet=True), quiet=True)
    assert not (folder / "verdict.json").exists()
    (cleaned,) = clean.finish_abandoned(tmp_path)
    assert cleaned.words == "was killed; verdict inconclusive"


def test_a_file_system_without_owners_costs_a_warning(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(monkeypatch, lambda: 0)

    def refused(path: Path, *_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(ownership, "give", lambda paths: [refused(path) for path in paths])
    assert run.run_scenario(scenario, tmp_path, quiet=True).verdict
    said = capsys.readouterr().err
    assert said.startswith("warning: ")
    assert "could not be given to the user behind sudo: Operation not permitted" in said


def test_clean_goes_on_after_a_folder_that_cannot_be_judged(tmp_path: Path, scenario: Scenario) -> None:
    folders = [tmp_path / name for name in ("broken", "killed")]
    for folder in folders:
        folder.mkdir()
        (folder / OWNER).write_text("torn")
    Recorder(folders[1]).text("scenario.yaml", scenario.dump_yaml())
    broken, killed = clean.finish_abandoned(tmp_path)
    assert broken.words.startswith("cannot be judged: ")
    assert [broken.judged, killed.judged] == [False, True]
    assert killed.words == "was killed; verdict inconclusive"


class Closable(Silent):
    """A progress that only knows whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("error", "op", "status"),
    [
        (FabricError("p0-t1-0", "read-back", "lacks a route"), "interrupt", 3),
        (RunError("h0: no answer"), "interrupt", 3),
        (MachineLateError("the barrier came too late"), "interrupt", 3),
        (WorkloadError("h0 stuck in step 2"), "workload", 3),
        (KeyboardInterrupt("SIGTERM"), "interrupt", 130),
    ],
)
def test_what_stops_a_run_is_the_last_line_of_its_history(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, op: str, status: int
) -> None:
    def stop(*_: Any) -> None:
        raise error

    monkeypatch.setattr(KernelWorld, "build", stop)
    progress = Closable()
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    job = RunJob(scenario, folder, KernelWorld([], FabricOptions("ifb", "endpoint")))
    assert phases.run_phases(job, progress) == status
    told = f"interrupted by {error}" if isinstance(error, KeyboardInterrupt) else str(error)
    last = history(tmp_path)[-1]
    assert (last["type"], last["op"], last["error"]) == ("fail", op, told)
    assert last.get("late", False) is isinstance(error, MachineLateError)
    assert progress.closed
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["faults"] == []


@pytest.mark.parametrize("error", [MemoryError(), SystemError("error return without exception set")])
def test_lack_of_memory_is_the_last_line_of_its_history(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def stop(*_: Any) -> None:
        raise error

    monkeypatch.setattr("resource.getrlimit", lambda which: (40 << 20, 40 << 20))
    monkeypatch.setattr(KernelWorld, "build", stop)
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    job = RunJob(scenario, folder, KernelWorld([], FabricOptions("ifb", "endpoint")))
    assert phases.run_phases(job, Silent()) == 3
    last = history(tmp_path)[-1]
    assert last["machine"]
    assert "memory ran out" in last["error"]
