"""Figures of docs/teaching.md and of a lesson's story, held against runs of the lessons in virtual time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.lessons.evidence import Evidence
from mrc_testbed.testbed.lessons.shelf import shipped_lessons
from mrc_testbed.testbed.report.console import open_console
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.scenario.load.shipped import FOLDER
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
@pytest.mark.nightly(keep=2)
def test_a_figure_of_the_page_is_that_of_a_run(lesson: str, said: str, figure: str, pupils: Class) -> None:
    folder = next(one for one in shipped_lessons() if one.name == lesson)
    evidence = pupils.student(folder, STUDENTS[0]).evidence
    parts = [_of_cell(evidence, part) for part in figure.split(DIVIDED)]
    value = parts[0] / parts[1] if len(parts) > 1 else parts[0]
    found = re.search(re.escape(said).replace(r"\{\}", r"([\d.]+)"), _page())
    assert found, said
    assert float(found[1]) == pytest.approx(value, rel=SPREAD)


@pytest.mark.parametrize("name", STUDENTS)
@pytest.mark.nightly
def test_the_story_of_lesson_5_is_true_of_each_seed(name: str, pupils: Class) -> None:
    folder = next(one for one in shipped_lessons() if one.name == "05-full-is-not-broken")
    story = " ".join((folder / "lesson.md").read_text(encoding="utf-8").split())
    found = re.search(r"Over (\d+) paths failed.* grows by (\w+) lines", story)
    assert found
    evidence = pupils.student(folder, name).evidence
    assert _of_cell(evidence, "evs_retired before cut [drops]") > int(found[1])
    assert (_of_cell(evidence, "evs_retired during cut [drops]"), found[2]) == (5, "five")


@pytest.mark.parametrize("paths", [2, 6, 12])
@pytest.mark.nightly
def test_the_shares_of_few_paths_are_those_of_runs(paths: int, tmp_path: Path) -> None:
    found = re.search(r"slowest flow gets ([\d., ]+) of its share with ([\d, ]+) paths", _page())
    assert found
    shares, numbers = found[1].split(", "), [int(number) for number in found[2].split(", ")]
    file = FOLDER / "lessons/03-spray/start-few.yaml"
    scenario = load_scenario(file, ["world=virtual", f"endpoint.ev_active={paths}"])
    folder = run_scenario(scenario, tmp_path, True, open_console(stderr=True)).folder
    assert folder
    share = ask(load_record(folder), "fair_share.min").value
    assert share is not None
    assert f"{share:.2f}" == shares[numbers.index(paths)]


def _page() -> str:
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def _of_cell(evidence: Evidence, text: str) -> float:
    """A figure, with its cell in brackets."""
    name, cell = text.removesuffix("]").split(" [")
    return evidence.one([cell]).figure(name, None)
