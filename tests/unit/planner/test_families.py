"""The planner and the testbed count one network: a full Clos of either is the other's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.planner.arithmetic.clos import Clos, reach
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape


def full(clos: Clos) -> Family:
    """A plane of it, whose switches have as many ports down as up."""
    half, ports = clos.half, clos.ports
    return Clos2(ports, half, half) if clos.tiers == 2 else Clos3(ports, half, half, half * half, half)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.sampled_from([2, 3]), st.integers(1, 3))
def test_counts_of_a_full_network_are_those_of_its_plan(planes: int, tiers: int, half: int) -> None:
    clos = Clos(planes, tiers, 2 * half, reach(tiers, 2 * half))
    plan = build_plan(Shape(planes, full(clos), 10**8, 0))
    places = [switch.tier for switch in plan.switches]
    assert len(plan.hosts) == clos.nics
    assert tuple(places.count(tier) for tier in range(tiers)) == clos.tier_switches == clos.even_switches
    assert len(plan.switches) == clos.switches
    assert len(plan.links) == clos.links
    assert sum(not link.is_host_link for link in plan.links) == clos.switch_links
    first, last = plan.hosts[0], plan.hosts[-1]
    assert len(plan.paths(first, last)) == clos.paths
    assert {len(way) for way in plan.ways(first, last)} == {clos.longest_path}
    assert {len(hosts) for hosts in plan.shape.family.below} == {clos.nics_below_t0}
    most = max(len(plan.ports[switch.name]) for switch in plan.switches)
    assert most == clos.ports


@pytest.mark.parametrize("tiers", [2, 3])
def test_a_port_more_or_less_is_another_network(tiers: int) -> None:
    clos = Clos(1, tiers, 4, reach(tiers, 4))
    shape = Shape(1, full(clos), 10**8, 0)
    other = Clos(1, tiers, 6, reach(tiers, 6))
    assert shape.links == clos.links != other.links
