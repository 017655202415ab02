from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app import run as run_module
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.errors import ExitCode, MissingCapability, TestbedError
from mrc_testbed.testbed.report.outcome import RunOutcome
from tests.unit.checks.test_folder import RunFolder
from tests.unit.outcomes import outcome, without_data, write_scenario

pytest_plugins = "pytester"
PASS, FAIL, UNKNOWN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE
PLUGIN = ("-p", "mrc_testbed.testbed.pytest_plugin", "-p", "no:cacheprovider")
REASON = "machine: timers late (p99): observed 7 ms, expected <= 5 ms"
A_TEST = """
def test_it(mrc_testbed):
    result = mrc_testbed.run("one.yaml")
    assert result.passed, result.reason
"""
Script = Callable[..., list[Any]]


@pytest.fixture
def script(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Runs come to these ends. Returns the scenarios that were run, each with the folder it was given."""
    write_scenario(pytester.path, "one")

    def scripted(*ends: Status | RunOutcome | TestbedError) -> list[Any]:
        ran: list[Any] = []
        left = list(ends)

        def run_scenario(scenario: Any, out: Path, _quiet: bool, _console: Any) -> RunOutcome:
            ran.append((scenario, out))
            end = left.pop(0)
            if isinstance(end, TestbedError):
                raise end
            return end if isinstance(end, RunOutcome) else outcome(end, folder=f"results/{len(ran)}")

        monkeypatch.setattr(run_module, "run_scenario", run_scenario)
        return ran

    return scripted


def test_a_pass_passes_and_a_fail_is_the_tests_to_judge(pytester: pytest.Pytester, script: Script) -> None:
    ran = script(PASS, FAIL)
    pytester.makepyfile(A_TEST + A_TEST.replace("test_it", "test_again"))
    result = pytester.runpytest(*PLUGIN)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*AssertionError: network: step_time.p100 <= 2s: observed 2.5 s, expected <= 2 s (one.yaml:7)"]
    )
    assert len(ran) == 2, "a fail is not tried again"


def test_inconclusive_is_tried_once_more_and_then_fails(pytester: pytest.Pytester, script: Script) -> None:
    ran = script(UNKNOWN, PASS, UNKNOWN, UNKNOWN)
    pytester.makepyfile(A_TEST + A_TEST.replace("test_it", "test_again"))
    result = pytester.runpytest(*PLUGIN)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"inconclusive after 2 tries: {REASON}; see results/4"])
    assert len(ran) == 4


def test_what_no_try_can_mend_is_not_tried_again(pytester: pytest.Pytester, script: Script) -> None:
    ran = script(without_data(), PASS)
    pytester.makepyfile(A_TEST)
    result = pytester.runpytest(*PLUGIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["inconclusive after 1 try: scenario: recovery.p100 <= 8 rtt: no EV was retired by a fault; see results/one"]
    )
    assert len(ran) == 1


@pytest.mark.parametrize(
    "call",
    [
        "mrc_testbed.run('one.yaml', 'fabric.plains=2')",
        "mrc_testbed.run('one.yaml').check('step_tme.p100 <= 2s')",
        "mrc_testbed.run('one.yaml').check('step_time.p100 <= 0.1s')",
        "mrc_testbed.run('one.yaml').check('step_time.p100 <= 2s during nothing')",
        "mrc_testbed.run('one.yaml').metric('step_tme.p100')",
        "mrc_testbed.run('one.yaml').metric('step_time.p100 during nothing')",
    ],
)
def test_a_failure_shows_the_line_of_the_test_and_none_of_ours(
    pytester: pytest.Pytester, script: Script, tmp_path: Path, call: str
) -> None:
    RunFolder().write(tmp_path)
    script(replace(outcome(), folder=tmp_path))
    pytester.makepyfile(f"def test_it(mrc_testbed):\n    {call}\n")
    result = pytester.runpytest(*PLUGIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f">   *{call}"])
    result.stdout.no_fnmatch_line("testbed/*.py:*")
    result.stdout.no_fnmatch_line("*/testbed/*.py:*")


@pytest.mark.parametrize(("answer", "counted"), [("fail", "failed"), ("xfail", "xfailed"), ("skip", "skipped")])
@pytest.mark.parametrize("by_ini", [False, True])
def test_what_inconclusive_makes_of_a_test_can_be_chosen_but_never_a_pass(
    pytester: pytest.Pytester, script: Script, answer: str, counted: str, by_ini: bool
) -> None:
    ran = script(*[UNKNOWN] * 3)
    pytester.makepyfile(A_TEST)
    options = ["--mrc-inconclusive", answer, "--mrc-retries", "2"]
    if by_ini:
        pytester.makeini(f"[pytest]\nmrc_inconclusive = {answer}\nmrc_retries = 2")
        options = []
    pytester.runpytest(*PLUGIN, *options).assert_outcomes(**{counted: 1})
    assert len(ran) == 3


def test_overrides_seed_retries_and_the_folder_of_the_test(pytester: pytest.Pytester, script: Script) -> None:
    ran = script(PASS)
    pytester.makepyfile(
        """
        def test_it(mrc_testbed):
            mrc_testbed.run("one.yaml", "fabric.planes=1", "workload.0.train.steps=9", seed=5, retries=0)
        """
    )
    pytester.runpytest(*PLUGIN).assert_outcomes(passed=1)
    ((scenario, out),) = ran
    assert (scenario.fabric.planes, scenario.jobs[0].entry.steps, scenario.seed) == (1, 9, 5)
    assert out.name == "test_it0"


def test_results_can_be_kept_by_test(pytester: pytest.Pytester, script: Script) -> None:
    ran = script(PASS, PASS)
    pytester.makepyfile(A_TEST)
    pytester.runpytest(*PLUGIN, "--mrc-results", "kept")
    pytester.makeini("[pytest]\nmrc_results = by-ini")
    pytester.runpytest(*PLUGIN)
    assert [out for _, out in ran] == [pytester.path / "kept" / "test_it", pytester.path / "by-ini" / "test_it"]


def test_results_stay_where_they_were_said_although_a_test_goes_elsewhere(
    pytester: pytest.Pytester, script: Script
) -> None:
    ran = script(PASS)
    (pytester.path / "elsewhere").mkdir()
    pytester.makepyfile(
        """
        def test_it(monkeypatch, mrc_testbed):
            monkeypatch.chdir("elsewhere")
            mrc_testbed.run("one.yaml")
        """
    )
    pytester.runpytest(*PLUGIN, "--mrc-results", "kept").assert_outcomes(passed=1)
    assert [out for _, out in ran] == [pytester.path / "kept" / "test_it"]


def test_fewer_than_no_retries_are_refused(pytester: pytest.Pytester, script: Script) -> None:
    script(PASS)
    pytester.makepyfile("def test_it(mrc_testbed):\n    mrc_testbed.run('one.yaml', retries=-1)\n")
    result = pytester.runpytest(*PLUGIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*retries must be 0 or more, not -1*"])


def test_a_folder_beside_the_test_does_not_hide_a_shipped_scenario(pytester: pytest.Pytester, script: Script) -> None:
    ran = script(PASS)
    (pytester.path / "quickstart").mkdir()
    pytester.makepyfile("def test_it(mrc_testbed):\n    mrc_testbed.run('quickstart')\n")
    pytester.runpytest(*PLUGIN).assert_outcomes(passed=1)
    assert ran[0][0].name == "quickstart"


def test_mistakes_of_the_scenario_fail_the_test_with_their_place(pytester: pytest.Pytester, script: Script) -> None:
    ran = script()
    pytester.makepyfile("def test_it(mrc_testbed):\n    mrc_testbed.run('one.yaml', 'fabric.plains=2')\n")
    result = pytester.runpytest(*PLUGIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ScenarioError: --set fabric.plains=2: *"])
    assert not ran


def test_what_the_machine_lacks_fails_the_test_with_the_fix(pytester: pytest.Pytester, script: Script) -> None:
    script(MissingCapability("there is no sandbox", "run with sudo"))
    pytester.makepyfile(A_TEST)
    result = pytester.runpytest(*PLUGIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*MissingCapability: there is no sandbox. Fix: run with sudo"])


@pytest.mark.parametrize(
    ("call", "options", "ini", "world"),
    [
        ('"one.yaml", world="virtual"', (), "", "virtual"),
        ('"one.yaml"', ("--mrc-world", "virtual"), "", "virtual"),
        ('"one.yaml"', (), "mrc_world = virtual", "virtual"),
        ('"one.yaml", world="kernel"', ("--mrc-world", "virtual"), "", "kernel"),
        ('"one.yaml"', (), "", "kernel"),
    ],
)
def test_a_test_says_in_which_world_it_runs(
    pytester: pytest.Pytester, script: Script, call: str, options: tuple[str, ...], ini: str, world: str
) -> None:
    ran = script(PASS)
    pytester.makeini(f"[pytest]\n{ini}\n")
    pytester.makepyfile(f"def test_it(mrc_testbed):\n    mrc_testbed.run({call})\n")
    pytester.runpytest(*PLUGIN, *options).assert_outcomes(passed=1)
    assert ran[0][0].world == world


def test_ctrl_c_in_a_run_ends_all_tests(pytester: pytest.Pytester, script: Script) -> None:
    ran = script(RunOutcome(ExitCode.INTERRUPTED, 1.0, outcome(UNKNOWN).verdict))
    pytester.makepyfile(A_TEST + A_TEST.replace("test_it", "test_again"))
    ended = pytester.runpytest_inprocess(*PLUGIN, no_reraise_ctrlc=True)
    assert ended.ret == pytest.ExitCode.INTERRUPTED
    assert len(ran) == 1


@pytest.mark.parametrize("line", ["mrc_inconclusive = pass", "mrc_retries = many"])
def test_mistakes_of_the_ini_file_are_told_at_once(pytester: pytest.Pytester, script: Script, line: str) -> None:
    script()
    pytester.makeini(f"[pytest]\n{line}")
    result = pytester.runpytest(*PLUGIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {line.split()[0]} must be *"])


def test_loading_the_plugin_loads_nothing_else_of_the_testbed() -> None:
    rooms = [f"mrc_testbed.testbed.{name}" for name in ("runner", "scenario", "checks")]
    heavy = [*rooms, "pydantic", "pandas", "mininet", "rich"]
    script = f"import sys, mrc_testbed.testbed.pytest_plugin; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
