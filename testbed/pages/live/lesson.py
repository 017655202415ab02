"""What the page of the live view shows of a lesson, and of its grade. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.lessons.grade import Grade
from mrc_testbed.testbed.lessons.kinds import FreeText
from mrc_testbed.testbed.lessons.kinds.choices import SomeOf
from mrc_testbed.testbed.lessons.lesson import Answers, Lesson, LessonQuestion, own_file
from mrc_testbed.testbed.lessons.shown import SIGNS, verdict_line
from mrc_testbed.testbed.pages.explained import Explained
from mrc_testbed.testbed.pages.markdown import nodes
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.render import svg


def lesson_content(lesson: Lesson, folder: Path, answers: Answers, virtual: bool, plan: Plan | None) -> dict[str, Any]:
    """`plan`: of the fabric that is shown before the first run. `virtual`: null where there is no choice."""
    both, explained = len(lesson.worlds) > 1, Explained()
    return {
        "title": lesson.title,
        "text": explained.nodes(nodes(lesson.told.partition("\n")[2])),
        "hints": [explained.nodes(nodes(hint)) for hint in lesson.hints],
        "folder": str(folder.resolve()),
        "files": [*map(own_file, lesson.runs), *lesson.texts],
        "fields": [_field(one, answers.get(one.name)) for one in lesson.questions if not one.file],
        "virtual": (virtual or WorldKind.KERNEL not in lesson.worlds) if both else None,
        "fabric": None if plan is None else _fabric(plan),
    }


def _fabric(plan: Plan) -> dict[str, Any]:
    return {
        "svg": svg(plan, from_afar=True),
        "links": [link.name for link in plan.links],
        "switches": [one.name for one in plan.switches],
    }


def _field(question: LessonQuestion, given: Any) -> dict[str, Any]:
    kind = question.kind
    return {
        "name": question.name,
        "ask": question.ask or question.name,
        "form": kind.form,
        "predict": question.predicted,
        "choices": list(kind.choices),
        "several": isinstance(kind, SomeOf),
        "long": isinstance(kind, FreeText),
        "points": question.points,
        "given": shown_answer(given),
    }


def shown_answer(given: Any) -> str:
    """As a field of the page has it."""
    return "" if given is None else ", ".join(map(str, given)) if isinstance(given, list) else str(given)


def grade_content(grade: Grade) -> dict[str, Any]:
    """Verdict, points, and each part with its sign."""
    parts = [
        {
            "name": part.shown_name,
            "mark": part.mark.value,
            "sign": SIGNS[part.mark],
            "given": part.given,
            "why": part.shown_why,
        }
        for part in grade.parts
    ]
    return {
        "verdict": grade.mark.value,
        "line": verdict_line(grade),
        "parts": parts,
        "notes": [*grade.notes, *grade.advice],
        "error": "",
    }


def refusal_content(lines: Sequence[str]) -> dict[str, Any]:
    """In place of a grade: what cannot be judged as it is."""
    return {"verdict": "", "line": "", "parts": [], "notes": [], "error": "\n".join(lines)}
