"""What a run cannot say costs nothing, what a student did not do does; and what would help a late machine is said."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.app.lesson import plan
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.lessons import new
from mrc_testbed.testbed.lessons.advice import slower
from mrc_testbed.testbed.lessons.cells import InCell
from mrc_testbed.testbed.lessons.evidence import Evidence, NotKnown, NotThere, Planner
from mrc_testbed.testbed.lessons.expression import parse_expression
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark, LessonPart
from mrc_testbed.testbed.lessons.grades import GradedWork
from mrc_testbed.testbed.lessons.judging import NO_ANSWER, NOT_BUILT, judge_answer, judge_lesson
from mrc_testbed.testbed.lessons.kinds.names import TargetOf
from mrc_testbed.testbed.lessons.kinds.numbers import AnswerTolerance, Value
from mrc_testbed.testbed.lessons.lesson import LessonQuestion, Wanted
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.shown import grade_lines
from mrc_testbed.testbed.scenario import load_scenario

TEMPLATE = Path(new.__file__).parent / "template"
EVIDENCE = Evidence((), lambda options, folders: {"switches": 6144})


class FromARun(Value):
    """A number of a run that raises, or has it."""

    found: Exception | float = 1.0

    def own(self, evidence: Evidence) -> float:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def judged(found: Exception | float, given: Any, waits: bool = False) -> tuple[LessonMark, str]:
    kind = type("_Kind", (FromARun,), {"found": found})(parse_expression("1"), "", AnswerTolerance(), "")
    part = judge_answer(LessonQuestion("left", "", kind, 2, True), given, EVIDENCE, waits)
    return part.mark, part.why


def test_a_figure_that_the_run_cannot_give_leaves_the_answer_open() -> None:
    assert judged(NotKnown("the machine was late"), 0.5) == (LessonMark.INCONCLUSIVE, "the machine was late")


@pytest.mark.parametrize(
    ("found", "given", "why"),
    [
        (0.5, "half", "'half' is not a number, such as 3.5"),
        (0.5, 0.4, "it should be more; it counts exactly"),
    ],
)
def test_a_wrong_answer_fails(found: Exception | float, given: Any, why: str) -> None:
    assert judged(found, given) == (LessonMark.FAIL, why)


def test_no_answer_is_not_a_wrong_one() -> None:
    assert judged(NotKnown("the machine was late"), None) == (LessonMark.UNANSWERED, NO_ANSWER)


def test_an_answer_about_a_run_that_is_not_built_yet_waits() -> None:
    lacking = "there is no run [planes=8]"
    assert judged(NotThere(lacking), 0.5) == (LessonMark.WAITING, lacking)
    assert judged(0.5, 0.4, waits=True) == (LessonMark.WAITING, NOT_BUILT)
    assert judged(0.5, "half", waits=True)[0] is LessonMark.FAIL


def test_a_number_of_the_planner_needs_no_run() -> None:
    kind = Value(parse_expression("{plan switches} / 2"), "", AnswerTolerance(), "--gpus 1k")
    assert kind.judge("3,072", EVIDENCE).right


class Cell:
    """Of a run; `reason`: why its machine did not keep time."""

    def __init__(self, folder: Path, reason: str = "") -> None:
        self.run, self.settings, self.record = "scenario", (), SimpleNamespace(folder=folder)
        self._reason = reason

    def require_time_kept(self, text: str) -> None:
        if self._reason:
            raise NotKnown(self._reason)


def measured(planner: Planner, reason: str = "") -> tuple[LessonMark, str]:
    kind = Value(parse_expression("{plan gpus}"), "", AnswerTolerance(), "--gpus 1k --measured RUN --planes 2")
    evidence = Evidence((Cell(Path("/my work/run"), reason),), planner)  # type: ignore[arg-type]
    part = judge_answer(LessonQuestion("cost", "", kind, 2, True), 1024, evidence)
    return part.mark, part.why


def refuse(options: str, folders: Sequence[Path]) -> Mapping[str, Any]:
    raise UsageError("--measured: nothing broke in it")


def test_the_planner_reckons_with_a_run_that_can_be_believed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []
    echo = [sys.executable, "-c", "import json, sys; print(json.dumps({'gpus': 1024, 'words': sys.argv[1:]}))"]
    monkeypatch.setattr(
        "mrc_testbed.testbed.app.lesson.python_command", lambda module, command, *words: [*echo, *words]
    )

    def noted(options: str, folders: Sequence[Path]) -> Mapping[str, Any]:
        found = plan(options, folders)
        words.extend(found["words"])
        return found

    assert measured(noted) == (LessonMark.PASS, "")
    assert words[:6] == ["--gpus", "1k", "--measured", "/my work/run", "--planes", "2"]
    assert measured(noted, "timers were late") == (LessonMark.INCONCLUSIVE, "timers were late")
    assert measured(refuse) == (LessonMark.WAITING, "--measured: nothing broke in it")


def test_a_broken_requirement_is_said_by_what_needs_its_run_alone() -> None:
    evidence = Evidence((), EVIDENCE.plan, {"reboots": "reboots.yaml: fabric must stay as it was"})
    with pytest.raises(NotThere, match=r"reboots.yaml: fabric must stay"):
        TargetOf(InCell("grey", ()), "", False).judge("p0-t1-0", evidence)


def test_a_machine_that_should_have_kept_time_is_offered_half_the_rate() -> None:
    said = slower(load_scenario("quickstart"))
    assert "fabric.port_rate 6.25mbit with fabric.rtt 80ms asks half of it" in said


def test_what_would_give_an_answer_away_is_told_when_that_answer_is_right() -> None:
    lesson = replace(
        load_lesson(TEMPLATE),
        expect=(Wanted(InCell("qp_errors == 0", ()), 1, says="the run is there", gives_away=("errors",)),),
        questions=(LessonQuestion("errors", "", Value(parse_expression("0"), "", AnswerTolerance(), ""), 1, False),),
    )
    wrong, right = (judge_lesson(lesson, {"errors": given}, EVIDENCE) for given in (3, 0))
    assert next(iter(grade_lines(wrong))) == "✖ the run is there  (1 point): its figure is told once errors is right"
    assert next(iter(grade_lines(right))).startswith("✖ qp_errors == 0  (1 point): there is no run")
    assert wrong.as_dict()["parts"][0]["name"] == "qp_errors == 0", "teachers see what it is"


def test_points_without_an_answer_have_words_of_their_own() -> None:
    parts = [LessonPart(mark.value, mark, 2, why="why") for mark in LessonMark]
    grade = Grade("a", tuple(parts))
    assert list(grade_lines(grade)) == [
        "✔ pass  (2 points): why",
        "✖ fail  (2 points): as above",
        "· unanswered  (2 points): as above",
        "… waiting  (2 points): as above",
        "? inconclusive  (2 points): as above",
        "FAIL a: 2 of 8 points, 2 not answered, 2 not built yet, 2 not judged",
    ]
    assert (grade.as_dict()["unanswered"], grade.as_dict()["waiting"]) == (2, 2)
    row = GradedWork("anna", "a", 8, Grade("a", tuple(parts[2:]))).row
    assert row["verdict"] == "unanswered"
    assert row["reason"] == "unanswered: why; 2 points not answered; 2 points not built yet; 2 points not judged"
    assert [Grade("a", (one,)).exit_code for one in parts] == [0, 1, 1, 1, 3]
