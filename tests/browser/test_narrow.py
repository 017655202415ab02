"""Pages on a telephone: what is wider than the screen says so, and names and axes stay while it is moved."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from mrc_testbed.testbed.scenario.load.shipped import FOLDER
from tests.browser.conftest import OpenPage
from tests.browser.test_report_page import report, whole
from tests.live_stage import LiveStage
from tests.planned import page_of, planned

WIDTH, HEIGHT = 390, 844
LEFT_EDGES = """all => all.map(one => Math.round(
  one.getBoundingClientRect().left - one.closest(".moved, .scroll").getBoundingClientRect().left))"""
WIDER = "all => all.filter(one => one.scrollWidth - one.clientWidth > 1).length"
CUT = """all => all.filter(one => {
  const [text, around] = [one.getBoundingClientRect(), one.closest("svg").getBoundingClientRect()];
  return getComputedStyle(one.closest("svg")).overflow !== "visible" && text.right > around.right;
}).map(one => one.textContent)"""
MOVED = "all => all.forEach(one => (one.scrollLeft = 120))"


def page_of_a_run(folder: Path, open_page: OpenPage, width: int) -> Page:
    page = open_page(report(whole(), folder), width=width, height=HEIGHT)
    page.locator(".chart svg").first.wait_for()
    return page


def page_of_a_plan(folder: Path, open_page: OpenPage, width: int) -> Page:
    file = folder / "plan.html"
    file.write_text(page_of(planned([100_000], [1, 8], [])), encoding="utf-8")
    return open_page(file, width=width, height=HEIGHT)


@pytest.mark.parametrize("made", [page_of_a_run, page_of_a_plan])
def test_what_is_wider_than_the_screen_says_so(tmp_path: Path, open_page: OpenPage, made: object) -> None:
    assert callable(made)
    page = made(tmp_path, open_page, WIDTH)
    assert page.evaluate("document.documentElement.scrollWidth") == WIDTH
    wider = page.locator(".scroll, .moved, .fabric").evaluate_all(WIDER)
    assert wider > 0
    hints = page.locator(".sideways:visible")
    expect(hints).to_have_count(wider)
    expect(hints.first).to_have_text("move it sideways: more at the right →")
    expect(page.locator(".more-right")).to_have_count(wider)
    page.locator(".more-right").evaluate_all("all => all.forEach(one => (one.scrollLeft = one.scrollWidth))")
    expect(page.locator(".more-right")).to_have_count(0)
    expect(hints.first).to_have_text("← more at the left")


@pytest.mark.parametrize("made", [page_of_a_run, page_of_a_plan])
def test_a_wide_screen_shows_no_such_line(tmp_path: Path, open_page: OpenPage, made: object) -> None:
    assert callable(made)
    page = made(tmp_path, open_page, 1280)
    expect(page.locator(".sideways:visible")).to_have_count(0)
    expect(page.locator(".chart .names")).to_have_count(0)


def test_axes_and_names_of_rows_stay_while_a_chart_is_moved(tmp_path: Path, open_page: OpenPage) -> None:
    page = page_of_a_run(tmp_path, open_page, WIDTH)
    expect(page.locator(".chart .names svg:visible")).to_have_count(0)
    page.locator(".moved").evaluate_all(MOVED)
    names = page.locator(".chart .names svg:not(.titles):visible")
    expect(names).to_have_count(page.locator(".moved").evaluate_all(WIDER))
    assert set(names.evaluate_all(LEFT_EDGES)) == {0}
    assert "0" in names.first.locator("text").all_text_contents()


def test_titles_of_rows_are_whole_while_a_chart_is_moved(tmp_path: Path, open_page: OpenPage) -> None:
    page = page_of_a_run(tmp_path, open_page, WIDTH)
    titles = page.locator(".chart .row-title:visible")
    all_of_them = titles.all_text_contents()
    assert titles.evaluate_all(CUT) == []
    page.locator(".moved").evaluate_all(MOVED)
    assert titles.all_text_contents() == all_of_them
    assert titles.evaluate_all(CUT) == []


def test_the_first_column_of_a_table_stays(tmp_path: Path, open_page: OpenPage) -> None:
    page = page_of_a_plan(tmp_path, open_page, WIDTH)
    page.locator(".scroll").evaluate_all(MOVED)
    first = page.locator(".scroll.more-left tr > :first-child:not([colspan])")
    assert first.count() > 0
    assert set(first.evaluate_all(LEFT_EDGES)) == {0}


@pytest.mark.parametrize(
    ("width", "height", "least"), [(1280, 720, 16), (WIDTH, HEIGHT, 12)], ids=["last row of a room", "telephone"]
)
def test_names_on_the_live_page_can_be_read(open_page: OpenPage, width: int, height: int, least: float) -> None:
    """A letter is about 0.7 of its size high: 16 px of 720 are those of slides with 24 points."""
    stage = LiveStage(text=(FOLDER / "quickstart.yaml").read_text(encoding="utf-8"))
    try:
        stage.begin()
        page = open_page(stage.address, width=width, height=height)
        page.wait_for_selector("#drawing svg")
        sizes = page.locator("#drawing [data-node] text").evaluate_all(
            "all => all.map(one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a)"
        )
        assert len(sizes) == 8 + 4 * 6
        assert min(sizes) >= least
        overfull = page.locator("#drawing [data-node]").evaluate_all(
            """all => all.map(one => one.querySelector("text").getBoundingClientRect().width
              - one.querySelector("rect").getBoundingClientRect().width)"""
        )
        assert max(overfull) <= 0, "a name is within its box"
    finally:
        stage.stop()
