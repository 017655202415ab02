"""The page of a benchmark: transports beside each other, on a desk and on a phone, by day and by night."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.pages.bench.page import bench_page
from tests.browser.conftest import OpenPage
from tests.unit.bench.documents import bench_document, kpi, one_test

TRANSPORTS = ("mrc", "roce-1", "roce-16", "tcp")


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    figures = [kpi(name, 4.0 / number, p95=5.0, p99=6.0) for number, name in enumerate(TRANSPORTS, 1)]
    long = one_test(kpis=figures, deviations=["Sums are XOR, of which every byte is compared. " * 4])
    file = tmp_path / "bench.html"
    file.write_text(bench_page(bench_document(long), "mrc-testbed bench run --out mine"), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.nightly(keep=1)
def test_tables_scroll_and_not_the_page(page_file: Path, open_page: OpenPage, width: int) -> None:
    page = open_page(page_file, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_bars_of_transports_are_as_long_as_their_figures(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file)
    bars = page.locator(".bar rect").evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert [bars[0] / bar for bar in bars] == pytest.approx([1, 2, 3, 4], rel=0.15)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.nightly(keep=1)
def test_bars_differ_from_each_other_and_from_the_paper(page_file: Path, open_page: OpenPage, dark: bool) -> None:
    page = open_page(page_file, dark=dark)
    fills = page.locator(".bar rect").evaluate_all("all => all.map((one) => getComputedStyle(one).fill)")
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert len({*fills, paper}) == len(TRANSPORTS) + 1


def test_a_test_of_the_table_is_one_click_away(page_file: Path, open_page: OpenPage) -> None:
    page = open_page(page_file, width=390)
    page.locator("#configuration a").first.click()
    assert page.locator(r"#test-9\.1 h3").is_visible()
    page.locator("details summary").click()
    assert page.locator(".runs a").get_attribute("href") == "runs/cells/160e/1/"
