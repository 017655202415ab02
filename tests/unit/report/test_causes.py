"""One cause a run: every medium says the same words, with the observed value and the bound, and the status follows."""

from __future__ import annotations

import html
import importlib.util
import io
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from mrc_testbed.testbed.app.finished import FinishedRun
from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.cause import causes_of_checks
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import (
    ExitCode,
    FabricError,
    MissingCapability,
    RunError,
    UnwrittenLimitError,
    UsageError,
)
from mrc_testbed.testbed.report.batch import batch_as_dict
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.junit import junit_text
from mrc_testbed.testbed.report.outcome import Case, RunOutcome
from mrc_testbed.testbed.report.runs import listed_run
from mrc_testbed.testbed.rundir.lines import Party
from mrc_testbed.testbed.runner.phases import Phases
from mrc_testbed.testbed.scenario import Scenario, load_recorded, load_scenario_text
from mrc_testbed.testbed.scenario.model.offered import Offered, PluginSource, PluginStuck
from tests.unit.checks.test_folder import RunFolder, at
from tests.unit.outcomes import SCENARIO
from tests.unit.outcomes import outcome as outcome_of

ROOT = Path(__file__).parents[3]


def failing() -> RunFolder:
    return RunFolder(expect=["steps_done == 9"])


def of_a_slow_machine() -> RunFolder:
    folder = failing()
    assert folder.fidelity is not None
    folder.fidelity["udp_rcvbuf_errors"] = 12
    return folder


def without_what_is_asked() -> RunFolder:
    folder = RunFolder(expect=["recovery.p100 <= 6 rtt"])
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    return folder


def broken_off() -> RunFolder:
    folder = RunFolder()
    folder.history.append({"t_ns": at(5), "op": "interrupt", "type": "fail", "error": "SIGINT"})
    return folder


def without_figures() -> RunFolder:
    folder = RunFolder()
    folder.fidelity = None
    return folder


def ended(**more: str) -> RunFolder:
    """By an error that somebody is named for."""
    folder = RunFolder()
    folder.history.append({"t_ns": at(5), "op": "interrupt", "type": "fail", "error": "it went wrong", **more})
    return folder


ENDS: list[tuple[Callable[[], RunFolder], ExitCode, Party | None, str, str]] = [
    (RunFolder, ExitCode.PASS, None, "", ""),
    (failing, ExitCode.FAIL, Party.NETWORK, "8", "== 9"),
    (of_a_slow_machine, ExitCode.INCONCLUSIVE, Party.MACHINE, "12 packets", "<= 0 packets"),
    (without_what_is_asked, ExitCode.INCONCLUSIVE, Party.SCENARIO, "", ""),
    (broken_off, ExitCode.INCONCLUSIVE, Party.MACHINE, "", ""),
    (without_figures, ExitCode.INCONCLUSIVE, Party.MACHINE, "", ""),
    (partial(ended, fix="buy another"), ExitCode.MISSING, Party.MACHINE, "", ""),
    (partial(ended, who="program"), ExitCode.INCONCLUSIVE, Party.PROGRAM, "", ""),
    (partial(ended, who="nobody we know"), ExitCode.INCONCLUSIVE, Party.MACHINE, "", ""),
]


def action() -> ModuleType:
    spec = importlib.util.spec_from_file_location("action_run", ROOT / "action" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("made", "code", "who", "observed", "bound"), ENDS)
def test_every_medium_says_the_same(
    tmp_path: Path, made: Callable[[], RunFolder], code: ExitCode, who: Party | None, observed: str, bound: str
) -> None:
    made().judge(tmp_path)
    said = io.StringIO()
    outcome = judge_folder(tmp_path, PatientConsole(file=said, width=1000), True, "mine [variant=roce] #2")
    assert outcome.verdict is not None
    cause = outcome.verdict.cause
    assert outcome.exit_code is outcome.verdict.exit_code is code
    assert (cause.who if cause else None) is who
    assert said.getvalue().split()[1:4] == ["mine", "[variant=roce]", "#2"]
    if cause is None:
        assert outcome.reason == ""
        return
    assert (cause.observed, cause.bound) == (observed, bound)
    words = str(cause)
    assert words.startswith(f"{who}: ")
    assert observed in words
    assert bound in words
    case = Case(tmp_path / "scenario.yaml", load_recorded(tmp_path), 1, 1, (outcome,))
    told = batch_as_dict([case])
    (of_json,) = told["runs"]
    media = {
        "terminal": said.getvalue(),
        "summary.txt": (tmp_path / "summary.txt").read_text(encoding="utf-8"),
        "JSON": of_json["reason"],
        "JUnit": junit_text([case]),
        "results": listed_run(tmp_path).note,
        "pytest": FinishedRun(outcome).reason,
        "GitHub": "\n".join(action().annotated(told)),
        "page": re.sub(r"</?[a-z][^>]*>", "", (tmp_path / "report.html").read_text(encoding="utf-8")),
    }
    lacking = [name for name, text in media.items() if words not in " ".join(html.unescape(text).split())]
    assert lacking == []
    assert told["exit_code"] == code
    assert bool(outcome.verdict.next_step) is (observed == "12 packets" or code is ExitCode.MISSING)
    assert outcome.verdict.next_step in media["terminal"]
    stored = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert stored["causes"] == of_json["causes"]
    assert (stored["causes"][0]["who"], stored["causes"][0]["observed"]) == (who, observed)
    assert Verdict.from_dict(stored) == outcome.verdict


def test_what_explains_the_others_comes_first() -> None:
    figure = CheckResult("goodput >= 90%", Status.FAIL, place="a.yaml:3")
    work = CheckResult("data were moved", Status.FAIL)
    program = CheckResult("every program ended with 0", Status.FAIL, who=Party.PROGRAM)
    printed = CheckResult("program.loss.last < 2", Status.FAIL, who=Party.PROGRAM, place="a.yaml:2")
    fabric = CheckResult("the fabric was as planned", Status.FAIL, who=Party.MACHINE)
    wrong = CheckResult("all data arrived as sent", Status.FAIL, hard=True)
    found = causes_of_checks([figure, printed, work, program, fabric, wrong])
    assert [cause.what for cause in found] == [one.name for one in (wrong, fabric, program, work, printed, figure)]


def test_an_older_run_has_its_words_once() -> None:
    why = "socket drops 12 packets, limit 0 packets"
    figure = {"name": "socket drops", "observed": 12.0, "limit": 0.0, "unit": "packets", "ok": False, "why": why}
    fidelity = {"ok": False, "figures": [figure], "measured_s": 9.0, "caveat": ""}
    old = Verdict.from_dict({"verdict": "inconclusive", "scenario": "small", "checks": [], "fidelity": fidelity})
    assert old.reason == "machine: socket drops: observed 12 packets, expected <= 0 packets"


def virtual() -> Scenario:
    return load_scenario_text(f"{SCENARIO.replace('NAME', 'one')}world: virtual\n")


ERRORS = [
    (MissingCapability("there is no clang", "install it"), ExitCode.MISSING, Party.MACHINE, "install it"),
    (PluginStuck("plugin mine.py:3: does not return"), ExitCode.INCONCLUSIVE, Party.PROGRAM, ""),
    (RunError("h0: the endpoint failed: plugin mine.py:3: KeyError: 1"), ExitCode.INCONCLUSIVE, Party.PROGRAM, ""),
    (RunError("h0: the endpoint failed: plugin other.py:3: KeyError: 1"), ExitCode.INCONCLUSIVE, Party.MACHINE, ""),
    (UnwrittenLimitError("h0 is not done after 9 s"), ExitCode.INCONCLUSIVE, Party.SCENARIO, ""),
    (UsageError("no such host"), ExitCode.INCONCLUSIVE, Party.SCENARIO, ""),
    (FabricError("t0-0", "tc", "refused"), ExitCode.INCONCLUSIVE, Party.MACHINE, ""),
    (KeyboardInterrupt("SIGTERM"), ExitCode.INTERRUPTED, Party.MACHINE, ""),
]


@pytest.mark.parametrize(("error", "code", "who", "step"), ERRORS, ids=lambda one: type(one).__name__)
def test_the_exit_status_follows_what_ended_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: ExitCode, who: Party, step: str
) -> None:
    def broken(_: object) -> None:
        raise error

    monkeypatch.setattr(Phases, "run_all", broken)
    monkeypatch.setattr("mrc_testbed.testbed.app.run.keep_plugins", lambda *_: None)
    monkeypatch.setattr(Offered, "sources", (PluginSource("mine.py", Path("mine.py"), b"", "ab" * 32),))
    outcome = run_scenario(virtual(), tmp_path, True, PatientConsole(file=io.StringIO()))
    assert outcome.verdict is not None
    assert (outcome.exit_code, outcome.stopped) == (code, code is ExitCode.INTERRUPTED)
    assert (outcome.causes[0].who, outcome.causes[0].next_step) == (who, step)


def test_data_that_arrived_wrong_fail_an_interrupted_run_and_still_nothing_more_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Phases, "run_all", interrupted)
    monkeypatch.setattr("mrc_testbed.testbed.app.judge.judge_folder", lambda *_: outcome_of(Status.FAIL))
    outcome = run_scenario(virtual(), tmp_path, True, PatientConsole(file=io.StringIO()))
    assert (outcome.exit_code, outcome.word, outcome.stopped) == (ExitCode.FAIL, "fail", True)


def test_a_run_that_could_not_begin_has_its_error_as_its_cause() -> None:
    outcome = RunOutcome(ExitCode.MISSING, 0.1, error="no tc")
    case = Case(Path("a.yaml"), virtual(), 1, 1, (outcome,))
    (told,) = batch_as_dict([case])["runs"]
    assert told["reason"] == "machine: no tc"
    assert [(cause["who"], cause["what"]) for cause in told["causes"]] == [("machine", "no tc")]
    assert RunOutcome(ExitCode.USAGE, 0.1, error="no such key").causes[0].who is Party.SCENARIO
