"""The page of planned networks: pictures beside each other, curves read off by pointer and keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.conftest import OpenPage
from tests.planned import page_of, planned

QUESTIONS = [([131_072], [8], []), ([10_000, 50_000, 100_000], [8], []), ([100_000], [1, 4, 8], [320])]


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    return _written(tmp_path, [131_072], [8], [])


def _written(folder: Path, gpus: list[int], planes: list[int], ports: list[int]) -> Path:
    file = folder / "plan.html"
    file.write_text(page_of(planned(gpus, planes, ports)), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.nightly(keep=2)
def test_tables_scroll_and_not_the_page(
    tmp_path: Path, open_page: OpenPage, asked: tuple[list[int], list[int], list[int]], width: int
) -> None:
    page = open_page(_written(tmp_path, *asked), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_designs_stand_on_one_floor(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    boxes = [svg.bounding_box() for svg in page.locator("article.design > svg").all()]
    assert len({round(box["y"] + box["height"]) for box in boxes if box}) == 1
    heights = [box["height"] for box in boxes if box]
    assert heights == sorted(heights), "two tiers are lower than three, and three than four"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.nightly(keep=1)
def test_text_in_drawings_can_be_read(page_file: Path, open_page: OpenPage, dark: bool) -> None:
    page = open_page(page_file, dark=dark, width=390)
    sizes = page.locator(".panels svg text").evaluate_all("all => all.map((one) => one.getBoundingClientRect().height)")
    assert min(sizes) >= 9
    filled = page.locator(".switch.on").first.evaluate("one => getComputedStyle(one).fill")
    said = page.locator("text.turn").first.evaluate("one => getComputedStyle(one).fill")
    assert filled != said


def _curve(page: Page, title: str) -> str:
    return _figure(page, title).locator(".readout").inner_text()


def _figure(page: Page, title: str) -> Locator:
    return page.locator("figure.curve", has=page.get_by_text(title, exact=True))


def test_curves_say_what_was_asked_until_they_are_read_off(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    assert _curve(page, "switches on the longest path").splitlines() == [
        "131,072 GPUs",
        "8 planes x 100G, 512 ports: 3",
        "1 plane x 800G, 64 ports: 7",
    ]


def test_the_keyboard_moves_one_line_in_all_curves(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    _figure(page, "transceivers a NIC").focus()
    page.keyboard.press("Home")
    assert _curve(page, "transceivers a NIC").startswith("1,000 GPUs\n")
    assert _curve(page, "switches on the longest path").startswith("1,000 GPUs\n")
    page.keyboard.press("End")
    assert "64 ports: none" in _curve(page, "transceivers a NIC")
    page.keyboard.press("Escape")
    assert _curve(page, "transceivers a NIC").startswith("131,072 GPUs\n")


def test_the_pointer_reads_off_where_it_is(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    drawing = _figure(page, "links a NIC").locator("svg")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
    assert "512 ports: 16\n" in _curve(page, "links a NIC")
    assert "64 ports: 2" in _curve(page, "links a NIC")
    assert page.locator(".cursor[visibility=visible]").count() == page.locator("#growth figure.curve").count()


def test_samples_are_read_off_one_by_one(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    figure = page.locator("figure.curve", has_text="over flaps").first
    figure.focus()
    page.keyboard.press("ArrowLeft")
    readout = figure.locator(".readout").inner_text()
    assert readout.startswith("10 T0-T1 flaps a minute\n")
    assert "BGP, hold timer 9 s: 0 (" in readout


def test_a_mark_says_its_source_by_keyboard(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    row = page.locator("#numbers tr", has=page.get_by_role("rowheader", name="switches on the longest path"))
    mark = row.locator("abbr")
    mark.focus()
    shown = mark.evaluate("one => getComputedStyle(one, '::after').content")
    assert "2 x tiers - 1" in shown
