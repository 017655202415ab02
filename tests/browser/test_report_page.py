"""report.html in a browser: every kind of run gives a page without an error, and what it shows can be worked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.pages.glossary import definition
from mrc_testbed.testbed.pages.report.write import write_report
from tests.browser.conftest import OpenPage
from tests.unit.checks.test_folder import HOSTS, LINK, THREE_TIERS, RunFolder, at, phase

READINGS = 44
"""Five a second, over the whole of the run."""


def report(folder: RunFolder, path: Path, readings: int = READINGS) -> Path:
    folder.write(path)
    _add_samples(path, readings)
    record = load_record(path)
    return write_report(record, judge(record))


def _add_samples(path: Path, readings: int = READINGS) -> None:
    rows = [
        (at(n / 5), host, f"port{plane}", n * 10_000, n, 0, n * 10_000, n, 0)
        for n in range(readings)
        for host in HOSTS
        for plane in range(2)
    ]
    head = "t_ns,node,port,rx_bytes,rx_packets,rx_drops,tx_bytes,tx_packets,tx_drops\n"
    (path / "samples.csv").write_text(head + "".join(",".join(map(str, row)) + "\n" for row in rows))


def whole() -> RunFolder:
    return RunFolder(expect=["qp_errors == 0", "steps_done == 9"])


def killed() -> RunFolder:
    folder = RunFolder()
    folder.completions = folder.completions[: 2 * len(HOSTS)]
    folder.history, folder.counters, folder.fidelity = folder.history[:4], None, None
    return folder


def never_started() -> RunFolder:
    folder = RunFolder(environment={})
    folder.completions, folder.history, folder.events = [], [], []
    folder.counters = folder.fidelity = None
    return folder


def failed_in_warm_up() -> RunFolder:
    folder = never_started()
    folder.history = [phase("build", -3), phase("warm up", -2, "fail", error="no path to h3 answered")]
    return folder


def without_fidelity() -> RunFolder:
    folder = RunFolder()
    folder.fidelity = None
    return folder


def without_faults() -> RunFolder:
    folder = RunFolder()
    folder.scenario = folder.scenario[: folder.scenario.index("faults:")] + "expect:\n"
    folder.history = [line for line in folder.history if "fault" not in line]
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    return folder


def one_step() -> RunFolder:
    folder = RunFolder(durations=[8.0])
    folder.scenario = folder.scenario.replace("steps: 8, compute: 500ms", "steps: 1, compute: 7s")
    return folder


KINDS = (whole, killed, never_started, failed_in_warm_up, without_fidelity, without_faults, one_step)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.nightly(keep=7)
def test_every_kind_of_run_gives_a_page(
    kind: Callable[[], RunFolder], dark: bool, tmp_path: Path, open_page: OpenPage
) -> None:
    page = open_page(report(kind(), tmp_path), dark=dark)
    assert page.locator(".verdict strong").inner_text() in ("PASS", "FAIL", "INCONCLUSIVE")
    assert page.locator("#asked").inner_text()
    assert page.locator("#happened").inner_text().endswith(".")
    assert page.locator(".fabric svg").count() == 1
    if kind in (never_started, failed_in_warm_up):
        assert page.locator("#goodput-chart svg").count() == 0
    else:
        expect(page.locator("#goodput-chart svg").first).to_be_visible()
    assert page.locator("#expectations").count() == 1


@pytest.fixture
def page(tmp_path: Path, open_page: OpenPage) -> Page:
    opened = open_page(report(whole(), tmp_path))
    opened.locator("#timeline-chart .chart svg").wait_for()
    return opened


def shown(page: Page) -> str:
    return page.locator("#toolbar .shown").inner_text()


def test_the_verdict_has_a_word_and_a_sign_and_a_reason(page: Page) -> None:
    assert page.locator(".verdict").inner_text().split() == ["\u2717", "FAIL"]
    assert "steps_done == 9" in page.locator(".why").inner_text()


def test_choosing_a_fault_shows_it_in_all_charts(page: Page) -> None:
    before = shown(page)
    page.get_by_label("Look closer at a fault").select_option(index=1)
    assert shown(page) == "3.20 s to 4.80 s"
    assert page.locator("#step-chart text.tick", has_text="4.0").count() == 1
    page.get_by_role("button", name="Show the whole run").click()
    assert shown(page) == before


def test_enter_looks_at_the_fault_and_then_at_its_injection(page: Page) -> None:
    page.locator("#timeline-chart .chart").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert shown(page) == "3.20 s to 4.80 s"
    page.keyboard.press("Enter")
    assert shown(page) == "3.351 s to 3.951 s"


def test_a_click_on_the_bar_of_a_fault_looks_at_it(page: Page) -> None:
    chart = page.locator("#goodput-chart .chart")
    chart.scroll_into_view_if_needed()
    bar = chart.locator(".fault-bar").bounding_box()
    assert bar
    page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    assert shown(page) == "3.20 s to 4.80 s"


def test_rows_are_read_off_by_keyboard(page: Page) -> None:
    page.locator("#timeline-chart .chart").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    told = page.locator("#timeline-chart .readout").inner_text()
    assert "h0\u2192h2 p0 t1-1: ASSUMED_BAD" in told
    assert "on: cut" in told


def test_the_slowest_step_is_marked_and_named(page: Page) -> None:
    assert page.locator("#step-chart .bar.worst.top").count() == 1
    assert page.locator("#step-chart text.name", has_text="step 3").count() == 1
    assert page.locator("#step-chart text.name", has_text="P100 1.2 s").count() == 1
    assert LINK in page.locator("#worst").inner_text()


def test_goodput_can_be_shown_by_plane_and_by_host(page: Page) -> None:
    names = page.locator("#goodput-chart text.name")
    assert names.all_text_contents() == ["total"]
    page.get_by_label("By plane").check()
    assert names.all_text_contents() == ["plane 0", "plane 1"]
    page.get_by_label("By host").check()
    assert sorted(names.all_text_contents()) == list(HOSTS)


def test_a_long_run_says_of_what_its_values_are_the_mean(tmp_path: Path, open_page: OpenPage) -> None:
    page = open_page(report(whole(), tmp_path, readings=4000))
    caption = page.locator("figcaption", has_text="Mb/s").inner_text()
    assert "Each value is the mean of 800 ms, near faults of 200 ms; the pale range" in caption


def test_the_drawing_shows_the_state_at_a_moment(page: Page) -> None:
    link = page.locator(f'.fabric [data-link="{LINK}"]')
    assert link.get_attribute("class") == "broken"
    slider = page.locator("#moment")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert link.get_attribute("class") == ""
    assert "no fault is on" in page.locator("#moment-told").inner_text()
    page.evaluate("const s = document.getElementById('moment'); s.value = 4; s.dispatchEvent(new Event('input'))")
    assert link.get_attribute("class") == "broken"
    page.get_by_role("button", name="any time").click()
    assert "any time" in page.locator("#moment-told").inner_text()


def test_all_that_can_be_worked_is_reached_by_tab(page: Page) -> None:
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"moment", "chart"} <= reached
    charts = page.locator(".chart")
    assert all(charts.nth(n).get_attribute("tabindex") == "0" for n in range(charts.count()))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.nightly(keep=1)
def test_print_is_black_on_white_with_charts_and_without_what_needs_a_screen(
    dark: bool, tmp_path: Path, open_page: OpenPage
) -> None:
    page = open_page(report(whole(), tmp_path), dark=dark)
    page.locator("#timeline-chart .chart svg").wait_for()
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).color") == "rgb(27, 31, 36)"
    assert not page.locator("#toolbar").is_visible()
    assert page.locator("#goodput-chart svg").is_visible()
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")


@pytest.mark.parametrize("width", [390, 900, 600, 1600])
@pytest.mark.nightly(keep=2)
def test_nothing_is_wider_than_the_window(width: int, tmp_path: Path, open_page: OpenPage) -> None:
    page = open_page(report(whole(), tmp_path), width=width)
    page.locator("#loss-chart svg").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_of_paths_have_room(tmp_path: Path, open_page: OpenPage, width: int) -> None:
    page = open_page(report(RunFolder(scenario=THREE_TIERS), tmp_path), width=width)
    labels = page.locator("#timeline-chart text.row-label")
    labels.first.wait_for()
    assert "h0\u2192h2 p0 t1-1 t2-1 t1-3" in labels.all_text_contents()
    left_of = "one => one.getBoundingClientRect().left"
    cut = f"all => all.filter(one => ({left_of})(one) < ({left_of})(one.closest('svg'))).length"
    assert labels.evaluate_all(cut) == 0
    assert page.locator('[data-node="p0-t2-1"]').count() == 1


def test_many_rows_are_folded_and_unfolded(tmp_path: Path, open_page: OpenPage) -> None:
    folder = whole()
    pairs = [(a, b) for a in HOSTS for b in HOSTS if a != b]
    folder.events += [
        {**event, "host": host, "peer": peer, "plane": plane, "uplink": 0, "t_ns": at(t), "from": old, "to": new}
        for host, peer in pairs
        for plane in range(2)
        for t, old, new in ((5.0, "GOOD", "SKIP"), (5.5, "SKIP", "GOOD"))
        for event in [{"event": "ev_state", "first_lost_tx_ns": 0, "last_tx_ns": 0}]
    ]
    page = open_page(report(folder, tmp_path))
    labels = page.locator("#timeline-chart text.row-label")
    labels.first.wait_for()
    assert labels.count() == 2 + 12
    page.get_by_role("button", name="Show all 26 rows").click()
    assert labels.count() == 26


def test_names_from_a_scenario_are_text_and_nothing_else(tmp_path: Path, open_page: OpenPage) -> None:
    folder = RunFolder()
    folder.scenario = folder.scenario.replace("A link goes down.", json.dumps("</script><img src=x onerror=alert(1)>"))
    page = open_page(report(folder, tmp_path))
    assert page.locator("img").count() == 0
    assert "<img src=x" in page.locator("#asked").inner_text()


def test_a_page_of_flows_and_steps_shows_both(tmp_path: Path, open_page: OpenPage) -> None:
    folder = RunFolder()
    folder.scenario = folder.scenario.replace("faults:", "  - write: {from: h0, to: h2, for: 8s}\nfaults:")
    path = folder.write(tmp_path)
    _add_samples(path)
    rows: list[tuple[Any, ...]] = [
        ("h2", "h0->h2", 0, at(n / 10), at((n + 1) / 10), 100_000, 1, 0, int(n == 79)) for n in range(80)
    ]
    head = "host,flow,qp,begin_ns,end_ns,bytes,messages,bytes_wrong,last\n"
    (path / "flows.csv").write_text(head + "".join(",".join(map(str, row)) + "\n" for row in rows))
    record = load_record(path)
    page = open_page(write_report(record, judge(record)))
    page.locator("#goodput-chart svg").wait_for()
    choices = page.locator("fieldset.choice label").all_inner_texts()
    assert [choice.strip() for choice in choices] == ["Total", "By plane"]
    assert "flows.csv" in page.locator("#goodput-chart figcaption").inner_text()
    assert page.locator("#step-chart svg").count() == 1


def note(page: Page) -> str:
    """What is shown at the foot of the page for the term that has the focus."""
    found: str = page.evaluate("getComputedStyle(document.querySelector('abbr.term:focus'), '::after').content")
    return found.strip('"')


@pytest.mark.parametrize("width", [1280, 390])
def test_a_term_tells_its_definition_by_keyboard(width: int, tmp_path: Path, open_page: OpenPage) -> None:
    page = open_page(report(whole(), tmp_path), width=width)
    retired = page.locator("#recovery ~ div abbr.term", has_text="retired").first
    assert retired.get_attribute("title") == definition("retire")
    retired.focus()
    assert note(page) == definition("retire")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("Escape")
    assert page.locator("abbr.term:focus").count() == 0


def test_a_term_is_marked_once_a_table_and_not_on_paper(page: Page) -> None:
    for table in page.locator("table").all():
        titles = [one.get_attribute("title") for one in table.locator("abbr.term").all()]
        assert len(titles) == len(set(titles))
    term = page.locator("abbr.term").first
    decoration = "one => getComputedStyle(one).textDecorationLine"
    assert term.evaluate(decoration) == "underline"
    page.emulate_media(media="print")
    assert term.evaluate(decoration) == "none"


def test_on_a_telephone_charts_keep_room_and_the_page_does_not_scroll_sideways(
    tmp_path: Path, open_page: OpenPage
) -> None:
    page = open_page(report(whole(), tmp_path), width=390, height=844)
    page.locator("#timeline-chart .chart > svg").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    plots = page.evaluate(
        "[...document.querySelectorAll('.chart svg g[clip-path]')].map((one) => "
        "document.getElementById(one.getAttribute('clip-path').slice(5, -1)).firstChild.width.baseVal.value)"
    )
    assert len(plots) >= 4
    assert min(plots) >= 300, "names and totals beside it left 85 pixels for a plot"
    right = page.evaluate(
        "[...document.querySelectorAll('#toolbar *, header *, .story *')]"
        ".map((one) => one.getBoundingClientRect().right)"
    )
    assert max(right) <= 390 - 16
    parts = page.evaluate("[...document.querySelectorAll('.fabric text')].map((t) => t.getBoundingClientRect().height)")
    assert max(parts) >= 9
