"""The page of planned networks: its numbers are the planner's, its curves step where a tier is added."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.planner.arithmetic.clos import Clos, least_tiers
from mrc_testbed.testbed.planner.arithmetic.design import Design, NicCable
from mrc_testbed.testbed.planner.arithmetic.growth import families, stretches
from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
from mrc_testbed.testbed.planner.arithmetic.prices import Prices
from mrc_testbed.testbed.planner.pages.chart import BOTTOM, TOP, drawing
from mrc_testbed.testbed.planner.pages.failures import failure_charts
from mrc_testbed.testbed.planner.pages.growth import growth_charts
from mrc_testbed.testbed.planner.pages.page import findings
from mrc_testbed.testbed.planner.pages.tiers import counted, tiers_drawing
from mrc_testbed.testbed.planner.report.designs import number_words
from tests.planned import PARTS, document_of, jobs_on, page_of, planned
from tests.unit.calls import Call

_VOID = {"meta", "link", "br"}
DEFAULT = planned([131_072], [8])
SEVERAL = planned([10_000, 50_000], [1, 4, 8], [320])
PAGE = page_of(DEFAULT)


class Tags(HTMLParser):
    """Refuses elements that end in another order than they began."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


@pytest.mark.parametrize("made", [DEFAULT, SEVERAL])
def test_the_page_is_whole_and_needs_no_network(made: list[Design]) -> None:
    page = page_of(made)
    tags = Tags(page)
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids))
    levels = [int(level) for level in re.findall(r"<h(\d)", page)]
    assert all(below - above <= 1 for above, below in pairwise(levels)), "no level of headings is left out"
    assert set(re.findall(r"https?://[^\"' ]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_it_carries_the_document_of_json() -> None:
    notes = ["a note with `an option`"]
    page = page_of(DEFAULT, notes)
    assert data_of(page)["plan"] == json.loads(json.dumps(document_of(DEFAULT, notes)))
    assert "a note with <code>an option</code>" in page


@pytest.mark.parametrize("key", ["switches", "transceivers_a_nic", "watts", "watts_a_nic", "latency", "paths"])
def test_numbers_of_the_page_are_those_of_the_planner(key: str) -> None:
    texts = Tags(PAGE).texts
    for design in (design for design in DEFAULT if design.clos.fits):
        said = number_words(design.numbers()[key])
        assert any(text == said or text.startswith(f"{said}, x ") for text in texts)


def test_every_footnote_that_a_row_names_is_there() -> None:
    named = set(re.findall(r'href="#(part-\d+)"', PAGE))
    assert named
    assert named <= set(Tags(PAGE).ids)
    assert "913 W, published: UfiSpace" in PAGE


def test_what_further_designs_take_is_said_in_ratios() -> None:
    [(heading, lines)] = findings(DEFAULT)
    assert heading == "131,072 GPUs, over 8 planes x 100G, two tiers, 512 ports:"
    assert lines[0].endswith("no room; it ends at 65,536 GPUs.")
    assert "2.33 times the switches, 2.00 times the transceivers and 2.14 times the power a NIC" in lines[1]


@given(st.sampled_from([1, 4, 8]), st.integers(1, 256).map(lambda half: 2 * half), st.integers(2, 10**9))
def test_a_stretch_has_the_fewest_tiers_for_every_size_in_it(planes: int, ports: int, gpus: int) -> None:
    found = stretches(_design(Clos(planes, 2, ports, 2)))
    tiers = [part.full.clos.tiers for part in found if part.fewest <= gpus <= part.full.clos.nics]
    assert tiers == ([least] if (least := least_tiers(gpus, ports)) else [])


def _design(clos: Clos) -> Design:
    return Design(clos, 800, PARTS.switches["51.2T"], PARTS.transceivers["dsp"], NicCable.OPTICS, PARTS)


def test_curves_step_where_a_tier_is_added_and_end_where_four_do_not_reach() -> None:
    path = next(chart for chart in growth_charts(DEFAULT) if chart.title == "switches on the longest path")
    planes, one = path.lines
    assert list(planes.points)[:3] == [(1000, 3), (131_072, 3), (131_073, 5)]
    assert [point[0] for point in one.points] == [1000, 2048, 2049, 65_536, 65_537, 2_097_152]
    assert (planes.ends, one.ends) == (False, True)


def test_a_full_network_lies_on_its_curve() -> None:
    """A network of 131,072 NICs has no free port on two tiers, and none on four of 64 ports."""
    for chart in growth_charts(DEFAULT):
        for line in chart.lines:
            assert all(any(dot[1] == pytest.approx(point[1]) for point in line.points) for dot in line.dots)


def test_a_curve_a_family_whatever_is_asked() -> None:
    assert len(families(SEVERAL)) == 3
    assert {len(chart.lines) for chart in growth_charts(SEVERAL)} == {3}


def test_failures_are_drawn_once_a_family_as_the_document_has_them() -> None:
    document = document_of(SEVERAL)["failures"]
    charts = failure_charts(SEVERAL, jobs_on(SEVERAL), document)
    assert len(charts) == 2 * len(families(SEVERAL))
    assert {chart.across for _, chart in charts} == {"GPUs", "T0-T1 flaps a minute"}
    drawn = {(line.name, tuple(line.points)) for _, chart in charts for line in chart.lines}
    given = {
        (curve["name"], tuple(point for point in curve["points"] if point[0] > 0))
        for job in filter(None, document)
        for curve in (*job["effective_over_gpus"], *job["effective_over_flaps"])
    }
    assert drawn <= given


def test_what_failures_take_is_there_with_its_rates() -> None:
    for said in ("effective training time", "mean time between", "0.057 % of NIC-ToR links a month", "72.2 %"):
        assert said in PAGE
    named = set(re.findall(r'href="#(failure-\d+)"', PAGE))
    assert named
    assert named <= set(Tags(PAGE).ids)


def test_prices_have_a_curve_in_their_currency_only_if_there_are_any() -> None:
    assert not any("price" in chart.title for chart in growth_charts(DEFAULT))
    priced = [replace(design, prices=Prices("mine.toml", "EUR", 50_000, 1000, 0)) for design in DEFAULT]
    assert [chart.unit for chart in growth_charts(priced) if "price" in chart.title] == ["EUR"]


def test_a_small_network_lies_above_its_curve_and_in_the_picture() -> None:
    """Eight switches for two GPUs."""
    chart = next(chart for chart in growth_charts(planned([2], [8])) if chart.title == "switches a NIC")
    assert chart.lines[0].dots == [(2, 4)]
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="(-?[\d.]+)"', str(drawing(chart)))]
    assert len(heights) == 2
    assert all(TOP <= height <= BOTTOM for height in heights)


SHAPES = st.builds(Clos, st.sampled_from([1, 2, 4, 8]), st.integers(1, 4), st.sampled_from([2, 4, 64, 512]), st.just(2))


@given(SHAPES, st.data())
def test_a_drawing_has_all_planes_and_the_longest_path(shape: Clos, data: st.DataObject) -> None:
    nics = data.draw(st.integers(2, 2 * shape.most_nics))
    drawn = str(tiers_drawing(_design(Clos(shape.planes, shape.tiers, shape.ports, nics))))
    tree = ElementTree.fromstring(drawn)
    classes = [each.get("class") for each in tree.iter()]
    assert classes.count("layer") == shape.planes
    assert [each.text for each in tree.iter("text") if each.get("class") == "turn"][-1:] != []
    assert f"NICs: {counted(min(nics, shape.most_nics))}<" in drawn


@pytest.mark.parametrize("design", [design for design in DEFAULT if design.clos.fits])
def test_a_drawing_counts_switches_and_numbers_the_path(design: Design) -> None:
    drawn = str(tiers_drawing(design))
    turns = re.findall(r'class="turn">(\d+)<', drawn)
    assert sorted(map(int, turns)) == list(range(1, design.clos.longest_path + 1))
    assert all(f"T{tier}: {count:,}<" in drawn for tier, count in enumerate(design.clos.tier_switches))


def test_names_of_parts_cannot_break_the_page() -> None:
    text = '[switch."51.2T"]\nname = "</script><b>x"\nlogical_ports = 512\nwatts = 1\n'
    assert "<b>x" not in page_of(planned([1000], [8], parts=load_parts(text, "my.toml")))


def test_the_command_writes_the_page_beside_the_table(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    ended = call("plan", "--planes", "1,8", "--html", str(file))
    assert ended.status == ExitCode.PASS
    assert "room for the GPUs" in ended.out
    assert str(file) in ended.out
    assert "Networks for 131,072 GPUs" in file.read_text()


def test_simulated_campaigns_are_on_the_page(call: Call, tmp_path: Path) -> None:
    call("plan", "--monte-carlo", "20", "--days", "5", "--html", str(tmp_path / "plan.html"))
    assert "20 campaigns of 5 days" in (tmp_path / "plan.html").read_text()
    assert "campaigns of" not in PAGE


def test_balls_have_a_page_too(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "balls.html"
    ended = call("plan", "--balls", "--links", "4,32", "--html", str(file), "--json", "-")
    found = data_of(file.read_text())
    assert found["balls"] == json.loads(ended.out)
    [chart] = found["charts"]
    assert chart["samples"] == [4, 32]
    assert [line["name"] for line in chart["lines"]] == ["hashed", "sprayed"]
    assert Tags(file.read_text()).open == []


def test_balls_on_one_number_of_links_have_a_table_alone(call: Call, tmp_path: Path) -> None:
    call("plan", "--balls", "--links", "32", "--html", str(tmp_path / "balls.html"))
    assert data_of((tmp_path / "balls.html").read_text())["charts"] == []


def test_json_on_standard_output_stays_json(call: Call, tmp_path: Path) -> None:
    ended = call("plan", "--html", str(tmp_path / "plan.html"), "--json", "-")
    carried = data_of((tmp_path / "plan.html").read_text())["plan"]
    assert {key: json.loads(ended.out)[key] for key in carried} == carried


def test_a_page_that_cannot_be_written_is_said_in_one_line(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = call("plan", "--planes", "1", "--html", str(tmp_path / "file" / "plan.html"))
    assert ended.status == ExitCode.USAGE
    path = tmp_path / "file" / "plan.html"
    assert ended.said[-1].startswith(f"mrc-testbed: --html {path}: cannot be written: ")


@pytest.mark.parametrize("options", ["--gpus 2", "--gpus 8 --tiers 1"])
def test_curves_that_are_0_everywhere_are_drawn(call: Call, tmp_path: Path, options: str) -> None:
    """Copper takes nothing, and one tier has no other cables."""
    page = tmp_path / "x.html"
    ended = call("plan", *options.split(), "--nic-cable", "dac", "--html", str(page))
    assert (ended.status, page.exists()) == (ExitCode.PASS, True), ended.err
