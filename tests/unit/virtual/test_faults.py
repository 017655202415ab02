"""What faults do to the virtual network: cuts and carrier, reboots, rates, rules, silence, corruption."""

from __future__ import annotations

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from tests.port_cases import CORE, CORE_LINK, LAST_LINK, SMALL, mrc_packet, rc_packet
from tests.unit.virtual.virtual_stage import FIRST_PORT, OPTIONS, Stage

PACKET = mrc_packet(1)
FRAME_NS = (len(PACKET) + 102) * 320
MS = 1_000_000


def far(stage: Stage, link: str) -> list[Interface]:
    return [stage.plan.link_by_name[link].far]


def test_a_cut_link_loses_what_waits_and_what_is_on_the_wire_and_works_again_after_it() -> None:
    stage = Stage()
    stage.fabric.set_rate(CORE_LINK, 2_500_000)
    for number in range(10):
        stage.send(mrc_packet(number))
    stage.at(30 * MS, stage.fabric.ports_down, far(stage, CORE_LINK))
    stage.at(60 * MS, stage.fabric.ports_up, far(stage, CORE_LINK))
    stage.at(61 * MS, stage.send, mrc_packet(99))
    stage.run()
    numbers = [int.from_bytes(got.data[9:12], "big") for got in stage.got["h2"]]
    assert numbers == [0, 1, 99], "two had left before the cut, and the third was on the wire"
    ledger = stage.ledger((CORE_LINK,))
    assert not ledger.unexplained
    assert ledger.data.dropped["fault"] == 8
    assert stage.fabric.backlog_ns(*CORE) == 0
    assert stage.carrier == {host.name: [] for host in stage.plan.hosts}, "between switches nobody is told"


def test_a_cut_in_the_middle_of_a_packet_spoils_no_packet_after_it() -> None:
    """The link is up again before the first packet's last bit would have left."""
    stage = Stage()
    stage.send(mrc_packet(1))
    stage.at(FRAME_NS + 1000, stage.fabric.ports_down, far(stage, CORE_LINK))
    stage.at(FRAME_NS + 2000, stage.fabric.ports_up, far(stage, CORE_LINK))
    stage.at(2000, stage.send, mrc_packet(2))
    stage.run()
    (got,) = stage.got["h2"]
    assert (got.data[11], got.at_ns) == (2, 5 * FRAME_NS)


def test_a_host_hears_of_its_port_once_and_its_packets_are_lost_silently() -> None:
    stage = Stage()
    link = "h0:p0-t0-0"
    stage.fabric.ports_down(far(stage, link))
    stage.fabric.ports_down(far(stage, link))
    assert stage.carrier["h0"] == [(0, False)]
    stage.send(PACKET)
    stage.send(PACKET, "h2", "h0")
    stage.run()
    assert stage.got["h0"] == stage.got["h2"] == []
    assert not stage.nics["h0"].lost
    ledger = stage.ledger((link,))
    assert not ledger.unexplained
    assert ledger.data.dropped["fault"] == 2
    stage.fabric.ports_up(far(stage, link))
    assert stage.carrier["h0"] == [(0, False), (0, True)]
    assert stage.carrier["h1"] == []
    stage.send(PACKET)
    stage.run()
    assert len(stage.got["h2"]) == 1


def test_a_host_is_told_of_a_port_that_is_dead_when_it_is_attached() -> None:
    stage = Stage()
    stage.fabric.ports_down(far(stage, "h0:p0-t0-0"))
    stage.attach("h0")
    assert stage.carrier["h0"] == [(0, False)]
    stage.fabric.ports_up(far(stage, "h0:p0-t0-0"))
    assert stage.carrier["h0"] == [(0, False), (0, True)]


def test_a_host_whose_own_end_is_down_refuses_to_send() -> None:
    stage = Stage()
    near = [stage.plan.link_by_name["h0:p0-t0-0"].near]
    stage.fabric.ports_down(near)
    stage.send(PACKET)
    assert stage.nics["h0"].lost == {"ENETUNREACH": 1}
    assert stage.carrier["h0"] == [(0, False)]


def test_a_host_that_sends_far_beyond_its_rate_is_refused_at_last() -> None:
    stage = Stage()
    for _ in range(4200):
        stage.send(PACKET)
    refused = stage.nics["h0"].lost["ENOBUFS"]
    assert 0 < refused < 200
    stage.run()
    assert len(stage.got["h2"]) == 4200 - refused
    assert not stage.ledger().unexplained


def test_a_switch_that_reboots_takes_all_its_links_with_it_but_one_that_stays_cut() -> None:
    stage = Stage()
    cut = far(stage, "h1:p0-t0-0")
    stage.fabric.ports_down(cut)
    assert stage.fabric.switch_off("p0-t0-0") == 0
    stage.send(PACKET)
    stage.send(PACKET, "h2", "h0")
    stage.run()
    assert stage.got["h0"] == stage.got["h2"] == []
    own = [port for port, _ in stage.plan.ports["p0-t0-0"]]
    assert stage.fabric.ports_held_down() == sorted(own, key=lambda port: port.ifindex)
    stage.fabric.switch_on("p0-t0-0", [port for port in own if port not in cut])
    assert stage.fabric.ports_held_down() == cut
    assert stage.carrier["h0"] == [(0, False), (0, True)]
    assert stage.carrier["h1"] == [(0, False)]
    stage.send(PACKET)
    stage.run()
    assert len(stage.got["h2"]) == 1
    links = tuple(link.name for link in stage.plan.links_of("p0-t0-0"))
    assert not stage.ledger(links).unexplained


def test_a_link_with_both_ends_down_works_when_both_are_up() -> None:
    stage = Stage()
    ends = stage.plan.link_by_name["h0:p0-t0-0"].ends
    stage.fabric.ports_down(ends)
    stage.fabric.ports_up(ends[:1])
    assert stage.carrier["h0"] == [(0, False)]
    stage.fabric.ports_up(ends[1:])
    assert stage.carrier["h0"] == [(0, False), (0, True)]


def test_a_slower_link_keeps_its_bytes_and_ends_the_packet_on_the_wire_as_it_began() -> None:
    stage = Stage()
    stage.fabric.set_rate(LAST_LINK, 12_500_000)
    assert stage.fabric.rate_bps(LAST_LINK) == 12_500_000
    for number in range(3):
        stage.send(mrc_packet(number), "h3")
    slow_ns = 2 * FRAME_NS
    stage.at(FRAME_NS + 1000, stage.fabric.set_rate, LAST_LINK, 25_000_000)
    stage.run()
    first = FRAME_NS + slow_ns
    # The third comes when the second has been sent for a while.
    assert [got.at_ns for got in stage.got["h2"]] == [first, first + slow_ns // 2, first + slow_ns]


def test_the_backlog_is_the_time_that_what_waits_takes_at_the_present_rate() -> None:
    stage = Stage()
    stage.fabric.set_rate(CORE_LINK, 1_000_000)
    for number in range(3):
        stage.send(mrc_packet(number))
    stage.run(3 * FRAME_NS)
    wire_ns = FRAME_NS * 25
    assert stage.fabric.backlog_ns(*CORE) == 3 * wire_ns - 2 * FRAME_NS
    stage.fabric.set_rate(CORE_LINK, 2_000_000)
    assert stage.fabric.backlog_ns(*CORE) == wire_ns - 2 * FRAME_NS + wire_ns
    stage.run()
    assert stage.scheduler.now_ns == FRAME_NS + 2 * wire_ns + 2 * FRAME_NS


def test_a_silent_switch_keeps_its_ports_and_passes_nothing() -> None:
    stage = Stage()
    own = stage.fabric.add_rule(CORE_LINK, "far", PortRule("drop", source=1))
    handles = stage.fabric.silence("p0-t1-0")
    stage.fabric.verify_rules([own, *handles])
    for path in (0, 1):
        stage.send(PACKET, path=path)
    stage.run()
    assert [got.flow_label for got in stage.got["h2"]] == [1]
    assert stage.carrier["h0"] == stage.fabric.ports_held_down() == []
    with pytest.raises(
        FabricError, match=r"p0-t1-0: read-back of the rules at down0: slots \[0, 1\] hold, \[0\] should"
    ):
        stage.fabric.verify_rules([own])
    assert sum(stage.fabric.remove_rule(handle) for handle in handles) == 1
    stage.fabric.verify_rules([own])
    stage.send(PACKET)
    stage.run()
    assert len(stage.got["h2"]) == 2
    assert stage.fabric.remove_rule(own) == 0
    assert not stage.ledger().unexplained


def test_a_port_holds_eight_rules_and_each_goes_once() -> None:
    stage = Stage()
    handles = [stage.fabric.add_rule(LAST_LINK, "near", PortRule("drop")) for _ in range(8)]
    with pytest.raises(FabricError, match="h2: add a rule at port0: it holds 8 rules already"):
        stage.fabric.add_rule(LAST_LINK, "near", PortRule("drop"))
    stage.fabric.remove_rule(handles[3])
    with pytest.raises(ValueError, match="gone already"):
        stage.fabric.remove_rule(handles[3])


def test_the_first_rule_that_drops_a_packet_ends_it() -> None:
    stage = Stage()
    handles = [stage.fabric.add_rule(LAST_LINK, "near", PortRule(action)) for action in ("corrupt", "drop", "drop")]
    stage.send(PACKET)
    stage.run()
    assert [stage.fabric.remove_rule(handle) for handle in handles] == [1, 1, 0]
    counts = stage.fabric.port_counts()["h2", "port0"]
    assert (counts.in_data_dropped, counts.in_corrupted) == (1, 0)


@pytest.mark.parametrize("opcode", [bth.WRITE_MIDDLE, bth.WRITE_LAST_IMM])
def test_corruption_flips_one_bit_of_the_payload(opcode: int) -> None:
    stage = Stage()
    handles = [stage.fabric.add_rule(LAST_LINK, "near", PortRule("corrupt")) for _ in range(2)]
    sent = mrc_packet(7, opcode, payload=16)
    for _ in range(60):
        stage.send(sent)
        stage.send(bytes([wire.SACK]) + bytes(wire.SACK_BYTES - 1), traffic_class=bth.CLASS_CONTROL)
    stage.run()
    data = [got.data for got in stage.got["h2"] if got.traffic_class == wire.CLASS_TRIMMABLE]
    changes = [int.from_bytes(one, "big") ^ int.from_bytes(sent, "big") for one in data]
    assert [change.bit_count() for change in changes] == [1] * 60
    places = {len(sent) - 1 - (change.bit_length() - 1) // 8 for change in changes}
    start = len(sent) - 16 - bth.ICRC_BYTES
    assert min(places) >= start
    assert max(places) < start + 16
    assert len(places) > 8, "at random places"
    assert all(wire.check(memoryview(one), with_icrc=True) is bth.Refusal.BAD_ICRC for one in data)
    assert [stage.fabric.remove_rule(handle) for handle in handles] == [60, 0], "of those that corrupt one is enough"
    assert stage.fabric.port_counts()["h2", "port0"].in_corrupted == 60


def test_corruption_of_plain_packets_is_past_all_their_headers() -> None:
    stage = Stage(routing=Routing.ECMP_STATIC)
    stage.fabric.add_rule(LAST_LINK, "near", PortRule("corrupt"))
    sent = rc_packet(rc.WRITE_ONLY, 1, 60)
    for _ in range(200):
        stage.give("h0", sent, stage.destination(stage.flow("h0", "h2")), rc.CLASS_DATA)
    stage.run()
    places = {at for got in stage.got["h2"] for at, (a, b) in enumerate(zip(sent, got.data, strict=True)) if a != b}
    assert (min(places), max(places)) == (32, len(sent) - 5)


def test_too_much_control_is_dropped_by_its_own_queue() -> None:
    """One BDP fits in, but at least the bytes of 32 full packets."""
    stage = Stage()
    stage.fabric.set_rate(CORE_LINK, 100_000)
    sack = bytes([wire.SACK]) + bytes(wire.SACK_BYTES - 1)
    for _ in range(1500):
        stage.send(sack, traffic_class=bth.CLASS_CONTROL)
    stage.run()
    fits = 32 * 4238 // (len(sack) + 102)
    arrived = len(stage.got["h2"])
    assert fits <= arrived <= fits + 10, "some have left meanwhile"
    assert stage.fabric.queues()["p0-t0-0"]["up0"]["control_drops"] == 1500 - arrived
    ledger = stage.ledger()
    assert not ledger.unexplained
    assert ledger.high.dropped["shaper"] == 1500 - arrived


def test_what_no_host_takes_is_counted_there() -> None:
    scheduler = Scheduler()
    fabric = VirtualFabric(build_plan(SMALL), OPTIONS, scheduler, 1)
    nic = fabric.attach("h0", lambda *packet: None, lambda plane, up: None)
    path = fabric.plan.paths(fabric.plan.hosts[0], fabric.plan.hosts[2])[0]
    nic.send(PACKET, (path.inner, 4791, 0, 0), wire.CLASS_TRIMMABLE)
    scheduler.run_until(lambda: False, 10**9)
    assert fabric.socket_losses() == dict.fromkeys(fabric.plan.node_names, 0) | {"h2": 1}
    assert fabric.receive_drops() == 0


def test_what_only_a_kernel_has_is_refused_in_one_line() -> None:
    fabric = Stage().fabric
    with pytest.raises(MissingCapability, match=r"^h0 has no shell in a virtual network\. Fix: run it on the kernel"):
        fabric.node("h0")
    with pytest.raises(MissingCapability, match="have no process"):
        _ = fabric.pids
    with pytest.raises(ValueError, match="is no path of this fabric"):
        Stage().give("h0", PACKET, ("fd00:0:0:2:0:9::", 4791, 0, 0), 0)


@pytest.mark.parametrize("routing", Routing)
def test_what_is_sent_in_a_way_that_leads_nowhere_is_a_mistake(routing: Routing) -> None:
    stage = Stage(routing=routing)
    address = ("fd00:1:0:7::1", 4791, 0, 0)
    destination = address if routing is Routing.SRV6 else (FIRST_PORT, address)
    with pytest.raises(ValueError, match="fd00:1:0:7::1 is "):
        stage.give("h0", PACKET, destination, 0)
