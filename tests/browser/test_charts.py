"""Charts over time: they share what they show, and are worked by pointer and by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from mrc_testbed.testbed.pages.assemble import assemble
from mrc_testbed.testbed.pages.charts import CHART_SCRIPTS, CHART_STYLES
from tests.browser.conftest import OpenPage

FAULTS = [
    {"name": "cut", "from": 4.0, "to": 5.0},
    {"name": "cut", "from": 6.0, "to": 7.0},
    {"name": "never-healed", "from": 15.0, "to": None},
]
SERIES = [
    {"name": "h0", "from": 0.0, "grain": 0.5, "v": [100.0] * 8 + [50.0] * 2 + [None] * 2 + [100.0] * 28},
    {"name": "h1", "t": [0.0, 10.0], "to": 20.0, "v": [80.0, 60.0]},
]
DRAW = """(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const view = Testbed.timeView(0, 20);
  document.body.style.maxWidth = "900px";
  for (const label of ["first", "second", "apart"]) {
    const place = document.createElement("figure");
    place.id = label;
    document.body.append(place);
    Testbed.lineChart(place, view, {
      label, unit: "Mb/s", faults: data.faults, series: data.series, limit: {value: 110, label: "line rate"},
      apart: label === "apart"});
  }
  globalThis.theView = view;
})()"""


@pytest.fixture
def page(tmp_path: Path, open_page: OpenPage) -> Page:
    file = tmp_path / "charts.html"
    data: Any = {"faults": FAULTS, "series": SERIES}
    text = assemble("base.html", {}, data, CHART_STYLES, CHART_SCRIPTS)
    file.write_text(text.replace("</body>", f"<script>{DRAW}</script></body>"), encoding="utf-8")
    opened = open_page(file)
    opened.locator("#first svg").wait_for()
    return opened


def shown(page: Page) -> list[float]:
    found: list[float] = page.evaluate("[theView.from, theView.to]")
    return found


def ticks(page: Page, chart: str) -> list[str]:
    return page.locator(f"#{chart} text.tick").all_text_contents()


def test_a_chart_names_its_lines_its_unit_and_its_faults(page: Page) -> None:
    assert page.locator("#first text.name").all_text_contents() == ["h0", "h1"]
    assert {"Mb/s", "line rate", "s since the workload\u2019s start"} <= set(ticks(page, "first"))
    assert {"cut", "never-healed"} <= set(page.locator("#first text.fault-name").all_text_contents())


def test_lines_apart_have_a_row_each_and_their_mean(page: Page) -> None:
    names = page.locator("#apart text.name")
    assert names.all_text_contents() == ["h0", "h1"]
    heights = [names.nth(n).bounding_box() for n in range(2)]
    assert heights[0]
    assert heights[1]
    assert heights[1]["y"] - heights[0]["y"] > 30
    assert {"97.4", "70"} <= set(ticks(page, "apart"))


def test_what_is_not_known_is_a_gap_in_the_line(page: Page) -> None:
    line = page.locator("#first g path.series").first.get_attribute("d") or ""
    assert line.count("M") == 2


def test_keys_zoom_pan_and_reset_all_charts_together(page: Page) -> None:
    before = ticks(page, "second")
    page.locator("#first .chart").focus()
    page.keyboard.press("+")
    assert shown(page) == [5, 15]
    assert ticks(page, "second") != before
    page.keyboard.press("Shift+ArrowRight")
    assert shown(page) == [7.5, 17.5]
    page.keyboard.press("0")
    assert shown(page) == [0, 20]


def test_the_reading_line_tells_values_and_faults(page: Page) -> None:
    page.locator("#first .chart").focus()
    page.evaluate("theView.point(4.25)")
    told = page.locator("#first .readout").inner_text()
    assert "h0 50, h1 80 Mb/s" in told
    assert "on: cut" in told
    page.evaluate("theView.point(5.5)")
    assert "h0" not in page.locator("#first .readout").inner_text()


def test_dragging_chooses_what_to_look_at_closer(page: Page) -> None:
    box = page.locator("#second .chart").bounding_box()
    assert box
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 100, steps=4)
    page.mouse.up()
    begin, end = shown(page)
    assert 0 < begin < end < 20
    page.locator("#second .chart").dblclick()
    assert shown(page) == [0, 20]
