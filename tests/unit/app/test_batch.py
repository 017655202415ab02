from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mrc_testbed.testbed.app import ahead as ahead_module
from mrc_testbed.testbed.app import run as run_module
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.errors import ExitCode, MissingCapability, RunError
from mrc_testbed.testbed.report.batch import render_batch
from mrc_testbed.testbed.report.outcome import Case, RunOutcome, exit_code_of
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.calls import Call
from tests.unit.outcomes import outcome, without_data, write_scenario

PASS, FAIL, UNKNOWN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE
INTERRUPTED = RunOutcome(ExitCode.INTERRUPTED, 1.0, outcome(UNKNOWN).verdict)
Script = Callable[..., list[tuple[str, int]]]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Runs come to these ends, one after the other. Returns where name and seed of each run are put."""

    def scripted(*ends: Status | RunOutcome | BaseException) -> list[tuple[str, int]]:
        ran: list[tuple[str, int]] = []
        left = list(ends)

        def run_scenario(scenario: Any, _out: Path, _quiet: bool, console: Any, audience: Any, **_: Any) -> RunOutcome:
            ran.append((scenario.name, scenario.seed))
            end = left.pop(0)
            if isinstance(end, BaseException):
                raise end
            console.print(f"summary of {scenario.name}")
            return end if isinstance(end, RunOutcome) else outcome(end, scenario.name, f"results/{len(ran)}")

        monkeypatch.setattr(run_module, "run_scenario", run_scenario)
        return ran

    return scripted


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [str(write_scenario(tmp_path, name)) for name in ("one", "two", "three")]


def suites(path: Path) -> dict[str, ElementTree.Element]:
    return {suite.get("name", ""): suite for suite in ElementTree.parse(path).getroot()}


def tags(suite: ElementTree.Element, tag: str) -> int:
    return len(suite.findall(f"testcase/{tag}"))


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ((PASS, PASS, PASS), 0),
        ((PASS, UNKNOWN, PASS), 3),
        ((FAIL, UNKNOWN, PASS), 1),
        ((UNKNOWN, MissingCapability("no port program", "clang"), PASS), 4),
        ((FAIL, MissingCapability("no port program", "clang"), PASS), 1),
        ((PASS, RunError("disk full"), PASS), 3),
        ((FAIL, ZeroDivisionError("by 0"), PASS), 1),
        ((FAIL, PASS, INTERRUPTED), 130),
    ],
)
def test_all_scenarios_run_and_the_gravest_decides(
    call: Call, script: Script, files: list[str], ends: Sequence[Any], code: int
) -> None:
    ran = script(*ends)
    ended = call("run", *files)
    assert ended.status == code
    assert [name for name, _ in ran] == ["one", "two", "three"]
    errors = [end for end in ends if isinstance(end, Exception)]
    assert len(ended.said) == len(errors)
    assert all(str(error) in ended.err for error in errors)


CODES = st.sampled_from(ExitCode)
SCENARIO = load_scenario_text("name: x\nworkload: [{train: {steps: 1, compute: 1ms, allreduce: 1MiB}}]")


def ended_with(codes: Sequence[ExitCode]) -> list[Case]:
    return [Case(Path("x"), SCENARIO, 1, 1, (RunOutcome(code, 0),)) for code in codes]


@given(st.lists(CODES, min_size=1), CODES)
def test_one_exit_code_for_many_is_one_of_theirs_whatever_their_order_and_nothing_hides_a_fail(
    codes: list[ExitCode], other: ExitCode
) -> None:
    found = exit_code_of(ended_with(codes))
    assert found in codes
    assert exit_code_of(ended_with(codes[::-1])) == found
    assert (found == ExitCode.PASS) == (set(codes) == {ExitCode.PASS})
    assert exit_code_of(ended_with([*codes, ExitCode.FAIL])) in (ExitCode.FAIL, ExitCode.INTERRUPTED)


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ([], ExitCode.INCONCLUSIVE),
        ([ExitCode.PASS], ExitCode.INCONCLUSIVE),
        ([ExitCode.FAIL], ExitCode.FAIL),
        ([ExitCode.PASS, ExitCode.INTERRUPTED], ExitCode.INTERRUPTED),
    ],
)
def test_a_run_that_was_not_made_is_no_pass(ended: list[ExitCode], code: ExitCode) -> None:
    assert exit_code_of([*ended_with(ended), Case(Path("x"), SCENARIO, 1, 1)]) == code


def test_a_mistake_in_any_file_is_told_before_anything_runs(
    call: Call, script: Script, files: list[str], tmp_path: Path
) -> None:
    ran = script()
    for name in ("bad", "worse"):
        (tmp_path / f"{name}.yaml").write_text("name: bad\nfabric: {plains: 2}\nworkload: []\n")
    junit = tmp_path / "junit.xml"
    ended = call(
        "run", files[0], str(tmp_path / "bad.yaml"), files[1], str(tmp_path / "worse.yaml"), "--junit", str(junit)
    )
    assert (ended.status, ran, junit.exists()) == (2, [], False)
    assert "bad.yaml:2:10: fabric.plains" in ended.err
    assert "worse.yaml:2:10: fabric.plains" in ended.err


@pytest.mark.parametrize("option", ["--junit", "--json"])
def test_a_report_that_cannot_be_written_is_told_before_anything_runs(
    call: Call, script: Script, files: list[str], tmp_path: Path, option: str
) -> None:
    ran = script()
    (tmp_path / "file").write_text("")
    ended = call("run", files[0], option, f"{tmp_path}/file/report")
    assert (ended.status, ran) == (2, [])
    assert ended.said[0].startswith(f"mrc-testbed: {option} {tmp_path}/file/report: cannot be written: ")


def test_an_inconclusive_run_is_tried_again_and_a_fail_never(call: Call, script: Script, files: list[str]) -> None:
    ran = script(UNKNOWN, PASS, FAIL, UNKNOWN, UNKNOWN, UNKNOWN)
    ended = call("run", *files, "--retry-inconclusive", "2")
    assert [name for name, _ in ran] == ["one", "one", "two", "three", "three", "three"]
    assert ended.status == 1
    assert "pass, try 2" in ended.out
    assert "inconclusive, try 3" in ended.out


def test_a_pass_on_the_second_try_is_a_pass(call: Call, script: Script, files: list[str], tmp_path: Path) -> None:
    script(UNKNOWN, PASS)
    junit = tmp_path / "deep" / "junit.xml"
    assert call("run", files[0], "--retry-inconclusive", "1", "--junit", str(junit)).status == 0
    (suite,) = suites(junit).values()
    assert (suite.get("errors"), suite.get("failures")) == ("0", "0")
    assert suite.find("properties/property[@name='tries']").get("value") == "2"  # type: ignore[union-attr]
    flaky = suite.findall("testcase/flakyError")
    assert [one.get("message") for one in flaky] == ["machine: timers late (p99): observed 7 ms, expected <= 5 ms"]


def test_repeat_runs_the_same_seed_and_can_vary_it(call: Call, script: Script, files: list[str]) -> None:
    ran = script(*[PASS] * 4)
    assert call("run", *files[:2], "--repeat", "2", "-q").status == 0
    assert ran == [("one", 7), ("one", 7), ("two", 7), ("two", 7)]
    ran = script(*[PASS] * 3)
    assert call("run", files[0], "--repeat", "3", "--vary-seed", "--seed", "40").status == 0
    assert ran == [("one", 40), ("one", 41), ("one", 42)]


def test_repetitions_count_each_for_itself(call: Call, script: Script, files: list[str]) -> None:
    script(FAIL, PASS)
    ended = call("run", files[0], "--repeat", "2")
    assert ended.status == 1
    assert "one #1" in ended.out
    assert "2 runs: 1 pass, 1 fail" in ended.out


@pytest.mark.parametrize("stop", [INTERRUPTED, KeyboardInterrupt()])
def test_after_an_interruption_nothing_more_begins_and_the_summary_comes(
    call: Call, script: Script, files: list[str], tmp_path: Path, stop: Any
) -> None:
    ran = script(PASS, stop)
    junit, report = tmp_path / "junit.xml", tmp_path / "report.json"
    ended = call("run", *files, "--retry-inconclusive", "5", "--junit", str(junit), "--json", str(report))
    assert (ended.status, len(ran)) == (130, 2)
    assert "3 runs: 1 pass, 1 interrupted, 1 not run" in ended.out
    found = suites(junit)
    assert [tags(found[name], "error") > 0 for name in ("one", "two", "three")] == [False, True, True]
    runs = json.loads(report.read_text())["runs"]
    assert [run["verdict"] for run in runs] == ["pass", "interrupted", "not run"]


def test_sigterm_between_runs_ends_them_with_the_summary(
    call: Call, monkeypatch: pytest.MonkeyPatch, files: list[str]
) -> None:
    def run_scenario(*_: Any, **__: Any) -> RunOutcome:
        os.kill(os.getpid(), signal.SIGTERM)
        return outcome()

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    ended = call("run", *files)
    assert ended.status == 130
    assert "3 runs: 1 interrupted, 2 not run" in ended.out
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_hangup_that_nohup_keeps_away_ends_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch, files: list[str]
) -> None:
    def run_scenario(*_: Any, **__: Any) -> RunOutcome:
        os.kill(os.getpid(), signal.SIGHUP)
        return outcome()

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert call("run", *files).status == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert call("run", *files).status == 130


def test_several_at_once_are_not_tried_again(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try of one took the result of the next."""
    results = [outcome(UNKNOWN), outcome(), outcome()]
    monkeypatch.setattr(ahead_module.RunsAhead, "next_result", lambda _: results.pop(0))
    small = Path(__file__).parents[1] / "small_virtual.yaml"
    words = ("--virtual", "--jobs", "2", "--repeat", "3", "--vary-seed", "--retry-inconclusive", "2", "--json", "-")
    ended = call("run", str(small), *words, "--out", str(tmp_path))
    assert ended.status == 3
    assert [run["verdict"] for run in json.loads(ended.out)["runs"]] == ["inconclusive", "pass", "pass"]


def test_a_kill_in_mid_run_leaves_whole_reports_in_which_nothing_open_passed(
    call: Call, monkeypatch: pytest.MonkeyPatch, files: list[str], tmp_path: Path
) -> None:
    junit, report = tmp_path / "junit.xml", tmp_path / "report.json"
    seen: list[tuple[list[int], list[str], tuple[str, int]]] = []

    def run_scenario(*_: Any, **__: Any) -> RunOutcome:
        whole = json.loads(report.read_text())
        errors = [tags(suite, "error") for suite in ElementTree.parse(junit).getroot()]
        together = whole["verdict"], whole["exit_code"]
        seen.append((errors, [run["verdict"] for run in whole["runs"]], together))
        return outcome()

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    assert call("run", *files[:2], "--junit", str(junit), "--json", str(report)).status == 0
    unknown = ("inconclusive", 3)
    assert seen == [([1, 1], ["not run", "not run"], unknown), ([0, 1], ["pass", "not run"], unknown)]
    assert json.loads(report.read_text())["exit_code"] == 0


def test_a_single_run_has_no_table(call: Call, script: Script, files: list[str]) -> None:
    script(PASS)
    assert call("run", files[0]).out == "summary of one\n"


def test_json_on_standard_output_stands_alone(call: Call, script: Script, files: list[str]) -> None:
    script(PASS, FAIL)
    ended = call("run", *files[:2], "--json", "-")
    content = json.loads(ended.out)
    assert (content["verdict"], content["exit_code"]) == ("fail", 1)
    assert [run["scenario"] for run in content["runs"]] == ["one", "two"]
    second = content["runs"][1]
    assert (second["seed"], second["seconds"], second["folder"]) == (7, 12.5, "results/2")
    assert [check["status"] for check in second["checks"]] == ["pass", "fail", "pass"]
    assert "summary of one" in ended.err
    assert "2 runs: 1 pass, 1 fail" in ended.err


def test_quiet_prints_verdict_lines_and_the_count(call: Call, script: Script, files: list[str]) -> None:
    script(PASS, FAIL)
    assert call("run", *files[:2], "-q").out == "summary of one\nsummary of two\n2 runs: 1 pass, 1 fail\n"


def test_only_what_the_machine_spoiled_is_run_again(call: Call, script: Script, files: list[str]) -> None:
    ran = script(without_data(), UNKNOWN, PASS, RunError("disk full"))
    ended = call("run", *files, "--retry-inconclusive", "1")
    assert ended.status == 3
    assert [name for name, _ in ran] == ["one", "two", "two", "three"]


@pytest.mark.parametrize("options", [["--repeat", "0"], ["--retry-inconclusive", "-1"], ["--repeat", "x"]])
def test_counts_are_checked(call: Call, script: Script, files: list[str], options: list[str]) -> None:
    ran = script()
    assert (call("run", files[0], *options).status, ran) == (2, [])


@pytest.mark.parametrize("width", [80, 120])
def test_names_of_folders_are_never_broken(width: int) -> None:
    name = "20261122T084020Z-a-scenario-with-a-name"
    done = [
        Case(
            Path("x.yaml"), SCENARIO, 1, 1, (outcome(PASS, folder=f"/somewhere/that/is/long/results/{name}-{number}"),)
        )
        for number in range(3)
    ]
    out = io.StringIO()
    Console(file=out, width=width).print(render_batch(done))
    lines = out.getvalue().splitlines()
    assert sum(line.rstrip().endswith(f"{name}-{number}") for line in lines for number in range(3)) == 3
    assert "in /somewhere/that/is/long/results" in " ".join(out.getvalue().split())
