"""Figures of docs/teaching.md that are of the shipped lessons, held against runs of them in virtual time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.lessons.evidence import Evidence
from testbed.lessons.shelf import shipped_lessons
from tests.lessons.stage import STUDENTS, Class

PAGE = Path(__file__).parents[2] / "docs" / "teaching.md"
DIVIDED = " / "
FIGURES = (
    ("02-eight-small-ports", "{} with two planes", "goodput during port [planes=2] / goodput before port [planes=2]"),
    ("04-three-round-trips", "{} packets with 4 paths", "packets_lost during cut [cut]"),
    ("04-three-round-trips", "4 paths, {} with 16", "packets_lost during cut [fewer]"),
    ("05-full-is-not-broken", "{} false alarms", "evs_retired before cut [drops]"),
    ("05-full-is-not-broken", "{} failed paths", "evs_retired [drops]"),
)
"""Lesson, what the page says, and the run that it is of."""
SPREAD = 0.3
"""How much one seed differs from another: a student's is drawn from the name, and false alarms are 48 or 60."""


@pytest.mark.parametrize(("lesson", "said", "figure"), FIGURES, ids=[said for _, said, _ in FIGURES])
def test_a_figure_of_the_page_is_that_of_a_run(lesson: str, said: str, figure: str, pupils: Class) -> None:
    folder = next(one for one in shipped_lessons() if one.name == lesson)
    evidence = pupils.student(folder, STUDENTS[0]).evidence
    parts = [_of_cell(evidence, part) for part in figure.split(DIVIDED)]
    value = parts[0] / parts[1] if len(parts) > 1 else parts[0]
    found = re.search(re.escape(said).replace(r"\{\}", r"([\d.]+)"), " ".join(PAGE.read_text(encoding="utf-8").split()))
    assert found, said
    assert float(found[1]) == pytest.approx(value, rel=SPREAD)


def _of_cell(evidence: Evidence, text: str) -> float:
    """A figure, with its cell in brackets."""
    name, cell = text.removesuffix("]").split(" [")
    return evidence.one([cell]).figure(name, None)
