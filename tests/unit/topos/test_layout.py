"""Tiers stacked and pods side by side, found by walking the cables of any family, in text, table and SVG."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.layout import joins, pods, switches_text
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.render import drawing, svg, table
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from tests.examples import examples
from tests.small_families import every

THREE, RAIL = Clos3(2, 2, 2, 4, 2), Rail(4, 4, 2)
FAMILIES: dict[str, Family] = {
    "three": THREE,
    "rail": RAIL,
    "segments": Rail(2, 4, 2, 2),
    "big": Clos3(16, 4, 4, 64, 16),
    "wide": Clos3(2, 12, 12, 12, 1),
    "pods": Clos3(6, 2, 2, 4, 2),
}


def plan_of(family: Family, planes: int = 2, routing: Routing = Routing.SRV6) -> Plan:
    return build_plan(Shape(planes, family, 25_000_000, 20_000_000), routing)


def tree(plan: Plan) -> ElementTree.Element:
    return ElementTree.fromstring(svg(plan))


def boxes(plan: Plan) -> dict[str, ElementTree.Element]:
    """The box of each node that is drawn."""
    return {node.get("data-node", ""): node[0] for node in tree(plan).iter() if node.get("data-node")}


def test_a_pod_is_what_hangs_together_below_the_highest_tier() -> None:
    assert [pod.tiers for pod in pods(THREE)] == [((0, 1), (0, 1)), ((2, 3), (2, 3))]
    assert pods(Clos2(4, 4, 2)) == pods(RAIL) == pods(Clos3(1, 2, 2, 2, 2)) == ()


def test_what_joins_two_tiers() -> None:
    lower, upper = joins(THREE)
    assert (lower.cables, lower.whole, lower.in_pods) == (8, True, True)
    assert (upper.cables, upper.whole, upper.in_pods) == (8, False, False)
    assert [str(place) for place in (upper.first, *upper.uplinks)] == ["t1-0", "t2-0", "t2-1"]
    (only,) = joins(Clos2(3, 2, 1, (1.0, 0.5)))
    assert (only.cables, only.whole, only.in_pods, only.shares) == (6, True, False, (0.5, 1))


class OfRouters(Clos2):
    """Of one tier, with a name of its own."""

    titles = ("router",)

    @property
    def tiers(self) -> tuple[int, ...]:
        return (2,)


def test_switches_are_called_what_the_family_calls_them() -> None:
    assert switches_text(THREE) == "4 T0, 4 T1 and 4 T2 switches"
    assert switches_text(RAIL) == "4 rail switches and 2 spines"
    assert switches_text(OfRouters(1, 2, 2)) == "2 routers"


def test_the_drawing_of_three_tiers() -> None:
    assert drawing(plan_of(THREE), 80).splitlines()[1:6:2] == [
        "│ p0-t2-0  p0-t2-1  p0-t2-2  p0-t2-3  │  │ p1-t2-0  p1-t2-1  p1-t2-2  p1-t2-3  │",
        "│ p0-t1-0  p0-t1-1 │ p0-t1-2  p0-t1-3 │  │ p1-t1-0  p1-t1-1 │ p1-t1-2  p1-t1-3 │",
        "│ p0-t0-0  p0-t0-1 │ p0-t0-2  p0-t0-3 │  │ p1-t0-0  p1-t0-1 │ p1-t0-2  p1-t0-3 │",
    ]
    assert drawing(plan_of(THREE), 80).splitlines()[-2:] == [
        "Every T0 is linked to every T1 of its pod.",
        "A T1 is linked to 2 of the 4 T2s, such as p0-t1-0 to p0-t2-0 and p0-t2-1.",
    ]


def test_the_hosts_of_a_rail_are_told_though_they_do_not_follow_each_other() -> None:
    shown = drawing(plan_of(RAIL), 80)
    assert "group 1  h1  h5  h9  h13" in shown
    assert "to the rail switch with the number of its group" in " ".join(shown.split())


@settings(max_examples=examples(60), deadline=None)
@given(every, st.integers(1, 4), st.integers(40, 140))
def test_no_line_is_wider_than_asked_for(family: Family, planes: int, width: int) -> None:
    lines = drawing(plan_of(family, planes), width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


@settings(max_examples=examples(40), deadline=None)
@given(every.filter(lambda family: max(family.tiers) <= 8), st.integers(1, 2))
def test_every_node_of_a_small_plane_is_drawn_in_both(family: Family, planes: int) -> None:
    plan = plan_of(family, planes)
    words = drawing(plan, 140).split()
    assert all(switch.name in words for switch in plan.switches)
    root = tree(plan)
    linked = sorted(node.get("data-link", "") for node in root.iter() if node.get("data-link"))
    if len(plan.hosts) <= 14:
        assert set(boxes(plan)) == set(plan.node_names)
        assert linked == sorted(link.name for link in plan.links)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("planes", [1, 2, 4, 8])
def test_nothing_lies_outside_its_page_or_over_a_neighbour(family: Family, planes: int) -> None:
    plan = plan_of(family, planes)
    root = tree(plan)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(box.attrib["x"]) >= 0
        assert float(box.attrib["x"]) + float(box.attrib["width"]) <= width
        assert float(box.attrib["y"]) + float(box.attrib["height"]) <= height
    rows: dict[str, list[tuple[float, float]]] = {}
    for box in boxes(plan).values():
        left = float(box.attrib["x"])
        rows.setdefault(box.attrib["y"], []).append((left, left + float(box.attrib["width"])))
    for spans in map(sorted, rows.values()):
        assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_tiers_are_stacked_and_pods_beside_each_other() -> None:
    drawn = boxes(plan_of(THREE))
    tops = [float(drawn[name].attrib["y"]) for name in ("p0-t2-0", "p0-t1-0", "p0-t0-0", "h0")]
    assert tops == sorted(tops)
    assert len(set(tops)) == 4
    lefts = [float(drawn[f"p0-t{tier}-{n}"].attrib["x"]) for tier in (0, 1) for n in range(4)]
    assert lefts[:4] == lefts[4:] == sorted(lefts[:4])


def test_nodes_of_rails_have_a_name_each() -> None:
    texts = [node.text for node in tree(plan_of(RAIL)).iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if (text or "").startswith("node ")] == [f"node {n}" for n in range(4)]
    assert [text for text in texts if (text or "").startswith("group")] == []


def test_slower_links_are_thinner() -> None:
    root = tree(plan_of(Clos3(2, 2, 2, 4, 2, t1_speed=(1.0, 0.5))))
    thin = {node.get("data-link") for node in root.iter() if node.get("data-link") and node.get("stroke-width")}
    assert thin == {f"p{plane}-t0-{t0}:p{plane}-t1-{t0 // 2 * 2 + 1}" for plane in (0, 1) for t0 in range(4)}


@pytest.mark.parametrize(
    ("family", "said"),
    [
        (THREE, "2 planes x (4 T0 + 4 T1 + 4 T2), 2 hosts a T0"),
        (THREE, "(16 host ports, 16 T0-T1, 16 T1-T2)"),
        (THREE, "T2        p0-t2-0 ... p1-t2-3, named p<plane>-t2-<number>"),
        (THREE, "p0-t1-0:p0-t2-0 ... p1-t1-3:p1-t2-3 (T1 to T2)"),
        (THREE, "plane 1, way 2, UDP port 49152"),
        (THREE, "over p1-t1-3:p1-t2-2"),
        (RAIL, "2 planes x (4 rail switches + 2 spines), 4 hosts a rail switch"),
        (RAIL, "oversubscribed 2:1 at a rail switch"),
        (Clos3(2, 2, 2, 4, 2, (0.5,)), "12.5 Mb/s a link T0-T1"),
        (Clos3(2, 2, 2, 2, 2), "oversubscribed 2:1 at a T1"),
    ],
)
def test_the_table_tells_of_every_tier(family: Family, said: str) -> None:
    shown = table(plan_of(family))
    assert said in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_the_table_tells_where_switches_hash() -> None:
    shown = table(plan_of(THREE, routing=Routing.BGP))
    assert "a T0 hashes each flow to another T0 over 2 uplinks, a T1 over 2" in shown
    assert "between T0, T1 and T2 finds the routes to hosts" in shown
    assert "oversubscribed" not in shown
