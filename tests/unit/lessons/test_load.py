"""Mistakes of lessons: each is told with its file, its line and what to write."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.lessons import new
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.new import new_lesson

TEMPLATE = Path(new.__file__).parent / "template"


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TEMPLATE, tmp_path / "mine"))


def changed(folder: Path, file: str, old: str, text: str) -> list[str]:
    """The mistakes of the lesson with a text replaced, as `file:line: ... message`."""
    path = folder / file
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, text), encoding="utf-8")
    with pytest.raises(ScenarioError) as found:
        load_lesson(folder)
    return [f"{Path(one.file).name}:{one.line}: {one.message}" for one in found.value.problems]


@pytest.mark.parametrize(
    ("file", "old", "text", "told"),
    [
        ("check.yaml", "format: 1", "format: 2", "check.yaml:3: the format is 2; this mrc-testbed reads format 1"),
        ("check.yaml", "goal:", "gaol:", "check.yaml:7: unknown key; did you mean 'goal'?"),
        ("check.yaml", "version: 1", "version: none", "check.yaml:4: must be a whole number of at least 1"),
        (
            "check.yaml",
            "[kernel, virtual]",
            "[kernal]",  # codespell:ignore
            "check.yaml:8: 'kernal' is no world; there are kernel, virtual",
        ),
        ("check.yaml", "same: [workload", "same: [workloads", "check.yaml:12: there is no key workloads"),
        ("check.yaml", "- same:", "- some:", "check.yaml:12: does not say what kind of condition it is"),
        ("check.yaml", "qp_errors == 0", "qp_eror == 0", "check.yaml:16: unknown metric 'qp_eror'"),
        ("check.yaml", "clean during port", "clean during cut", "there is no fault named 'cut'; declared: port"),
        ("check.yaml", "qp_errors == 0", "qp_errors == 0 [planes=4]", "check.yaml:16: there is no run [planes=4]"),
        ("check.yaml", "points: 2", "gives_away: left", "check.yaml:17: `says` and `gives_away` go together"),
        ("check.yaml", "points: 2", "says: a, gives_away: laft", "there is no answer 'laft'; did you mean 'left'?"),
        ("check.yaml", "once: kept", "once: built", "no expectation is named 'built'"),
        ("check.yaml", "points: 2", "points: 0", "check.yaml:17: must be a whole number of at least 1"),
        ("check.yaml", "within: 15%", "within: near", "check.yaml:24: must be a percentage such as 5%"),
        ("check.yaml", "{goodput clean}", "{godput clean}", "check.yaml:23: {godput clean}: unknown metric 'godput'"),
        ("check.yaml", "{goodput clean}", "goodput", "check.yaml:23: has something other than numbers"),
        ("check.yaml", "    value:", "    values:", "check.yaml:20: does not say what kind of answer it is"),
        ("check.yaml", "    predict: true", "    predict: yes", "check.yaml:22: must be true or false"),
        ("check.yaml", "  left:", "  Left:", "check.yaml:20: an answer is named in lower-case letters"),
        ("answers.yaml", "left:", "right:", "answers.yaml:2: check.yaml has no such answer"),
        ("answers.yaml", "left:", "left: 0.5", "answers.yaml:2: must be empty: students fill it in"),
        ("solution-answers.yaml", "left", "laft", "solution-answers.yaml:1: check.yaml has no such answer"),
        ("lesson.md", "# A new", "# An old", "lesson.md:1: must begin with `# A new lesson`"),
        ("hints.md", "## ", "### ", "hints.md:1: has no hint"),
        ("start.yaml", "planes: 2", "plains: 2", "start.yaml:7: unknown key 'plains'; did you mean 'planes'?"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(lesson: Path, file: str, old: str, text: str, told: str) -> None:
    found = changed(lesson, file, old, text)
    assert any(told in line for line in found), found


@pytest.mark.parametrize("name", ["answers.yaml", "lesson.md", "hints.md", "solution-answers.yaml"])
def test_a_missing_file_is_named(lesson: Path, name: str) -> None:
    (lesson / name).unlink()
    with pytest.raises(ScenarioError, match=name):
        load_lesson(lesson)


def test_a_folder_that_is_no_lesson_is_told_how_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is no lesson: it has no check.yaml; `mrc-testbed lesson new"):
        load_lesson(tmp_path)


def test_several_mistakes_are_told_at_once(lesson: Path) -> None:
    (lesson / "hints.md").write_text("", encoding="utf-8")
    assert len(changed(lesson, "check.yaml", "points: 2", "points: many")) == 2


def test_a_new_lesson_is_whole_and_is_never_written_over(tmp_path: Path) -> None:
    new_lesson(tmp_path / "mine")
    assert load_lesson(tmp_path / "mine").points == 4
    with pytest.raises(UsageError, match="is there already"):
        new_lesson(tmp_path / "mine")
