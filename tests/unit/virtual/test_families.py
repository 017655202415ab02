"""Virtual fabrics of three tiers, of rails and of unequal links: packets cross their way switch by switch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.switching.options import level_bdp_bytes
from mrc_testbed.testbed.virtual.frames import Frames
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from tests.port_cases import rc_packet
from tests.unit.virtual.virtual_stage import FIRST_PORT, OPTIONS, ROCE_PORT, Stage

CLOS3 = Clos3(pods=2, t0=2, t1=2, t2=4, hosts_per_t0=1)
RAIL = Rail(rails=2, nodes=3, spine=2)
FAR = ("h0", "h3")
"""Hosts of two pods; the four ways between them are those over the T2s."""
FLOWS = 200


def shape_of(family: Family, planes: int = 2) -> Shape:
    return Shape(planes, family, port_rate_bps=25_000_000, rtt_ns=20_000_000)


def hashed(family: Family = CLOS3, **changes: object) -> Stage:
    return Stage(shape_of(family), replace(OPTIONS, **changes), routing=Routing.ECMP_STATIC)  # type: ignore[arg-type]


def crossed(one: Stage) -> Counter[str]:
    """Data packets that came in over each link."""
    found: Counter[str] = Counter()
    for (node, port), counts in one.fabric.port_counts().items():
        own, peer = next(ends for ends in one.plan.ports[node] if ends[0].name == port)
        found[one.plan.link_between(own.node, peer.node).name] += counts.in_data
    return +found


@pytest.mark.parametrize("family", [CLOS3, RAIL, Clos2(2, 2, 2)], ids=lambda each: each.word)
def test_every_path_leads_over_its_links_and_no_others(family: Family) -> None:
    wanted: Counter[str] = Counter()
    one = Stage(shape_of(family))
    for source in one.plan.hosts:
        for target in one.plan.hosts:
            for number, path in enumerate(one.plan.paths(source, target)):
                one.send(b"\xc6" + bytes(99), source.name, target.name, number)
                wanted.update(one.plan.links_on_path(source, target, path.id))
    one.run()
    assert crossed(one) == wanted
    assert not one.ledger().unexplained


def test_an_address_with_a_way_that_the_pair_does_not_have_is_none() -> None:
    one = Stage(shape_of(CLOS3))
    inner, *rest = one.to(*FAR, path=3)
    near = inner.replace("fd00:0:0:3:", "fd00:0:0:1:")  # h1 is in the pod of h0, and they have two ways
    with pytest.raises(ValueError, match="no path of this fabric"):
        one.nics["h0"].send(b"\xc6", (near, *rest), 0)


@pytest.mark.parametrize(("ecmp_hash", "ways"), [("independent", {0, 1, 2, 3}), ("polarised", {0, 3})])
def test_each_switch_hashes_and_with_one_seed_for_all_half_of_the_ways_stay_empty(
    ecmp_hash: str, ways: set[int]
) -> None:
    """A T0 that has chosen the lower half of all hashes leaves its T1 that half, and with it the first of two T2s."""
    one = hashed(ecmp_hash=ecmp_hash)
    flows = [one.flow(*FAR, FIRST_PORT + number) for number in range(FLOWS)]
    foretold = one.fabric.predicted_uplinks(flows)
    assert set(foretold) == ways
    for flow in flows:
        one.give("h0", rc_packet(rc.WRITE_ONLY, 1), one.destination(flow), rc.CLASS_DATA)
    one.run()
    assert len(one.got["h3"]) == FLOWS
    links = crossed(one)
    for number, way in enumerate(one.plan.ways(*(one.plan.host_by_name[name] for name in FAR))):
        for lower, upper in pairwise(f"p0-{place}" for place in way[:3]):
            assert links[f"{lower}:{upper}"] >= foretold.count(number)
        assert links[f"p0-{way[1]}:p0-{way[2]}"] == foretold.count(number)


def test_a_cut_beside_a_chooser_loses_nothing_and_one_beyond_it_what_is_hashed_there() -> None:
    one = hashed(ecmp_hash="independent")
    flows = [one.flow(*FAR, FIRST_PORT + number) for number in range(FLOWS)]
    foretold = one.fabric.predicted_uplinks(flows)

    def lost() -> set[int]:
        """The ways of flows that did not arrive."""
        del one.got["h3"][:]
        for flow in flows:
            one.give("h0", rc_packet(rc.WRITE_ONLY, 1), one.destination(flow), rc.CLASS_DATA)
        one.run()
        arrived = {got.source_port for got in one.got["h3"]}
        return {way for flow, way in zip(flows, foretold, strict=True) if flow.source_port not in arrived}

    for link, ways in (("p0-t0-0:p0-t1-0", set()), ("p0-t1-0:p0-t2-1", set()), ("p0-t1-2:p0-t2-1", {1})):
        one.fabric.ports_down([one.plan.link_by_name[link].far])
        assert lost() == ways
        one.fabric.ports_up([one.plan.link_by_name[link].far])
        assert one.fabric.predicted_uplinks(flows) == foretold
    one.fabric.switch_off("p0-t2-2")
    assert lost() == set()
    assert 2 not in one.fabric.predicted_uplinks(flows)
    one.fabric.switch_off("p0-t2-3")
    with pytest.raises(FabricError, match="p0-t1-1: find the way to h3: no port on a way has carrier"):
        one.fabric.predicted_uplinks(flows)


def test_adaptive_switches_of_both_tiers_use_all_ways_and_leave_dead_ones_that_they_know() -> None:
    """T1-2 of the far pod has lost its link to T2-1; of four ways that is one."""
    for known in (None, False, True):
        one = hashed(adaptive=True, far_links=bool(known))
        if known is not None:
            one.fabric.ports_down([one.plan.link_by_name["p0-t1-2:p0-t2-1"].near])
        for number in range(400):
            one.give("h0", rc_packet(rc.WRITE_MIDDLE, number, 4096), one.destination(one.flow(*FAR)), rc.CLASS_DATA)
        one.run()
        counts = one.fabric.port_counts()
        used = [counts[f"p0-t2-{t2}", "down0"].in_data for t2 in range(4)]
        assert sum(used) == 400
        assert (used[1] == 0) == (known is True)
        assert all(number >= 60 for t2, number in enumerate(used) if t2 != 1)
        assert len(one.got["h3"]) == 400 - (used[1] if known is False else 0)


def test_a_slower_link_has_its_own_rate_levels_and_time() -> None:
    half = Clos3(pods=2, t0=1, t1=1, t2=1, hosts_per_t0=1, t2_speed=(0.5,))
    times = {}
    for family in (replace(half, t2_speed=(1.0,)), half):
        one = Stage(shape_of(family))
        one.send(b"\xc6" + bytes(4000), "h0", "h1")
        one.run()
        times[family] = one.got["h1"][0].at_ns
        link = one.plan.link_by_name["p0-t1-0:p0-t2-0"]
        assert one.fabric.rate_bps(link.name) == 25_000_000 * family.t2_speed[0]
        one.fabric.set_rate(link.name, 1_000_000)
        assert one.fabric.rate_bps(link.name) == 1_000_000
    frame_bytes = 4001 + 14 + 40 + 40 + 8
    assert times[half] - times[replace(half, t2_speed=(1.0,))] == 2 * frame_bytes * 8 * 40, "40 ns a bit, on two links"
    assert level_bdp_bytes(one.plan.shape, 12_500_000) < level_bdp_bytes(one.plan.shape, 25_000_000)


@pytest.mark.parametrize("routing", [Routing.SRV6, Routing.ECMP_STATIC])
def test_frames_over_five_switches_lose_a_hop_and_a_usid_at_each(routing: Routing) -> None:
    one = Stage(shape_of(CLOS3), routing=routing)
    frames, seen = Frames(one.plan), []
    for port in one.fabric._ports.values():
        port.watch(lambda port, packet, _now: seen.append(frames.leaving(port, packet)))
    plain = routing is Routing.ECMP_STATIC
    to = one.destination(one.flow(*FAR)) if plain else one.to(*FAR, path=2)
    one.give("h0", rc_packet(rc.WRITE_ONLY, 1), to, rc.CLASS_DATA)
    one.run()
    assert [frame[21] for frame in seen] == [64, 63, 62, 61, 60, 59]
    if not plain:
        left = [frame[14 + 24 + 4 : 14 + 40].hex(":", 2) for frame in seen]
        assert left[0] == "1000:2001:3002:2003:1003:d000"
        assert [each.split(":")[0] for each in left] == ["1000", "2001", "3002", "2003", "1003", "d000"]
    assert ROCE_PORT.to_bytes(2, "big") in seen[0]
