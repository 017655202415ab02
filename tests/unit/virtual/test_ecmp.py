"""Virtual switches that choose the path: the kernel's hash, next hops that come and go, flows that keep their path."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common.ecmp import flow_hash, next_hop
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.hosts.rc.config import RcConfig
from mrc_testbed.hosts.rc.endpoint import RcEndpoint
from mrc_testbed.hosts.rc.peer import RcPeer
from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.switching.ecmp import hash_seed
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.routes import Routing
from tests.port_cases import rc_packet
from tests.unit.virtual.virtual_stage import FIRST_PORT, OPTIONS, Stage

SHAPE = clos2_shape(planes=2, t0_groups=2, t1=4, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=20_000_000)
FLOWS = 64
PROTOCOLS = {"udp": 17, "tcp": 6}


def stage(**changes: object) -> Stage:
    return Stage(SHAPE, replace(OPTIONS, **changes), routing=Routing.ECMP_STATIC)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "destination", "protocol", "ports", "seed", "chosen"),
    [
        ("fd00:1:0:1::2", "fd00:1:0:2::2", "tcp", (33492, 31973), 1, 1),
        ("fd00:1:0:3::5", "fd00:1:0:1::2", "tcp", (60099, 4791), 1, 1),
        ("fd00:1:0:0::1", "fd00:1:0:3::4", "tcp", (64531, 4791), 1, 2),
        ("fd00:1:0:3::5", "fd00:1:0:0::7", "udp", (55915, 13207), 1, 2),
        ("fd00:1:0:1::4", "fd00:1:0:3::1", "tcp", (31113, 30720), 8, 0),
        ("fd00:1:0:3::4", "fd00:1:0:3::2", "udp", (32815, 4791), 8, 2),
        ("fd00:1:0:2::7", "fd00:1:0:3::7", "udp", (48603, 44471), 8, 1),
        ("fd00:1:0:1::4", "fd00:1:0:2::6", "tcp", (64043, 45087), 4294967295, 0),
        ("fd00:1:0:2::3", "fd00:1:0:0::6", "tcp", (3474, 48145), 4294967295, 0),
        ("fd00:1:0:2::2", "fd00:1:0:0::8", "udp", (50443, 4791), 4294967295, 2),
    ],
)
def test_the_hash_is_that_of_linux(
    source: str, destination: str, protocol: str, ports: tuple[int, int], seed: int, chosen: int
) -> None:
    """Which of three next hops `ip route get` of Linux 6.18 names, with this hash seed."""
    assert next_hop(flow_hash(source, destination, PROTOCOLS[protocol], ports, seed), 3) == chosen


@given(st.integers(0, (1 << 31) - 1), st.integers(1, 256))
def test_every_hash_means_a_next_hop_and_each_has_its_share(hash_: int, hops: int) -> None:
    assert abs(next_hop(hash_, hops) - hash_ * hops / (1 << 31)) <= 1


def test_a_flow_takes_the_uplink_that_was_foretold() -> None:
    for plane in range(SHAPE.planes):
        one = stage()
        flows = [one.flow("h0", "h2", FIRST_PORT + number, plane) for number in range(FLOWS)]
        foretold = one.fabric.predicted_uplinks(flows)
        assert set(foretold) == set(range(SHAPE.family.tiers[1]))
        for flow in flows:
            one.give("h0", rc_packet(rc.WRITE_ONLY, 1), one.destination(flow), rc.CLASS_DATA)
        one.run()
        counts = one.fabric.port_counts()
        came = {t1: counts[f"p{plane}-t1-{t1}", "down0"].in_data for t1 in range(SHAPE.family.tiers[1])}
        assert came == Counter(foretold)
        assert {got.source_port for got in one.got["h2"]} == {flow.source_port for flow in flows}
        assert not one.ledger().unexplained
    assert one.fabric.predicted_uplinks([one.flow("h0", "h1")]) == [0]


def test_switches_choose_alike_or_each_for_itself() -> None:
    def uplinks(source: str, **changes: object) -> list[int]:
        """Of flows between the same addresses, which the T0s of both groups hash."""
        one = stage(**changes)
        return one.fabric.predicted_uplinks(
            [one.flow(source, "h2" if source == "h0" else "h0", FIRST_PORT + number) for number in range(FLOWS)]
        )

    assert uplinks("h0", hash_seed=7) == uplinks("h0", hash_seed=7)
    # Addresses and ports are sorted before they are hashed, so the way back has the same hash if its ports do.
    assert uplinks("h0", hash_seed=7) == uplinks("h2", hash_seed=7)
    different = zip(uplinks("h0", ecmp_hash="independent"), uplinks("h2", ecmp_hash="independent"), strict=True)
    assert 4 <= sum(a == b for a, b in different) <= 32


def test_a_cut_near_the_sender_loses_nothing_and_a_far_one_what_is_hashed_there() -> None:
    one = stage()
    flows = [one.flow("h0", "h2", FIRST_PORT + number) for number in range(FLOWS)]
    before = one.fabric.predicted_uplinks(flows)

    def arrived() -> set[int]:
        del one.got["h2"][:]
        for flow in flows:
            one.give("h0", rc_packet(rc.WRITE_ONLY, 1), one.destination(flow), rc.CLASS_DATA)
        one.run()
        return {got.source_port for got in one.got["h2"]}

    everything = {flow.source_port for flow in flows}
    through_1 = {flow.source_port for flow, uplink in zip(flows, before, strict=True) if uplink == 1}
    for link, lost in (("p0-t0-0:p0-t1-1", set()), ("p0-t0-1:p0-t1-1", through_1)):
        for end in one.plan.link_by_name[link].ends:
            one.fabric.ports_down([end])
            assert arrived() == everything - lost
            one.fabric.ports_up([end])
            assert one.fabric.predicted_uplinks(flows) == before
            assert arrived() == everything


def test_a_t0_without_uplinks_has_no_way_and_packets_end_there() -> None:
    one = stage()
    ends = [one.plan.link_by_name[f"p0-t0-0:p0-t1-{t1}"].far for t1 in range(SHAPE.family.tiers[1])]
    one.fabric.ports_down(ends)
    flow = one.flow("h0", "h2")
    with pytest.raises(FabricError, match="p0-t0-0: find the way to h2: no uplink has carrier"):
        one.fabric.predicted_uplinks([flow])
    one.give("h0", rc_packet(rc.WRITE_ONLY, 1), one.destination(flow), rc.CLASS_DATA)
    one.run()
    assert one.got["h2"] == []
    assert not one.ledger(tuple(f"p0-t0-0:p0-t1-{t1}" for t1 in range(SHAPE.family.tiers[1]))).unexplained


def test_packets_that_wait_in_the_nic_find_the_switch_as_it_is_when_they_come() -> None:
    one = stage()
    flow = one.flow("h0", "h2")
    (uplink,) = one.fabric.predicted_uplinks([flow])
    for number in range(10):
        one.give("h0", rc_packet(rc.WRITE_MIDDLE, number, 4096), one.destination(flow), rc.CLASS_DATA)
    one.at(5_000_000, one.fabric.ports_down, [one.plan.link_by_name[f"p0-t0-0:p0-t1-{uplink}"].far])
    one.run()
    assert len(one.got["h2"]) >= 7, "those that had come to the switch are lost"
    assert not one.ledger((f"p0-t0-0:p0-t1-{uplink}",)).unexplained


def test_packets_to_a_host_that_is_cut_off_end_at_its_switch() -> None:
    one = stage()
    link = "h2:p0-t0-1"
    one.fabric.ports_down([one.plan.link_by_name[link].far])
    for number in range(10):
        one.give("h0", rc_packet(rc.WRITE_ONLY, number), one.destination(one.flow("h0", "h2")), rc.CLASS_DATA)
    one.run()
    ledger = one.ledger((link,))
    assert not ledger.unexplained
    assert ledger.data.dropped["fault"] == 10


def test_with_repath_the_flow_label_counts_and_nothing_is_foretold() -> None:
    one = stage(repath=True)
    flow = one.flow("h0", "h2")
    with pytest.raises(MissingCapability, match=r"cannot be predicted: ecmp\.repath is on"):
        one.fabric.predicted_uplinks([flow])
    port, (address, *_) = one.destination(flow)
    for label in range(1, 33):
        one.give("h0", rc_packet(rc.WRITE_ONLY, label), (port, (address, 4791, label, 0)), rc.CLASS_DATA)
    one.run()
    counts = one.fabric.port_counts()
    assert all(counts[f"p0-t1-{t1}", "down0"].in_data for t1 in range(SHAPE.family.tiers[1]))
    assert [got.flow_label for got in one.got["h2"]] == list(range(1, 33))


@pytest.mark.parametrize(("ecmp_hash", "used"), [("polarised", 1), ("independent", SHAPE.family.tiers[1])])
def test_where_hosts_hash_with_the_seed_of_the_switches_a_port_of_theirs_means_one_uplink(
    ecmp_hash: str, used: int
) -> None:
    """The planes are as many as the uplinks, so a quarter of all hashes is a port, and the same quarter an uplink."""
    shape = replace(SHAPE, planes=SHAPE.family.tiers[1])
    options = replace(OPTIONS, hash_ports=True, hash_seed=5, ecmp_hash=ecmp_hash)  # type: ignore[arg-type]
    one = Stage(shape, options, routing=Routing.ECMP_STATIC)
    plan = one.fabric.plan
    config = RcConfig(0, shape.planes, shape.rtt_ns, shape.port_rate_bps, hash_seed=hash_seed(plan, "h0", ecmp_hash, 5))
    peer = RcPeer(2, plan.host_ports(plan.host_by_name["h2"]), RcEndpoint(config).context)
    for number in range(FLOWS):
        ((_, way),) = peer.ways(number, number, 0)
        one.give("h0", rc_packet(rc.WRITE_ONLY, 1), way, rc.CLASS_DATA)
    one.run()
    counts = one.fabric.port_counts()
    for plane in range(shape.planes):
        loads = [counts[f"p{plane}-t1-{t1}", "down0"].in_data for t1 in range(shape.family.tiers[1])]
        assert sum(load > 0 for load in loads) == used
        if used == 1:
            assert loads[plane], "the uplink with the number of the port"


def test_losses_by_rule_find_plain_packets_by_host_and_link() -> None:
    one = stage()
    mine, theirs = (one.plain_to(host, "h2", uplink=1) for host in ("h0", "h1"))
    rules = {
        PortRule("drop", source=0, destination=2): {"h1"},
        PortRule("drop", source=1): {"h0"},
        PortRule("drop", source=0, destination=3): {"h0", "h1"},
        PortRule("drop", data_only=True): set(),
    }
    for rule, left in rules.items():
        del one.got["h2"][:]
        handle = one.fabric.add_rule("p0-t0-0:p0-t1-1", "far", rule)
        for host, destination in (("h0", mine), ("h1", theirs)):
            one.give(host, rc_packet(rc.WRITE_MIDDLE, 1), destination, rc.CLASS_DATA)
        one.run()
        assert {f"h{got.source}" for got in one.got["h2"]} == left
        assert one.fabric.remove_rule(handle) == 2 - len(left)
    with pytest.raises(ValueError, match="says that it takes way 0"):
        one.fabric.add_rule("p0-t0-0:p0-t1-1", "far", PortRule("drop", uplink=0))
