"""The mapper's agent over the virtual wire: probes reach what they should, and no other; every one is in the books."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address

import pytest

from mrc_testbed.hosts.self_probes import sequence_of
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.testbed.virtual.frames import Frames
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from tests.unit.mapper.agent_stage import PERIOD_NS, RTT_NS, AgentStage

FAMILIES = [
    Clos2(2, 4, 4),
    Clos2(1, 2, 3),
    Clos3(pods=2, t0=2, t1=2, t2=4, hosts_per_t0=2),
    Rail(rails=2, nodes=3, spine=2),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.word)
def test_probes_cross_every_link_both_ways_and_all_come_back(family: Family) -> None:
    stage = AgentStage(family)
    stage.map_all()
    stage.run(5 * PERIOD_NS)
    ledger, counters = stage.finish()
    assert not stage.lost()
    assert not ledger.gaps
    assert ledger.data.sent == 0
    sent = {name: own["mapper_sent"] for name, own in counters.items()}
    assert sent == {name: own["mapper_heard"] for name, own in counters.items()}
    assert ledger.high.sent == ledger.high.arrived == sum(sent.values())
    assert all(own["mapper_sent"] == own["packets_out"] == own["packets_in"] for own in counters.values())
    came = Counter({place: counts.in_control for place, counts in stage.fabric.port_counts().items()})
    assert all(came[own.node, own.name] > 0 for ports in stage.plan.ports.values() for own, _ in ports)


def test_rounds_tell_the_order_the_times_and_round_trips() -> None:
    stage = AgentStage()
    stage.map_all()
    stage.run(5 * PERIOD_NS)
    for name in stage.hosts:
        windows = stage.windows(name)
        assert len(windows) == 9
        rounds = [first["order"] + second["order"] for first, second in zip(windows[::2], windows[1::2], strict=False)]
        assert all(sorted(order) == list(range(len(stage.routes[name]))) for order in rounds)
        assert all(abs(one["to_ns"] - one["from_ns"] - PERIOD_NS / 2) <= 1 for one in windows)
        assert all(one["late_ns"] <= RTT_NS // 10 for one in windows)
        assert all(RTT_NS // 4 < one["rtt_ns"][0] <= one["rtt_ns"][1] < RTT_NS // 2 for one in windows)


def test_t1_probes_lose_and_t0_probes_do_not_where_a_link_between_them_is_dead() -> None:
    stage = AgentStage(Clos2(2, 2, 3))
    stage.map_all()
    stage.run(PERIOD_NS)
    for toward in ("near", "far"):
        stage.fabric.add_rule("p0-t0-0:p0-t1-1", toward, PortRule("drop"))
    stage.run(5 * PERIOD_NS)
    lost = stage.lost()
    assert lost
    assert {route.links[1:] for route in lost} == {("p0-t0-0:p0-t1-1",)}
    assert len({route.host for route in lost}) == 2, "two hosts vouch for each link"
    ledger, _ = stage.finish()
    assert not ledger.gaps
    taken = ledger.high.dropped["rule"]
    assert ledger.high.sent - ledger.high.arrived == taken
    assert 0 <= taken - len(lost) <= 4, "more than was told only of rounds that were not over"


def test_a_lossy_t0_takes_probes_to_it_and_over_it() -> None:
    stage = AgentStage(Clos2(2, 2, 3))
    stage.fabric.silence("p1-t0-1")
    stage.map_all()
    stage.run(3 * PERIOD_NS)
    assert {len(route.links) for route in stage.lost()} == {1, 2}
    assert {route.switches[0] for route in stage.lost()} == {"p1-t0-1"}


def test_nothing_leaves_by_a_port_without_carrier_and_all_of_it_is_lost() -> None:
    stage = AgentStage()
    link = stage.plan.link_by_name["h0:p0-t0-0"]
    stage.map_all()
    stage.run(2 * PERIOD_NS)
    stage.fabric.ports_down([link.far])
    stage.run(3 * PERIOD_NS)
    stage.fabric.ports_up([link.far])
    stage.run(3 * PERIOD_NS)
    lost = stage.lost()
    assert {route.links[0] for route in lost} == {link.name}
    assert not stage.windows("h0")[-1]["lost"]
    ledger, counters = stage.finish((link.name,))
    assert not ledger.unexplained
    assert counters["h0"]["mapper_unsent"] > 0
    assert counters["h1"]["mapper_unsent"] == 0


def test_a_loss_of_evs_is_none_of_the_probes() -> None:
    stage = AgentStage()
    rule = PortRule("drop", uplink=0, source=0)
    for link in stage.plan.links:
        stage.fabric.add_rule(link.name, "far", rule)
    stage.map_all()
    stage.run(3 * PERIOD_NS)
    assert not stage.lost()


def test_a_host_that_was_held_marks_its_rounds_and_sends_no_burst() -> None:
    stage = AgentStage()
    stage.map_all()
    stage.run(2 * PERIOD_NS)
    stage.ask("h0", "hinder", held=True, per_packet_ns=0)
    stage.run(5 * PERIOD_NS)
    stage.ask("h0", "hinder", held=False, per_packet_ns=0)
    stage.run(3 * PERIOD_NS)
    late = [one for one in stage.windows("h0") if one["late_ns"] > RTT_NS]
    assert len(late) == 1
    assert not stage.lost()
    assert all(one["late_ns"] < RTT_NS for one in stage.windows("h1"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": []}, "probes need a target"),
        ({"targets": [["p0", "fcbb:bb00::"]]}, "targets must be [[plane, address], ...]"),
        ({"period_ns": 0}, "period_ns must be an integer of 1 or more"),
        ({"period_ns": 1}, "a period of at least 1 ns a target"),
    ],
)
def test_bad_requests_are_refused_and_change_nothing(changes: dict[str, object], message: str) -> None:
    stage = AgentStage()
    answer = stage.map("h0", **changes)
    assert not answer["ok"]
    assert message in answer["error"]
    assert stage.map("h0")["ok"]
    assert "there is an agent of the mapper already" in stage.map("h0")["error"]


def test_frames_of_a_probe_list_what_is_left_of_its_way() -> None:
    stage = AgentStage(Clos2(2, 2, 2))
    h1 = stage.plan.host_by_name["h1"]
    (route,) = [one for one in stage.routes["h1"] if one.switches == ("p0-t0-0", "p0-t1-0")]
    seen: list[bytes] = []
    for own in (own for ports in stage.plan.ports.values() for own, _ in ports):
        port = stage.fabric._ports[own]
        port.watch(lambda at, packet, _now: seen.append(Frames(stage.plan).leaving(at, packet)))
    stage.map("h1", targets=[[route.plane, route.address]])
    stage.run(PERIOD_NS)
    outer = [str(IPv6Address(frame[38:54])) for frame in seen[:4]]
    assert outer[0] == route.address == "fcbb:bb00:1000:2000:1000:d001::"
    assert outer[1:] == ["fcbb:bb00:2000:1000:d001::", "fcbb:bb00:1000:d001::", "fcbb:bb00:d001::"]
    for frame in seen[:4]:
        assert {str(IPv6Address(frame[at : at + 16])) for at in (22, 62, 78)} == {h1.address}
        assert (frame[20], frame[60], frame[94:98].hex()) == (41, 17, "12b812b8")
        assert sequence_of(frame[102:]) == 0
