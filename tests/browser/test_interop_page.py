"""The page of endpoints that were judged: the table scrolls, marks lead to reasons, folders are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.interop.document import document
from mrc_testbed.testbed.interop.entries import Listed, ListedCapture, ListedImage, ListedProgram
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.interop.results import Row, StepMark, StepResult
from mrc_testbed.testbed.interop.steps import STEPS
from mrc_testbed.testbed.pages.interop.page import matrix_page
from tests.browser.conftest import OpenPage

HERE = Path(__file__).parent
MARKS = (StepMark.PASS, StepMark.FAIL, StepMark.NOT_APPLICABLE)
LONG = "h0: " + "a-reason-without-a-blank-" * 12
MARKUP = "<b>not bold</b>"


def _row(entry: Listed, shift: int, **more: Any) -> Row:
    results = [
        StepResult(
            step,
            mark := MARKS[(step.number + shift) % 3],
            () if mark is StepMark.PASS else (LONG, MARKUP),
            (f"{entry.name}/{step.word}",),
        )
        for step in STEPS
    ]
    return Row(entry, "someone 0.3", tuple(results), **more)


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    rows = [
        _row(ListedProgram("mine", ("./mine",), HERE), 0),
        _row(ListedImage("a box with a name of 40 letters, or so it is"[:40], "mine:1", Role.SENDER), 1),
        _row(ListedCapture("theirs", (HERE,), Role.RECEIVER), 2, notes=("3 of 9 packets: wrong ICRC",)),
    ]
    file = tmp_path / "matrix.html"
    file.write_text(matrix_page(document(rows, STEPS), "mrc-testbed interop list.json"), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1280, 390])
def test_the_table_scrolls_and_not_the_page(page_file: Path, open_page: OpenPage, width: int) -> None:
    page = open_page(page_file, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    region = page.get_by_role("region", name="endpoints and steps")
    assert region.evaluate("one => one.scrollWidth > one.clientWidth") is (width == 390)


def test_each_step_has_a_mark_and_a_fail_its_reasons(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    assert page.locator("#matrix tbody tr").count() == 3
    assert page.locator("#matrix td .badge").count() == 3 * len(STEPS)
    assert page.locator("#program-1 .badge.fail").count() == page.locator("#matrix tr:first-child .badge.fail").count()
    assert page.locator("#program-1").get_by_text(MARKUP, exact=True).count() > 0, "text of others stays text"
    assert page.locator("#program-3").get_by_text("3 of 9 packets: wrong ICRC").count() == 1
    assert page.locator("#matrix").get_by_text("capture, receiver").count() == 1


def test_a_name_leads_to_its_part_and_a_folder_is_named(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    page.get_by_role("link", name="theirs", exact=True).click()
    assert page.url.endswith("#program-3")
    assert page.locator("#program-1 a", has_text="stream").get_attribute("href") == "mine/stream/"


@pytest.mark.parametrize("dark", [False, True])
def test_marks_differ_in_colour_and_word(page_file: Path, open_page: OpenPage, dark: bool) -> None:
    page = open_page(page_file, dark=dark)
    styles = "all => all.map((one) => [one.innerText, getComputedStyle(one).color, getComputedStyle(one).background])"
    found = {tuple(each) for each in page.locator("#matrix td .badge").evaluate_all(styles)}
    assert {word for word, *_ in found} == {"pass", "fail", "n/a"}
    assert len(found) == 3
