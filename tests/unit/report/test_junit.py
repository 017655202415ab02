from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.junit import KEPT_TIME, RUN, junit_text
from mrc_testbed.testbed.report.outcome import Case, RunOutcome
from mrc_testbed.testbed.scenario import load_scenario
from tests.unit.outcomes import outcome, write_scenario

NAME, COUNTS = {"name"}, {"tests", "failures", "errors"}
TOLD = {"type", "message"}
SCHEMA: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time"} | COUNTS, {"testsuite"}),
    "testsuite": (
        NAME | COUNTS,
        {"time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "group"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        NAME,
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "rerunError", "flakyError", "system-out", "system-err"},
    ),
    "failure": (set(), TOLD, set()),
    "error": (set(), TOLD, set()),
    "rerunError": ({"type"}, {"message"}, set()),
    "flakyError": ({"type"}, {"message"}, set()),
    "system-out": (set(), set(), set()),
    "skipped": (set(), set(), set()),
}
"""By element: attributes it must have, others it may have, elements inside. From Jenkins' junit-10.xsd."""
SECONDS = re.compile(r"\d+\.\d{3}")


def assert_valid(element: Element) -> None:
    needed, allowed, inside = SCHEMA[element.tag]
    assert needed <= set(element.keys()) <= needed | allowed, element.attrib
    assert SECONDS.fullmatch(element.get("time", "0.000"))
    for child in element:
        assert child.tag in inside
        assert_valid(child)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    path = write_scenario(tmp_path, "one")
    return Case(path, load_scenario(path), 1, 1)


def document(*cases: Case) -> Element:
    root = ElementTree.fromstring(junit_text(cases))
    assert_valid(root)
    return root


def results(suite: Element) -> dict[str, list[str]]:
    return {test.get("name", ""): [child.tag for child in test] for test in suite.findall("testcase")}


def test_a_pass_is_a_testcase_a_check_and_one_for_the_machine(case: Case) -> None:
    root = document(replace(case, tries=(outcome(),)))
    (suite,) = root
    names = [KEPT_TIME, "qp_errors == 0", "step_time.p100 <= 2s", "data were moved"]
    assert results(suite) == {name: [] for name in names}
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["4", "0", "0", "0"]
    assert (suite.get("time"), root.get("time")) == ("12.500", "12.500")
    assert suite.get("file") == str(case.file)
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    wanted = {"seed": "7", "verdict": "pass", "tries": "1", "folder": "results/one", "base_rtt_ms": "20.500"}
    assert properties == wanted
    assert sum(float(test.get("time", "")) for test in suite.iter("testcase")) == 12.5


def test_a_failed_check_is_a_failure_with_its_place_and_figures(case: Case) -> None:
    (suite,) = document(replace(case, tries=(outcome(Status.FAIL),)))
    assert results(suite)["step_time.p100 <= 2s"] == ["failure"]
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "observed 2.5 s, expected <= 2 s"
    assert (failure.text or "").startswith("one.yaml:7: step_time.p100 <= 2s\n"), "in the file that the user wrote"
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")


def test_inconclusive_is_an_error_everywhere(case: Case) -> None:
    (suite,) = document(replace(case, tries=(outcome(Status.INCONCLUSIVE),)))
    assert set(map(tuple, results(suite).values())) == {("error",)}
    (first, *_) = suite.iter("error")
    assert (first.get("type"), first.get("message")) == (
        "inconclusive",
        "machine: timers late (p99): observed 7 ms, expected <= 5 ms",
    )
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("4", "4", "0")


@pytest.mark.parametrize(
    ("last", "tag"),
    [(Status.PASS, "flakyError"), (Status.FAIL, "flakyError"), (Status.INCONCLUSIVE, "rerunError")],
)
def test_earlier_tries_are_told_and_count_in_the_time(case: Case, last: Status, tag: str) -> None:
    (suite,) = document(replace(case, tries=(outcome(Status.INCONCLUSIVE, folder="results/first"), outcome(last))))
    (earlier,) = suite.findall(f"testcase[@name='{KEPT_TIME}']/{tag}")
    assert "results/first" in (earlier.text or "")
    assert suite.get("time") == "25.000"


@pytest.mark.parametrize(
    ("tries", "kind"),
    [
        ((), "not run"),
        ((RunOutcome(ExitCode.MISSING, 0.1, error="no tc"),), "machine lacks something"),
        ((RunOutcome(ExitCode.INTERRUPTED, 0.1),), "interrupted"),
    ],
)
def test_a_run_without_a_verdict_is_one_error(case: Case, tries: tuple[RunOutcome, ...], kind: str) -> None:
    (suite,) = document(replace(case, tries=tries))
    assert results(suite) == {RUN: ["error"]}
    (error,) = suite.iter("error")
    assert error.get("type") == kind
    assert suite.get("errors") == "1"


def test_warnings_are_in_system_out(case: Case) -> None:
    (suite,) = document(replace(case, tries=(replace(outcome(), warnings=("too many packets",)),)))
    assert (suite.findtext("system-out") or "").splitlines()[0] == "warning: too many packets"


def test_counts_of_several_suites_add_up(case: Case) -> None:
    tries = [(outcome(),), (outcome(Status.FAIL),), (outcome(Status.INCONCLUSIVE),), ()]
    root = document(*(replace(case, number=number, repeat=4, tries=one) for number, one in enumerate(tries, 1)))
    assert [suite.get("name") for suite in root] == ["one #1", "one #2", "one #3", "one #4"]
    assert [root.get(key) for key in ("tests", "failures", "errors")] == ["13", "1", "5"]


@given(st.text())
def test_any_text_gives_a_readable_document(text: str) -> None:
    scenario = load_scenario(Path(__file__).parents[3] / "scenarios" / "quickstart.yaml")
    said = RunOutcome(ExitCode.INCONCLUSIVE, 1.0, error=text, headline=text, warnings=(text,))
    document(Case(Path("a.yaml"), scenario, 1, 1, (said,)))


def test_what_the_transport_lacks_is_skipped_and_a_measured_run_fails_nothing(case: Case) -> None:
    lacking = CheckResult("trims == 0", Status.NOT_APPLICABLE, why="tcp has no trims")
    tried = outcome(Status.DIED)
    assert tried.verdict is not None
    missed = CheckResult("step_time.p100 <= 2s", Status.FAIL, 2.5, "<= 2", "s", line=7)
    verdict = replace(tried.verdict, checks=(lacking, missed), death="job died at 3.79 s: QP h0->h1: retry exceeded")
    (suite,) = document(replace(case, tries=(replace(tried, verdict=verdict),)))
    assert results(suite) == {KEPT_TIME: [], "trims == 0": ["skipped"], "step_time.p100 <= 2s": ["system-out"]}
    assert [suite.get(key) for key in ("failures", "errors", "skipped")] == ["0", "0", "1"]
    assert suite.findtext("testcase[@name='trims == 0']/skipped") == "tcp has no trims"
    said = suite.findtext("system-out") or ""
    assert "died: 3 steps" in said
    assert "job died at 3.79 s" in said


def of_same_name(tmp_path: Path, count: int) -> list[Case]:
    scenario = load_scenario(write_scenario(tmp_path, "one"))
    return [Case(tmp_path / f"{number}.yaml", scenario, 1, 1, (outcome(),)) for number in range(count)]


@given(st.lists(st.sampled_from(["a", "b", "a (2)", "a\0", "a\1"]), max_size=8))
def test_no_two_testcases_are_alike(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    (first, *_) = of_same_name(tmp_path_factory.mktemp("x"), 1)
    verdict = first.tries[0].verdict
    assert verdict
    checks = tuple(replace(verdict.checks[0], name=name) for name in names)
    tried = replace(first.tries[0], verdict=replace(verdict, checks=checks))
    suites = document(*(replace(first, file=Path(name), tries=(tried,)) for name in (*names, "b")))
    tests = [(test.get("classname"), test.get("name")) for test in suites.iter("testcase")]
    assert len(set(tests)) == len(tests) == (len(names) + 1) * (len(names) + 1)
    assert len({suite.get("name") for suite in suites}) == len(suites)


def test_two_files_of_one_name_are_told_apart_by_their_files(tmp_path: Path) -> None:
    cases = of_same_name(tmp_path, 2)
    assert [suite.get("name") for suite in document(*cases)] == [f"one ({case.file})" for case in cases]
    assert [suite.get("name") for suite in document(cases[0])] == ["one"]


def test_one_file_given_twice_is_two_suites(tmp_path: Path) -> None:
    (case,) = of_same_name(tmp_path, 1)
    assert [suite.get("name") for suite in document(case, case)] == [f"one ({case.file})", f"one ({case.file}) (2)"]
