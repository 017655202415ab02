"""Table, drawing and SVG name what they show and stay inside their frame."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mrc_testbed.topos import usid
from mrc_testbed.topos.export import plan_as_dict
from mrc_testbed.topos.families.clos2 import Clos2, clos2_shape
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.render import drawing, svg, table
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.tables import routes_of
from mrc_testbed.topos.units import count_text, plural, rate_text, time_text
from tests.examples import examples

pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"
QUICKSTART = build_plan(clos2_shape(4, 2, 4, 4, 12_500_000, 40_000_000))
SMALL = [(4, 2, 4, 4), (1, 1, 0, 2), (2, 2, 2, 1), (3, 4, 4, 2), (4, 4, 4, 2)]
BIG = [(16, 256, 16, 1), (16, 16, 16, 256), (1, 2, 256, 1), (9, 1, 0, 2)]


@cache
def plan_of(sizes: tuple[int, int, int, int]) -> Plan:
    return build_plan(clos2_shape(*sizes, 25_000_000, 20_000_000))


def texts(document: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(document).iter(f"{SVG}text")]


@pytest.mark.parametrize("sizes", SMALL)
def test_every_node_of_a_small_fabric_is_drawn(sizes: tuple[int, int, int, int]) -> None:
    plan = plan_of(sizes)
    words = drawing(plan, 100).split()
    shown = texts(svg(plan))
    for node in plan.node_names:
        assert node in words
        assert node in shown


@pytest.mark.parametrize("sizes", SMALL)
def test_from_afar_switches_are_named_within_their_plane(sizes: tuple[int, int, int, int]) -> None:
    plan = plan_of(sizes)
    document = ElementTree.fromstring(svg(plan, from_afar=True))
    shown = {node.get("data-node"): node[-1].text for node in document.iter(f"{SVG}g") if node.get("data-node")}
    assert set(shown) == set(plan.node_names)
    assert all(name is not None and name.endswith(text or "?") for name, text in shown.items())
    assert [text for text in shown.values() if text and text.startswith("p")] == []


@settings(max_examples=examples(60), deadline=None)
@example((11, 1, 2, 2), 46)  # the names of plane 10 take two rows where those of plane 0 take one
@given(
    st.tuples(st.integers(1, 16), st.sampled_from((1, 2, 4, 11, 101)), st.integers(1, 12), st.integers(2, 12)),
    st.integers(40, 160),
)
def test_no_line_is_wider_than_asked_for(sizes: tuple[int, int, int, int], width: int) -> None:
    lines = drawing(plan_of(sizes), width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("sizes", BIG)
def test_a_big_fabric_is_abbreviated(sizes: tuple[int, int, int, int]) -> None:
    plan = plan_of(sizes)
    drawn = drawing(plan, 100)
    assert max(map(len, drawn.splitlines())) <= 100
    assert len(drawn.splitlines()) < 40
    for end in (plan.switches[0], plan.switches[-1], plan.hosts[0], plan.hosts[-1]):
        assert end.name in drawn


def test_planes_left_out_are_counted() -> None:
    drawn = drawing(plan_of((16, 16, 16, 1)), 100)
    assert f"+{16 - drawn.count('─ plane ')}" in drawn.split()
    assert "+9 planes" in texts(svg(plan_of((16, 2, 2, 1))))


def test_a_drawing_needs_some_width() -> None:
    with pytest.raises(ValueError, match="width: 39"):
        drawing(QUICKSTART, 39)


@pytest.mark.parametrize("sizes", SMALL + BIG)
def test_table_has_the_counts_and_fits(sizes: tuple[int, int, int, int]) -> None:
    plan = plan_of(sizes)
    text = table(plan)
    shape = plan.shape
    counts = (
        f"{plural(shape.hosts, 'host')}, {plural(shape.switches, 'switch')}, {plural(shape.links, 'link')}",
        usid.locator(plan.switches[0].usid),
        usid.locator(plan.switches[-1].usid),
    )
    assert all(count in text for count in counts)
    assert max(map(len, text.splitlines())) <= 100


def test_table_takes_a_path_apart() -> None:
    text = table(QUICKSTART)
    for part in (
        "EV 0x0202c000 = plane 2, uplink 2, UDP port 49152",
        "fd00::7:0:2:0:2",
        "fcbb:bb00:1200:2202:1201:d203::",
        "h0:p2-t0-0",
        "p2-t0-0:p2-t1-2",
        "p2-t0-1:p2-t1-2",
        "h7:p2-t0-1",
    ):
        assert part in text


@pytest.mark.parametrize("sizes", SMALL + BIG)
def test_svg_is_a_document_that_loads_nothing(sizes: tuple[int, int, int, int]) -> None:
    document = svg(plan_of(sizes))
    root = ElementTree.fromstring(document)
    assert root.tag == f"{SVG}svg"
    assert "href" not in document
    assert "url(" not in document
    assert len(document) < 200_000


@pytest.mark.parametrize("sizes", SMALL + BIG)
def test_nothing_of_the_svg_lies_outside_its_page(sizes: tuple[int, int, int, int]) -> None:
    root = ElementTree.fromstring(svg(plan_of(sizes)))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for box in root.iter(f"{SVG}rect"):
        left, top = float(box.attrib["x"]), float(box.attrib["y"])
        assert left >= 0
        assert top >= 0
        assert left + float(box.attrib["width"]) <= width
        assert top + float(box.attrib["height"]) <= height


def test_svg_has_a_cable_for_every_link() -> None:
    paths = list(ElementTree.fromstring(svg(QUICKSTART)).iter(f"{SVG}path"))
    assert len(paths) == len(QUICKSTART.links)


def test_the_picture_in_the_docs_is_the_quickstart_fabric() -> None:
    picture = Path(__file__).parents[3] / "docs" / "fabric.svg"
    assert picture.read_text() == svg(QUICKSTART), "write docs/fabric.svg again"


@pytest.mark.parametrize(
    "family", [Clos2(2, 4, 4, (1, 1, 1, 0.5)), Clos3(2, 2, 2, 4, 2), Rail(4, 2, 2)], ids=lambda one: one.word
)
def test_the_pictures_of_families_in_the_docs_are_as_they_are_drawn(family: Family) -> None:
    picture = Path(__file__).parents[3] / "docs/families" / f"{family.word}.svg"
    drawn = svg(build_plan(Shape(1, family, 12_500_000, 40_000_000)), from_afar=True)
    assert picture.read_text(encoding="utf-8") == drawn, f"write {picture} again"


def test_a_plan_survives_json() -> None:
    data = plan_as_dict(QUICKSTART)
    assert json.loads(json.dumps(data)) == data
    assert data["paths_per_pair"] == {"same_t0": 4, "across_t0": 16}
    assert data["shape"]["port_rate_bps"] == 12_500_000
    assert {host["name"] for host in data["hosts"]} == set(QUICKSTART.host_by_name)
    assert {switch["name"]: int(switch["usid"], 16) for switch in data["switches"]} == {
        switch.name: switch.usid for switch in QUICKSTART.switches
    }


def test_exported_links_have_both_ends() -> None:
    for data, link in zip(plan_as_dict(QUICKSTART)["links"], QUICKSTART.links, strict=True):
        assert (data["name"], data["plane"], data["is_host_link"]) == (link.name, link.plane, link.is_host_link)
        for side, end in (("near", link.near), ("far", link.far)):
            assert data[side] == {
                "node": end.node,
                "name": end.name,
                "ifindex": end.ifindex,
                "mac": end.mac,
                "link_local": end.link_local,
            }


def test_path_counts_of_pairs_that_do_not_exist_are_0() -> None:
    assert plan_as_dict(plan_of((2, 1, 3, 2)))["paths_per_pair"] == {"same_t0": 2, "across_t0": 0}
    assert plan_as_dict(plan_of((2, 2, 3, 1)))["paths_per_pair"] == {"same_t0": 0, "across_t0": 6}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rate_text(25_000_000), "25 Mb/s"),
        (rate_text(6_250_000), "6.25 Mb/s"),
        (rate_text(100_000_000_000), "100 Gb/s"),
        (rate_text(100_000), "100 kb/s"),
        (rate_text(7), "7 b/s"),
        (time_text(20_000_000), "20 ms"),
        (time_text(1_300_000), "1.3 ms"),
        (time_text(2_000_000_000), "2 s"),
        (time_text(12_500), "12.5 us"),
        (time_text(0), "0 ns"),
        (count_text(23_596.04), "23,596"),
        (count_text(14.75), "14.8"),
        (count_text(12), "12"),
        (plural(1, "switch"), "1 switch"),
        (plural(2, "switch"), "2 switches"),
        (plural(1000, "host"), "1,000 hosts"),
    ],
)
def test_figures_read_well(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize("sizes", SMALL)
def test_every_link_and_node_of_a_small_fabric_can_be_found_by_name(sizes: tuple[int, int, int, int]) -> None:
    plan = plan_of(sizes)
    drawn = list(ElementTree.fromstring(svg(plan)).iter())
    for key, wanted in (("data-link", [link.name for link in plan.links]), ("data-node", plan.node_names)):
        assert sorted(node.get(key, "") for node in drawn if node.get(key)) == sorted(wanted)


@pytest.mark.parametrize("sizes", SMALL)
def test_where_switches_choose_the_table_has_their_addresses_and_no_usid(sizes: tuple[int, int, int, int]) -> None:
    plan = build_plan(plan_of(sizes).shape, Routing.ECMP_STATIC)
    shown = table(plan)
    assert f"{sum(1 for node in plan.node_names for _ in routes_of(plan, node)):,} routes" in shown
    assert f"h0 {plan.host_ports(plan.hosts[0])[0][1]}" in shown
    assert ("a T0 hashes" in shown) == (sizes[1] > 1)
    assert "EV" not in shown
    assert "uSID" not in shown
