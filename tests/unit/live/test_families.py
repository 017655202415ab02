"""The live view of fabrics of any family: tiles of EVs, planes on a terminal, words of the ticker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.live.fabric import FabricState
from mrc_testbed.testbed.live.paths import HASHED, LOCAL, EvTiles
from mrc_testbed.testbed.live.planes import LABELS, PlanePanel
from mrc_testbed.testbed.live.rows import UNICODE, length
from mrc_testbed.testbed.live.ticker import Burst
from mrc_testbed.testbed.live.wording import evs
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import Shape
from tests.examples import examples
from tests.small_families import every

THREE = Clos3(2, 2, 2, 4, 2)


def plan_of(family: Family) -> Plan:
    return build_plan(Shape(2, family, 25_000_000, 20_000_000))


def all_pairs(plan: Plan) -> Iterator[tuple[str, str]]:
    return permutations([host.name for host in plan.hosts], 2)


def frame_of(plan: Plan, tiles: EvTiles, **nodes: str) -> dict[str, Any]:
    links = {link.name: {"load": [0.6, 0.3], "state": "up"} for link in plan.links}
    return {"links": links, "nodes": nodes, "hosts": {}, "evs": tiles.counts()}


def shown(panel: PlanePanel, frame: dict[str, Any]) -> list[str]:
    return ["".join(span.text for span in row).rstrip() for row in panel.rows(frame)]


@settings(max_examples=examples(40), deadline=None)
@given(every)
def test_tiles_add_up_to_the_paths_of_all_pairs(family: Family) -> None:
    plan = plan_of(family)
    counts = EvTiles(plan, all_pairs(plan)).counts()
    paths = sum(len(plan.paths(src, dst)) for src, dst in permutations(plan.hosts, 2))
    assert sum(count for tile in counts.values() for count in tile.values()) == paths
    names = {switch.name for switch in plan.switches}
    assert all(f"p{plane}-{place}" in names or place == LOCAL for plane, place in (key.split("/") for key in counts))


def test_a_path_is_in_the_tile_of_the_switch_halfway() -> None:
    plan = plan_of(THREE)
    tiles = EvTiles(plan, [("h0", "h2"), ("h0", "h7"), ("h0", "h1")])
    assert set(tiles.counts()) == {
        f"{plane}/{place}" for plane in (0, 1) for place in ("t1-0", "t1-1", "t2-0", "t2-1", "t2-2", "t2-3", "local")
    }
    assert tiles.change("h0", "h2", 0, 1, "ASSUMED_BAD") == "t1-1"
    assert tiles.change("h7", "h0", 1, 3, "SKIP") == "t2-3"
    assert tiles.change("h0", "h1", 1, 0, "DENIED") == "local"
    counts = tiles.counts()
    assert counts["0/t1-1"] == {"good": 1, "skip": 0, "bad": 1, "denied": 0}
    assert counts["1/t2-3"]["skip"] == counts["1/local"]["denied"] == 1


def test_a_number_that_no_way_has_is_ignored() -> None:
    tiles = EvTiles(plan_of(THREE), [("h0", "h2")])
    before = tiles.counts()
    assert tiles.change("h0", "h2", 0, 2, "ASSUMED_BAD") is None
    assert tiles.change("h0", "h7", 0, 0, "ASSUMED_BAD") is None
    assert tiles.counts() == before
    assert tiles.tile("h0", "h2", 2) == ""


def test_evs_that_switches_hash_are_one_tile_a_plane() -> None:
    plan = plan_of(THREE)
    counts = EvTiles(plan, [("h0", "h1"), ("h0", "h7")], (2, 16)).counts()
    assert {key: tile["good"] for key, tile in counts.items()} == {f"{plane}/{HASHED}": 36 for plane in (0, 1)}


def test_planes_of_three_tiers_on_a_terminal() -> None:
    plan = plan_of(THREE)
    tiles = EvTiles(plan, all_pairs(plan))
    tiles.change("h0", "h7", 0, 0, "ASSUMED_BAD")
    panel = PlanePanel(plan, UNICODE, 80, 30)
    assert panel.detailed
    assert shown(panel, frame_of(plan, tiles, **{"p0-t1-1": "broken"})) == [
        f"       plane 0{'60%':>23} plane 1{'60%':>23}",
        "ports   ▅▅ ▅▅ ▅▅ ▅▅" + " " * 20 + "▅▅ ▅▅ ▅▅ ▅▅",
        f"t2-0   ▅▅ {26 * '■'}✕ ▅▅ {27 * '■'}",
        *(f"t2-{n}   ▅▅ {27 * '■'} ▅▅ {27 * '■'}" for n in (1, 2, 3)),
        f"t1-0   ▅▅ {27 * '■'} ▅▅ {27 * '■'}",
        f"t1-1   ▅▅✕{27 * '■'} ▅▅ {27 * '■'}",
        *(f"t1-{n}   ▅▅ {27 * '■'} ▅▅ {27 * '■'}" for n in (2, 3)),
        f"local     {27 * '■'}    {27 * '■'}",
    ]


def test_with_few_rows_each_switch_has_its_uplinks() -> None:
    plan = plan_of(Clos3(2, 2, 2, 8, 2))
    panel = PlanePanel(plan, UNICODE, 80, 12)
    assert not panel.detailed
    rows = shown(panel, frame_of(plan, EvTiles(plan, all_pairs(plan))))
    labels = [row[:LABELS].strip() for row in rows]
    assert labels == ["", "ports", *(f"t{tier}-{n}" for tier in (1, 0) for n in range(4)), "EVs"]
    assert rows[-1].split() == ["EVs", 13 * "■", 13 * "■"]
    assert rows[2].split() == ["t1-0", "▅▅▅▅", "▅▅▅▅"]


def test_with_fewer_rows_all_switches_of_a_tier_share_some() -> None:
    plan = plan_of(Clos3(2, 4, 4, 8, 1))
    panel = PlanePanel(plan, UNICODE, 80, 12)
    assert not panel.detailed
    rows = shown(panel, frame_of(plan, EvTiles(plan, all_pairs(plan))))
    assert [row[:LABELS].strip() for row in rows] == ["", "ports", "t1", "t0", "", "EVs"]
    assert [len(row.split()[1]) for row in rows[2:5]] == [16, 28, 4]


@settings(max_examples=30, deadline=None)
@given(every, st.integers(40, 160), st.integers(4, 60))
def test_rows_keep_their_width_and_number(family: Family, width: int, rows: int) -> None:
    plan = plan_of(family)
    panel = PlanePanel(plan, UNICODE, width, rows)
    frame = frame_of(plan, EvTiles(plan, all_pairs(plan)))
    found = panel.rows(frame)
    assert max(map(length, found)) <= max(panel.width, 1)
    assert len(found) == len(panel.rows(frame_of(plan, EvTiles(plan, all_pairs(plan)), **{"p0-t0-0": "broken"})))


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (["t2-3"], "3 EVs of p1-t2-3 retired by h0"),
        (["t2-3", "t1-0"], "3 EVs of p1-t2-3 and p1-t1-0 retired by h0"),
        (["t2-3", "t1-0", "local"], "3 EVs of plane 1 retired by h0"),
        (["local"], "3 EVs of plane 1 in a group retired by h0"),
    ],
)
def test_the_ticker_names_switches_of_any_tier(places: list[str], said: str) -> None:
    burst = Burst("ev", str, 0, 0, 3, {"h0": None}, dict.fromkeys(places))
    assert evs(burst, "retired", 1) == said


def test_the_load_of_a_slow_link_is_a_part_of_its_own_rate() -> None:
    plan = plan_of(Rail(2, 2, 2, spine_speed=(0.5,)))
    state = FabricState(plan)
    ends = [end for link in plan.links for end in (link.near, link.far)]
    for t_ns, sent in ((0, 0), (1_000_000_000, 25_000_000 // 8 // 4)):
        state.sample(t_ns, [(end.node, end.name, 0, 0, 0, sent, 0, 0) for end in ends])
    loads = state.links()
    assert loads["h0:p0-t0-0"]["load"] == [0.25, 0.25]
    assert loads["p0-t0-0:p0-t1-0"]["load"] == [0.5, 0.5]
