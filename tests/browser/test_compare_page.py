"""The page of a comparison: the same figures as the table, readable without colour, and still."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.app.comparison import PAGE_FILE, compare_folders
from tests.browser.conftest import OpenPage
from tests.unit.checks.test_folder import SCENARIO, RunFolder
from tests.unit.compare.test_transports import three
from tests.unit.recorded import record_run

USUAL = [1.0, 1.0, 1.0, 1.2, 1.1, 1.0, 1.0, 1.0]


def run_of(folder: Path, name: str, evs: int, factor: float) -> Path:
    scenario = SCENARIO.replace("workload:", f"endpoint: {{ev_active: {evs}}}\nworkload:")
    return record_run(folder / name, RunFolder(scenario=scenario, durations=[factor * one for one in USUAL]))


_LONG = "a-folder-with-a-name-that-fits-no-line-of-a-telephone-" + "x" * 40
"""Chosen so that the line which runs the comparison again cannot break at a space alone."""


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    """Three groups with two runs each; the last group has a run that does not count."""
    folders = [
        run_of(tmp_path / _LONG, f"{turn}-{evs}", evs, factor * (1 + 0.005 * turn))
        for turn in (0, 1)
        for evs, factor in ((1, 1.0), (2, 1.2), (4, 1.001))
    ]
    (folders[-1] / "fidelity.json").unlink()
    (folders[-1] / "verdict.json").unlink()
    return compare_folders(folders, tmp_path / "out").folder / PAGE_FILE


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.nightly(keep=1)
def test_the_page_says_what_differs(compared: Path, open_page: OpenPage, dark: bool) -> None:
    page = open_page(compared, dark=dark)
    assert page.locator("h1").inner_text() == "small by ev_active"
    assert "1 inconclusive run shown, not counted" in page.locator("p.warn").first.inner_text()
    row = page.locator("#table tr", has=page.get_by_role("rowheader", name="step, clean median"))
    cells = row.locator("td").all_inner_texts()
    assert "\N{MULTIPLICATION SIGN}1.20 worse" in cells[1].replace("\n", " ")
    assert "inconclusive" in page.locator("#runs tbody").inner_text()
    assert "not counted" in page.locator("#runs tbody").inner_text()


def test_marks_beyond_chance_differ_in_shape_and_say_so(compared: Path, open_page: OpenPage) -> None:
    page = open_page(compared)
    panel = page.locator(".forest", has_text="step, clean median")
    assert panel.locator(".bar .label").all_inner_texts() == ["ev_active=1", "ev_active=2", "ev_active=4"]
    filled = panel.locator(".dot.filled")
    assert filled.count() == 1
    assert filled.evaluate("one => getComputedStyle(one).transform") != "none"
    assert "worse" in panel.locator(".bar", has=page.locator(".dot.filled")).inner_text()
    one, dot = (panel.locator(name).bounding_box() for name in (".bar:nth-of-type(2) .one", ".dot.filled"))
    assert one is not None
    assert dot is not None
    assert dot["x"] > one["x"]


def test_runs_lie_over_each_other_in_one_chart(compared: Path, open_page: OpenPage) -> None:
    page = open_page(compared)
    page.locator("#over-time svg").wait_for()
    names = page.locator("#over-time text.name").all_text_contents()
    assert sorted(names) == [
        "ev_active=1",
        "ev_active=1 #2",
        "ev_active=2",
        "ev_active=2 #2",
        "ev_active=4",
        "ev_active=4 #2",
    ]
    assert "cut" in page.locator("#over-time text.fault-name").all_text_contents()


def test_links_lead_to_the_pages_of_the_runs(compared: Path, open_page: OpenPage) -> None:
    page = open_page(compared)
    href = page.locator("#runs a").first.get_attribute("href")
    assert (compared.parent / str(href)).resolve().exists()
    assert str(href).endswith("report.html")


def test_a_narrow_screen_scrolls_tables_and_not_the_page(compared: Path, open_page: OpenPage) -> None:
    page = open_page(compared, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.className")
    assert focused, "everything that scrolls or works is reached by the keyboard"


def test_two_runs_of_one_seed_show_first_what_differed(tmp_path: Path, open_page: OpenPage) -> None:
    other = RunFolder()
    other.events = [event for event in other.events if event.get("peer") != "h1"]
    folders = [record_run(tmp_path / "a", RunFolder()), record_run(tmp_path / "b", other)]
    page = open_page(compare_folders(folders, tmp_path / "out").folder / PAGE_FILE)
    assert page.locator("section").first.get_attribute("id") == "sequences"
    assert "only in the first run: h3->h1 p0/1 retired" in page.locator("#sequences table").inner_text()
    assert page.locator(".certain .badge").all_inner_texts() == ["same"] * 5


def transports(tmp_path: Path) -> Path:
    """MRC, a TCP that stalls, and a RoCE that dies."""
    return compare_folders(three(tmp_path), tmp_path / "out").folder / PAGE_FILE


@pytest.mark.parametrize("width", [1280, 390])
def test_transports_stand_side_by_side_with_what_to_trust(tmp_path: Path, open_page: OpenPage, width: int) -> None:
    page = open_page(transports(tmp_path), width=width)
    rows = page.locator("#variants tbody tr").all_inner_texts()
    assert ["RoCE, lossy" in row for row in rows] == [False, False, True]
    assert "died at 4.4 s" in rows[2]
    assert "K = 1538" in page.locator("#trust").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_longer_stall_has_a_longer_bar_and_a_dead_job_a_cross(tmp_path: Path, open_page: OpenPage) -> None:
    page = open_page(transports(tmp_path))
    boxes = [bar.bounding_box() for bar in page.locator(".stalls .fill").all()]
    mrc, tcp, roce = (box["width"] if box else 0 for box in boxes)
    assert mrc < roce < tcp
    assert page.locator(".stalls .dead").count() == 1
    said = page.locator(".stalls .stall:not(.head):not(.axis)").all_inner_texts()
    assert "65 us" in said[0]
    assert said[1].count("4.55 s") == 2, "in seconds here and there"
    page.locator("#over-time svg").wait_for()
    crosses = page.locator("#over-time path.series").evaluate_all(
        "paths => paths.filter(path => path.getAttribute('d').includes('l10 10')).length"
    )
    assert crosses == 1
