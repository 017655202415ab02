"""The page of a benchmark: the draft's seven sections, transports beside each other, and what a stranger may write."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.pages.bench.page import bench_page
from tests.unit.bench.documents import bench_document, kpi, one_test
from tests.unit.calls import Call

COMMAND = "mrc-testbed bench run --out mine"
SECTIONS = (
    "Device under test",
    "Topology",
    "Configuration",
    "Hosts",
    "Results",
    "Anomalies",
    "Repeatability",
)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


def page_of(*tests: dict[str, Any], **more: Any) -> str:
    return bench_page(bench_document(*tests, **more), COMMAND)


def words_of(page: str, section: str = "") -> str:
    """What is read of a page or a section, as one line."""
    if section:
        page = page.partition(f'id="{section}"')[2].partition("\n</section>\n")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.partition("</style>\n</head>")[2] or page)).split())


def test_it_has_the_seven_sections_in_their_order() -> None:
    heads = re.findall(r"<h2>(\d)\. (.*?)</h2>", page_of())
    assert heads == [(str(number), title) for number, title in enumerate(SECTIONS, 1)]


def test_transports_are_side_by_side_and_bars_are_of_the_greatest() -> None:
    page = page_of()
    heads = re.search(r"<tr><th scope=\"col\">bus bandwidth, Gb/s</th>(.*?)</tr>", page)
    assert heads is not None
    assert re.findall(r">([\w-]+)</th>", heads[1]) == ["mrc", "roce-1"]
    assert re.findall(r'<rect width="([\d.]+)"', page) == ["100.0", "25.0"]


def test_spread_is_shown_where_values_differ() -> None:
    page = page_of(one_test(kpis=[kpi("mrc", 2.0, p95=3.0, p99=4.0), kpi("roce-1", 1.0)]))
    assert re.findall(r'class="spread">(.*?)<', page) == ["P50 2, P95 3, P99 4"]


def test_deviations_are_by_their_test_and_nothing_passes_or_fails() -> None:
    page = page_of()
    test = page.partition('id="test-9.1"')[2].partition("</section>")[0]
    assert "Sums are XOR." in test
    assert not re.search(r'class="[^"]*\b(pass|fail|badge)\b', page)


def test_what_was_not_measured_has_its_reason_and_no_0() -> None:
    page = page_of(one_test(kpis=[kpi("mrc"), kpi("roce-1", None, why="2 of 2 runs kept no time")]))
    assert "not measured*" in page
    assert "9.1 bus bandwidth roce-1 size 1MiB 2 of 2 runs kept no time" in words_of(page, "anomalies")


def test_a_transport_without_a_figure_has_no_column() -> None:
    page = page_of(one_test(kpis=[kpi("mrc"), kpi("roce-1"), kpi("mrc", name="trims", unit="packets")]))
    heads = re.search(r"<th scope=\"col\">trims, packets</th>(.*?)</tr>", page)
    assert heads is not None
    assert re.findall(r">([\w-]+)</th>", heads[1]) == ["mrc"]


def test_tests_that_are_not_run_have_their_reason() -> None:
    not_run = one_test("12.2", title="Leaks", status="not-run", why="no software", kpis=[], runs=[], deviations=[])
    page = page_of(one_test(), not_run)
    assert "2 tests: 0 as the draft has it, 1 with deviations, 1 not run." in words_of(page)
    assert "12.2 Leaks no software" in words_of(page, "not-run")
    assert 'id="test-12.2"' not in page


def test_anomalies_and_what_the_budget_left_out_are_told() -> None:
    page = page_of(one_test(anomalies=["runs/cells/1: died"]), left_out=["11.2"])
    assert "left no time for 11.2. 9.1 : runs/cells/1: died" in words_of(page, "anomalies")


@pytest.mark.parametrize(("cv", "shown"), [(0.049, "4.9 %"), (0.051, "> 5.1 %")])
def test_the_greatest_variation_of_a_figure_is_told_and_marked_above_the_advice(cv: float, shown: str) -> None:
    page = page_of(one_test(kpis=[kpi("mrc", cv=0.01), kpi("roce-1", cv=cv)]))
    assert words_of(page, "repeatability").endswith(f"9.1 bus bandwidth 2 2 {shown} roce-1 size 1MiB")


def test_an_empty_benchmark_has_a_page_too() -> None:
    page = bench_page({**bench_document(), "tests": [], "fabric": [], "environment": {}, "transports": {}}, COMMAND)
    assert "nothing measured" in page
    assert "No figure has two runs" in page


def test_words_of_a_stranger_are_only_words() -> None:
    test = one_test(
        ref=HOSTILE,
        title=HOSTILE,
        why=HOSTILE,
        fabric=[HOSTILE],
        parameters={HOSTILE: [HOSTILE]},
        kpis=[kpi(HOSTILE, name=HOSTILE, unit=HOSTILE, parameters={HOSTILE: HOSTILE}, why=HOSTILE)],
        deviations=[HOSTILE],
        runs=[HOSTILE],
        anomalies=[HOSTILE],
    )
    page = page_of(test, draft=HOSTILE, made=HOSTILE, environment={HOSTILE: HOSTILE}, left_out=[HOSTILE])
    assert "<img" not in page
    assert "alert(1)</script>" not in page


@pytest.mark.parametrize("folder", ["//other.example/x", "/etc", "../above", "runs/../../x"])
def test_a_run_elsewhere_is_no_link(folder: str) -> None:
    assert f"{folder}</p>" in page_of(one_test(runs=[folder]))


@pytest.mark.parametrize("folder", ["javascript:alert(1)", "runs/cells/a b/1"])
def test_a_link_stays_beside_the_page(folder: str) -> None:
    (link,) = re.findall(r'<p class="runs"><a href="(.*?)"', page_of(one_test(runs=[folder])))
    assert ":" not in link
    assert " " not in link


def test_a_figure_that_is_no_number_is_not_measured() -> None:
    page = page_of(one_test(kpis=[kpi("mrc", float("nan")), kpi("roce-1", float("inf"))]))
    assert page.count("not measured") >= 2


def test_the_command_makes_the_page_of_a_folder_or_a_file(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(bench_document()))
    beside, elsewhere = tmp_path / "bench.html", tmp_path / "new" / "mine.html"
    assert call("bench", "page", str(tmp_path)).out == f"{beside}\n"
    assert call("bench", "page", str(file), "-o", str(elsewhere)).out == f"{elsewhere}\n"
    assert "1. Device under test" in beside.read_text()
    assert "1. Device under test" in elsewhere.read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [((), "bench.json: is missing or unreadable"), (("-o", "mine.txt"), "-o mine.txt: must end in .html")],
)
def test_the_command_says_what_is_wrong(call: Call, tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    if words:
        (tmp_path / "bench.json").write_text(json.dumps(bench_document()))
    ended = call("bench", "page", str(tmp_path), *words)
    assert (ended.status, told in ended.err) == (2, True), ended.err


def test_a_page_that_cannot_be_written_is_one_line(call: Call, tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text(json.dumps(bench_document()))
    (tmp_path / "taken").write_text("")
    ended = call("bench", "page", str(tmp_path), "-o", str(tmp_path / "taken" / "mine.html"))
    assert ended.status != 0
    assert "cannot be written" in ended.err
    assert "Traceback" not in ended.err
