"""Each family gives a plane that can be built, with the switches, links and ways that its page promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family, ShapeError, SwitchPlace, check
from tests.examples import examples
from tests.small_families import every


def ways(family: Family, source: int, target: int) -> list[str]:
    return [" ".join(map(str, way)) for way in family.ways(source, target)]


@settings(max_examples=examples(60), deadline=None)
@given(every)
def test_every_plane_can_be_built_and_no_way_is_longer_than_it_must_be(family: Family) -> None:
    check(family)
    assert sum(map(len, family.below)) == family.hosts
    for cable in family.cables():
        assert cable.upper.tier == cable.lower.tier + 1
    for source, target in permutations(range(family.tiers[0]), 2):
        lengths = {len(way) for way in family.ways(source, target)}
        assert len(lengths) == 1, "all ways of a pair are of one length"


@settings(max_examples=examples(60), deadline=None)
@given(every, st.sampled_from([(1.0,), (0.5, 1.0)]))
def test_what_a_family_knows_of_its_ways_is_what_a_walk_finds(family: Family, speed: tuple[float, ...]) -> None:
    of_any: Any = family
    family = replace(of_any, **{key.name: speed for key in fields(of_any) if key.name.endswith("_speed")})
    pairs = [(a, b) for a in range(family.tiers[0]) for b in range(family.tiers[0])]
    assert all(family.way_count(*pair) == len(family.ways_of(*pair)) for pair in pairs)
    assert family.most_ways() == max((family.way_count(a, b) for a, b in pairs if a != b), default=1)
    assert family.span(family.farthest) == max(family.span(way) for pair in pairs for way in family.ways_of(*pair))


def test_three_tiers_by_hand() -> None:
    family = Clos3(pods=2, t0=2, t1=2, t2=4, hosts_per_t0=2)
    assert (family.hosts, family.tiers, family.cable_count, family.most_ways()) == (8, (4, 4, 4), 16, 4)
    assert family.below == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert ways(family, 2, 3) == ["t0-2 t1-2 t0-3", "t0-2 t1-3 t0-3"]
    assert ways(family, 1, 2) == [
        "t0-1 t1-0 t2-0 t1-2 t0-2",
        "t0-1 t1-0 t2-1 t1-2 t0-2",
        "t0-1 t1-1 t2-2 t1-3 t0-2",
        "t0-1 t1-1 t2-3 t1-3 t0-2",
    ]


def test_each_t2_has_one_link_a_pod_and_each_t1_a_column() -> None:
    family = Clos3(pods=3, t0=2, t1=2, t2=6, hosts_per_t0=1)
    ends = Counter(end for cable in family.cables() for end in cable[:2])
    assert {ends[SwitchPlace(2, n)] for n in range(6)} == {3}
    assert {ends[SwitchPlace(1, n)] for n in range(6)} == {2 + 3}
    assert {ends[SwitchPlace(0, n)] for n in range(6)} == {2}


def test_one_pod_needs_no_t2() -> None:
    check(Clos3(pods=1, t0=2, t1=2, t2=0, hosts_per_t0=1))


def test_rails_by_hand() -> None:
    family = Rail(rails=2, nodes=4, spine=3, segments=2)
    assert (family.hosts, family.tiers, family.cable_count) == (8, (4, 3), 12)
    assert family.below == ((0, 2), (1, 3), (4, 6), (5, 7)), "hosts of a node are one after the other"
    assert ways(family, 0, 3) == ["t0-0 t1-0 t0-3", "t0-0 t1-1 t0-3", "t0-0 t1-2 t0-3"]


def test_one_rail_needs_no_spine() -> None:
    check(Rail(rails=1, nodes=4, spine=0))


def test_speeds_are_repeated_over_the_switches() -> None:
    two = Clos2(2, 3, 1, t1_speed=(1.0, 0.25))
    assert [cable.share for cable in two.cables()] == [1, 0.25, 1] * 2
    three = Clos3(2, 1, 2, 4, 1, t1_speed=(0.5, 1.0), t2_speed=(1.0, 0.25))
    assert [cable.share for cable in three.cables()] == [0.5, 1.0] * 2 + [1, 0.25] * 4
    assert {cable.share for cable in Rail(2, 2, 2, spine_speed=(0.5,)).cables()} == {0.5}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Clos2(2, 2, 2, t1_speed=()), "t1_speed: needs at least one share"),
        (lambda: Clos2(2, 2, 2, t1_speed=(1.5,)), "t1_speed: 150% of the port rate"),
        (lambda: Clos3(0, 2, 2, 4, 2), "pods: 0 is outside 1..256"),
        (lambda: Clos3(128, 3, 2, 4, 2), "t0: 3 is outside 1..2"),
        (lambda: Clos3(128, 2, 3, 3, 2), "t1: 3 is outside 1..2"),
        (lambda: Clos3(2, 2, 2, 3, 2), "t2: 3 is no multiple of t1, 2"),
        (lambda: Clos3(2, 2, 2, 0, 2), "t2: must be at least t1, 2"),
        (lambda: Clos3(1, 1, 1, 0, 1), "hosts_per_t0: the fabric needs at least 2 hosts"),
        (lambda: Clos3(2, 2, 2, 4, 257), "hosts_per_t0: 257 is outside 1..256"),
        (lambda: Clos3(2, 2, 2, 512, 2), "t2: 512 is outside 0..256"),
        (lambda: Clos3(2, 2, 2, 4, 2, t2_speed=(0.0,)), "t2_speed: 0%"),
        (lambda: Rail(4, 4, 0), "spine: must be at least 1"),
        (lambda: Rail(4, 5, 1, 2), "segments: 2 does not divide the 5 nodes"),
        (lambda: Rail(1, 1, 0), "nodes: the fabric needs at least 2 hosts"),
        (lambda: Rail(64, 8, 1, 8), "segments: 8 is outside 1..4"),
        (lambda: Rail(1, 257, 0), "nodes: 257 is outside 1..256"),
    ],
)
def test_numbers_that_make_no_fabric_are_refused(make: object, said: str) -> None:
    with pytest.raises(ShapeError) as caught:
        make()  # type: ignore[operator]
    assert said in str(caught.value)


def test_the_largest_planes_pass() -> None:
    check(Clos3(pods=16, t0=4, t1=4, t2=64, hosts_per_t0=16))
    check(Rail(rails=8, nodes=128, spine=8, segments=2))
