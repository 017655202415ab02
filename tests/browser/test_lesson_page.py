"""A lesson beside the live fabric: as a room sees it, and answered with nothing but a keyboard."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mrc_testbed.testbed.lessons import new
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark, LessonPart
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.pages.explained import Explained
from mrc_testbed.testbed.pages.glossary import definition
from mrc_testbed.testbed.pages.live.lesson import grade_content, lesson_content, refusal_content
from mrc_testbed.testbed.web.sse_state import GRADE, LESSON
from tests.browser.conftest import OpenPage
from tests.live_stage import LiveStage

COMMAND = str(Path(sys.executable).with_name("mrc-testbed"))
TEMPLATE = Path(new.__file__).parent / "template"
SIZES = [(1280, 720), (1920, 1080), (1024, 768)]
GRADED = Grade("new", (LessonPart("left", LessonMark.FAIL, 1, "0.5", "your run has more"),), ("a note",))


@pytest.fixture
def stage() -> Iterator[LiveStage]:
    made = LiveStage()
    yield made
    made.stop()


def content(stage: LiveStage, **changes: Any) -> dict[str, Any]:
    return {**lesson_content(load_lesson(TEMPLATE), Path("mine"), {}, True, stage.plan), **changes}


def opened(stage: LiveStage, open_page: OpenPage, lesson: dict[str, Any] | None = None, **how: Any) -> Page:
    stage.channel.send(LESSON, lesson or content(stage), 1)
    page = open_page(stage.address, **how)
    page.wait_for_selector("#lesson-title:not(:empty)")
    return page


def test_the_text_the_fields_and_the_fabric_are_there_before_any_run(stage: LiveStage, open_page: OpenPage) -> None:
    page = opened(stage, open_page)
    expect(page.locator("#lesson-title")).to_have_text("A new lesson")
    expect(page.locator("#lesson-text pre")).to_contain_text("mrc-testbed lesson check")
    expect(page.get_by_label("What share of its goodput")).to_be_visible()
    expect(page.locator("#drawing svg")).to_be_visible()
    expect(page.locator("#lesson-files")).to_contain_text("scenario.yaml")


@pytest.mark.parametrize(("width", "height"), [*SIZES, (390, 844)])
def test_the_text_has_the_page_until_there_is_a_run(
    stage: LiveStage, open_page: OpenPage, width: int, height: int
) -> None:
    page = opened(stage, open_page, width=width, height=height)
    whole = page.evaluate("document.body.clientWidth - 2 * parseFloat(getComputedStyle(document.body).paddingLeft)")
    lesson = page.locator("#lesson")
    assert lesson.evaluate("one => one.offsetWidth") == pytest.approx(whole, abs=2)
    expect(page.locator("aside")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    stage.begin()
    expect(page.locator("aside")).to_be_visible()
    if width > 900:
        assert lesson.evaluate("one => one.offsetWidth") < whole / 2


def test_terms_in_the_text_have_their_definitions(stage: LiveStage, open_page: OpenPage) -> None:
    text = [["p", {}, "An EV of a plane; another EV. ", ["code", {}, "PSN"]], ["ul", {}, ["li", {}, "planes"]]]
    page = opened(stage, open_page, content(stage, text=Explained().nodes(text), hints=[]))
    terms = page.locator("#lesson-text abbr.term")
    expect(terms).to_have_text(["EV", "plane"])
    expect(terms.first).to_have_attribute("title", definition("EV"))
    terms.first.focus()
    shown = terms.first.evaluate("one => getComputedStyle(one, '::after').content")
    assert definition("EV")[:20] in shown


def test_without_a_lesson_there_is_no_trace_of_one(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    page = open_page(stage.address)
    page.wait_for_selector("#drawing svg")
    expect(page.locator("#lesson")).to_be_hidden()


def test_enter_in_a_field_checks_and_the_result_is_shown(stage: LiveStage, open_page: OpenPage) -> None:
    page = opened(stage, open_page)
    page.get_by_label("What share of its goodput").focus()
    page.keyboard.type("0.9")
    page.keyboard.press("Enter")
    expect(page.locator("#lesson-answer")).to_have_text("did check")
    assert stage.asked == [{"do": "check", "virtual": True, "answer.left": "0.9", "was.left": ""}]
    expect(page.locator("#lesson-check")).to_be_disabled()
    stage.channel.send(GRADE, grade_content(GRADED), 1)
    expect(page.locator("#lesson-grade")).to_contain_text("FAIL new: 0 of 1 points")
    expect(page.locator("#lesson-grade li")).to_have_text("✖ left = 0.5your run has more")
    expect(page.locator("#lesson-check")).to_be_enabled()


def test_what_cannot_be_judged_is_said(stage: LiveStage, open_page: OpenPage) -> None:
    page = opened(stage, open_page)
    stage.channel.send(GRADE, refusal_content(["answers.yaml:2: left: write your prediction first"]), 1)
    expect(page.locator("#lesson-answer")).to_have_text("✖ answers.yaml:2: left: write your prediction first")
    expect(page.locator("#lesson-grade")).to_be_hidden()


def test_while_a_run_goes_on_nothing_is_checked(stage: LiveStage, open_page: OpenPage) -> None:
    page = opened(stage, open_page)
    stage.begin()
    expect(page.locator("#name")).to_have_text("small")
    page.locator("#lesson-check").click()
    expect(page.locator("#lesson-answer")).to_contain_text("the run goes on")
    assert stage.asked == []


def test_a_choice_and_several_choices_are_sent_as_words(stage: LiveStage, open_page: OpenPage) -> None:
    field = {"ask": "Which?", "form": "", "predict": False, "points": 1, "long": False, "given": ""}
    one = {**field, "name": "one", "choices": ["NACKs", "timeouts"], "several": False}
    some = {**field, "name": "some", "choices": ["a", "b", "c"], "several": True, "given": "a, C"}
    page = opened(stage, open_page, content(stage, fields=[one, some]))
    page.locator("#answer-one").select_option("NACKs")
    page.locator("#lesson-save").click()
    expect(page.locator("#lesson-answer")).to_have_text("did save")
    page.locator("#answer-some").get_by_label("b").check()
    page.locator("#lesson-save").click()
    expect(page.locator("#lesson-answer")).to_have_text("did save")
    one_only = {"do": "save", "virtual": True, "answer.one": "NACKs", "was.one": ""}
    assert stage.asked[0] == one_only, "the other was not touched"
    assert stage.asked[1] == {**one_only, "answer.some": "a, b, c", "was.some": "a, C"}


def test_what_is_typed_outlives_news_of_the_lesson(stage: LiveStage, open_page: OpenPage) -> None:
    page = opened(stage, open_page)
    page.get_by_label("What share of its goodput").fill("0.7")
    field = content(stage)["fields"][0]
    stage.channel.send(LESSON, content(stage, title="Again", fields=[{**field, "given": "0.5"}]), 1)
    expect(page.locator("#lesson-title")).to_have_text("Again")
    expect(page.locator("#answer-left")).to_have_value("0.7")
    page.locator("#lesson-save").click()
    expect(page.locator("#lesson-answer")).to_have_text("did save")
    assert stage.asked[0] == {"do": "save", "virtual": True, "answer.left": "0.7", "was.left": "0.5"}


def test_a_text_is_never_markup(stage: LiveStage, open_page: OpenPage) -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    page = opened(stage, open_page, content(stage, title=hostile, text=[["p", {}, hostile]], files=[hostile]))
    expect(page.locator("#lesson-title")).to_have_text(hostile)
    expect(page.locator("#lesson img")).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_it_fits_a_projector_without_scrolling_the_page(
    stage: LiveStage, open_page: OpenPage, width: int, height: int
) -> None:
    stage.begin()
    stage.frame()
    page = opened(stage, open_page, width=width, height=height)
    page.wait_for_selector(".tile")
    size = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert size == [width, height]
    assert page.locator("#drawing svg").bounding_box()["width"] > width / 4  # type: ignore[index]


def test_on_a_telephone_nothing_stands_out_at_the_side(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    page = opened(stage, open_page, width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_whole_lesson_by_keyboard_alone(open_page: OpenPage, tmp_path: Path) -> None:
    started = [COMMAND, "lesson", "start", str(TEMPLATE), str(tmp_path / "mine"), "--web", "--virtual"]
    with subprocess.Popen(started, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as command:
        assert command.stderr
        try:
            found = re.search(r"http\S+", command.stderr.readline())
            assert found
            page = open_page(found[0])
            page.wait_for_selector("#lesson-title:not(:empty)")
            page.locator("#answer-left").focus()
            page.keyboard.type("0.6")
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            expect(page.locator("#lesson-grade")).to_contain_text(
                "FAIL template: 1 of 4 points, 1 not built yet", timeout=60_000
            )
            expect(page.locator("#verdict")).to_contain_text("pass")
        finally:
            command.terminate()
    assert "left: 0.6" in (tmp_path / "mine" / "answers.yaml").read_text()
