"""What a tap on a link of the virtual network sees, read by what reads captures of the kernel."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.testbed.switching.ring import RingPacket, block_of, packets_of
from mrc_testbed.testbed.virtual.tap import VirtualTap
from mrc_testbed.testbed.wireview.frame import Frame, unwrap
from mrc_testbed.testbed.wireview.record import LINK_ETHERNET, Record
from mrc_testbed.topos import usid
from mrc_testbed.topos.routes import Routing
from tests.port_cases import CORE_LINK, LAST_LINK, mrc_packet, rc_packet
from tests.unit.virtual.virtual_stage import FIRST_PORT, Stage

AHEAD_NS = 10**18
WHOLE = 10_000
LINKS = ("h0:p0-t0-0", CORE_LINK, "p0-t0-1:p0-t1-0", LAST_LINK)
"""Of uplink 0 from h0 to h2."""


def tapped(stage: Stage, link: str, snap_bytes: int = WHOLE) -> VirtualTap:
    tap = stage.fabric.tap(link, snap_bytes, AHEAD_NS, lambda: None)
    tap.listen()
    return tap


def seen(tap: VirtualTap) -> list[RingPacket]:
    """All of them; from then on it is muted."""
    tap.mute()
    return [packet for block in tap.blocks() for packet in packets_of(block)]


def read(packet: RingPacket) -> Frame:
    frame = unwrap(Record(packet.wall_ns, LINK_ETHERNET, bytes(packet.frame), packet.wire_bytes))
    assert isinstance(frame, Frame)
    return frame


@pytest.mark.parametrize("routing", Routing)
def test_frames_have_all_headers_of_their_link(routing: Routing) -> None:
    stage = Stage(routing=routing)
    taps = [tapped(stage, link) for link in LINKS]
    srv6 = routing is Routing.SRV6
    sent = mrc_packet(5) if srv6 else rc_packet(rc.WRITE_ONLY, 5)
    stage.give("h0", sent, stage.to("h0", "h2") if srv6 else stage.plain_to("h0", "h2", 0), rc.CLASS_DATA)
    stage.run()
    h0, h2 = stage.plan.hosts[0], stage.plan.hosts[2]
    outer = usid.split_container(stage.plan.paths(h0, h2)[0].outer)
    addresses = (h0.address, stage.to("h0", "h2")[0]) if srv6 else (stage.plan.host_ports(h0)[0][1], "fd00:1:0:1::1")
    for passed, (tap, link) in enumerate(zip(taps, LINKS, strict=True)):
        (packet,) = seen(tap)
        frame = read(packet)
        assert frame.payload == sent
        assert (frame.source, frame.destination) == tuple(IPv6Address(address).packed for address in addresses)
        assert (frame.traffic_class, frame.trimmed, frame.cut) == (rc.CLASS_DATA, 0, 0)
        assert frame.outer == (IPv6Address(usid.container(outer[passed:])).packed if srv6 else b"")
        assert packet.wire_bytes == len(packet.frame) == len(sent) + (102 if srv6 else 62)
        ends = stage.plan.link_by_name[link]
        assert packet.outgoing is (passed < 2)
        macs = [ends.far.mac, ends.near.mac] if packet.outgoing else [ends.near.mac, ends.far.mac]
        assert bytes(packet.frame[:12]).hex(":") == ":".join(macs)
        assert packet.frame[21] == 64 - passed, "hop limit"
    (first,) = [got.at_ns for got in stage.got["h2"]]
    assert packet.wall_ns == first + AHEAD_NS


def test_marks_trims_and_spoilt_bits_stand_in_frames_behind_them() -> None:
    stage = Stage()
    stage.fabric.set_rate(CORE_LINK, 1_000_000)
    stage.fabric.add_rule(LAST_LINK, "near", PortRule("corrupt"))
    before, behind = (tapped(stage, link) for link in (LINKS[0], LAST_LINK))
    for number in range(30):
        stage.send(mrc_packet(number))
    stage.run()
    assert {read(packet).traffic_class for packet in seen(before)} == {wire.CLASS_TRIMMABLE}
    frames = [read(packet) for packet in seen(behind)]
    assert {frame.traffic_class for frame in frames} == {
        wire.CLASS_TRIMMABLE, wire.CLASS_TRIMMABLE | bth.ECN_CE, wire.DSCP_TRIMMED << 2 | bth.ECN_ECT0
    }  # fmt: skip
    assert {len(frame.payload) for frame in frames} == {len(mrc_packet(0)), wire.DATA_HEADER_BYTES}
    whole = [frame for frame in frames if len(frame.payload) > wire.DATA_HEADER_BYTES]
    assert all(wire.check(frame.payload, with_icrc=True) is None for frame in whole), "rules come behind the tap"


def test_a_tap_hears_only_while_it_listens_and_keeps_so_much_of_a_packet() -> None:
    stage = Stage()
    ready = []
    tap = stage.fabric.tap(LINKS[0], 128, 0, lambda: ready.append(stage.scheduler.now_ns))
    stage.send(mrc_packet(1))
    stage.run()
    tap.listen()
    stage.send(mrc_packet(2))
    stage.send(mrc_packet(3), "h2", "h0")
    stage.run()
    tap.mute()
    stage.send(mrc_packet(4))
    stage.run()
    got = seen(tap)
    assert [(len(packet.frame), packet.outgoing) for packet in got] == [(128, True), (128, False)]
    assert {packet.wire_bytes for packet in got} == {len(mrc_packet(1)) + 102}
    assert seen(tap) == []
    assert len(ready) == 1
    assert (tap.lost(), tap.port.name) == (0, "port0")


def test_a_window_has_all_packets_whose_last_bit_passes_in_it() -> None:
    stage = Stage()
    stage.send(mrc_packet(1))
    begin_ns, end_ns = 10_000, 4_000_000
    taken_ns = 8 * (len(mrc_packet(1)) + 102) * 10**9 // stage.plan.shape.port_rate_bps
    assert begin_ns < taken_ns < end_ns < 3 * taken_ns
    tap = stage.fabric.tap(LINKS[0], WHOLE, 0, lambda: None)
    stage.at(begin_ns, tap.listen)
    stage.at(end_ns, tap.mute)
    stage.at(taken_ns, lambda: [stage.send(mrc_packet(number)) for number in (2, 3)])
    stage.run()
    assert [packet.wall_ns // taken_ns for packet in seen(tap)] == [1, 2], "under way at its begin, not at its end"


def test_blocks_are_released_when_they_are_full_or_old() -> None:
    stage = Stage()
    blocks: list[int] = []
    tap = stage.fabric.tap(LINKS[0], 128, 0, lambda: blocks.extend(len(list(packets_of(b))) for b in tap.blocks()))
    tap.listen()
    for number in range(70):
        stage.send(wire_of_control := mrc_packet(number)[:60], traffic_class=bth.CLASS_CONTROL)
    stage.at(200_000_000, stage.send, wire_of_control)
    stage.run()
    assert blocks == [64, 6]
    tap.mute()
    assert blocks == [64, 6, 1]


def test_a_tap_changes_nothing_and_sees_nothing_of_a_dead_link() -> None:
    plain, watched = Stage(), Stage()
    taps = [tapped(watched, link) for link in LINKS]
    for stage in (plain, watched):
        for number in range(20):
            stage.send(mrc_packet(number))
        stage.at(10_000_000, stage.fabric.ports_down, [stage.plan.link_by_name[CORE_LINK].far])
        stage.run()
    assert plain.got == watched.got
    assert [len(seen(tap)) for tap in taps] == [20, *[len(watched.got["h2"])] * 3]


packets = st.builds(RingPacket, st.integers(0, 2**61), st.booleans(), st.integers(0, 9000), st.binary(max_size=300))


@given(st.lists(packets, min_size=1, max_size=5))
def test_blocks_are_read_as_they_were_made(made: list[RingPacket]) -> None:
    assert [packet._replace(frame=bytes(packet.frame)) for packet in packets_of(memoryview(block_of(made)))] == made


def test_the_source_port_of_a_flow_stands_in_its_frames() -> None:
    stage = Stage(routing=Routing.ECMP_STATIC)
    tap = tapped(stage, LINKS[0])
    stage.give("h0", rc_packet(rc.WRITE_ONLY, 5), stage.destination(stage.flow("h0", "h2", FIRST_PORT + 9)), 0)
    stage.run()
    assert [read(packet).source_port for packet in seen(tap)] == [FIRST_PORT + 9]
