"""The gateway of IP packets without a kernel: rings, order, pushing back, and what has no way."""

from __future__ import annotations

import socket
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6DestUnreach, IPv6
from scapy.packet import Packet

from mrc_testbed.hosts.gateway.gateway import FRAMES_A_TURN, Gateway, GatewayPeer
from mrc_testbed.hosts.gateway.packets import HEADER, destination, for_several, frame_bytes
from mrc_testbed.hosts.gateway.ring import IncomingRing, OutgoingRing

RING = 4096
BATCH = 1000
MARK = 2000
STUCK_NS = 100


class Wire:
    """A ring's two ends, and writes under way between them in order."""

    def __init__(self, size: int = RING) -> None:
        self.region = memoryview(bytearray(size))
        self.under_way: deque[tuple[memoryview, int, int]] = deque()
        self.out = OutgoingRing(size, BATCH, lambda *write: self.under_way.append(write))
        self.into = IncomingRing(self.region)
        self.unacknowledged = 0

    def deliver(self) -> bytes:
        """Place the oldest write; returns what the receiver reads of it."""
        data, offset, immediate = self.under_way.popleft()
        self.region[offset : offset + len(data)] = data
        self.unacknowledged += 1
        return bytes(self.into.take(immediate))

    def acknowledge(self, now_ns: int = 0) -> None:
        self.unacknowledged -= 1
        self.out.acknowledged(now_ns)


@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 3)), max_size=200))
def test_bytes_come_out_of_a_ring_as_they_went_in(steps: list[tuple[int, int]]) -> None:
    """Whatever the sizes, and however late acknowledgements come: no place is used while its write is not read."""
    wire, went, came = Wire(), b"", b""
    for number, (size, action) in enumerate(steps):
        packet = (number % 251).to_bytes(1) * size
        if wire.out.put(memoryview(packet), 0):
            went += packet
        if action & 1:
            wire.out.flush()
        if action & 2 and wire.under_way:
            came += wire.deliver()
        elif wire.unacknowledged:
            wire.acknowledge()
    wire.out.flush()
    while wire.under_way:
        came += wire.deliver()
    assert came == went


@given(st.lists(st.integers(1, RING // 2), min_size=1, max_size=50))
def test_a_ring_that_is_acknowledged_takes_everything(sizes: list[int]) -> None:
    wire = Wire()
    for size in sizes:
        assert wire.out.put(memoryview(bytes(size)), 0), (
            "an empty ring has room for a packet of half its size, wherever it stands"
        )
        wire.out.flush()
        while wire.under_way:
            wire.deliver()
            wire.acknowledge()


class Device:
    """Frames from and to an imagined kernel. `refuses`: it takes none."""

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.taken: list[bytes] = []
        self.refuses = False

    def read(self, buffer: memoryview) -> int:
        if not self.frames:
            return 0
        frame = self.frames.popleft()
        buffer[: len(frame)] = frame
        return len(frame)

    def write(self, frame: memoryview) -> bool:
        if not self.refuses:
            self.taken.append(bytes(frame))
        return not self.refuses

    def fileno(self) -> int:
        return 7


def ip(last: int) -> bytes:
    return socket.inet_aton(f"10.64.0.{last}")


def ip6(last: int) -> bytes:
    return socket.inet_pton(socket.AF_INET6, f"fd00:3::{last}")


def frame(to: int, size: int = 100, version: int = 4) -> bytes:
    if version == 4:
        packet: Packet = IP(src="10.64.0.1", dst=f"10.64.0.{to}") / UDP() / bytes(size)
    else:
        packet = IPv6(src="fd00:3::1", dst=f"fd00:3::{to}") / UDP() / bytes(size)
    return bytes(HEADER) + bytes(packet)


class Host:
    """Host 1 with a gateway to hosts 2 and 3, and one from host 2."""

    def __init__(self) -> None:
        self.device = Device()
        self.wires = {number: Wire() for number in (2, 3)}
        peers = [
            GatewayPeer((ip(number), ip6(number)), f"to{number}", f"from{number}", wire.out, Wire().into)
            for number, wire in self.wires.items()
        ]
        self.gateway = Gateway(self.device, peers, MARK, STUCK_NS)

    def counts(self) -> dict[str, int]:
        return {name.removeprefix("gateway_"): count for name, count in self.gateway.counters().items() if count}


def test_frames_go_to_the_host_of_their_address_and_share_a_write() -> None:
    host = Host()
    frames = [frame(2), frame(3, version=6), frame(2), frame(2, version=6)]
    host.device.frames.extend(frames)
    host.gateway.pump(0)
    assert [len(wire.under_way) for wire in host.wires.values()] == [1, 1]
    assert host.wires[2].deliver() == frames[0] + frames[2] + frames[3]
    assert host.wires[3].deliver() == frames[1]
    assert host.counts() == {"out": 4, "out_bytes": sum(map(len, frames))}


def test_frames_of_one_write_reach_the_kernel_one_by_one() -> None:
    host = Host()
    frames = [frame(1, 50), frame(1, 70, version=6)]
    both = b"".join(frames)
    assert not host.gateway.immediate("another", len(both))
    peer = next(iter(host.gateway._incoming.values()))
    peer._region[: len(both)] = both
    assert host.gateway.immediate("from2", len(both))
    assert host.device.taken == frames
    assert host.counts() == {"in": 2, "in_bytes": len(both)}


def test_what_the_kernel_refuses_and_what_is_no_packet_are_counted() -> None:
    host = Host()
    host.gateway.immediate("from2", 40)
    assert host.counts() == {"refused": 1}
    host.device.refuses = True
    peer = host.gateway._incoming["from3"]
    peer._region[: len(frame(1))] = frame(1)
    host.gateway.immediate("from3", len(frame(1)))
    assert host.counts() == {"refused": 2}


def test_a_full_ring_stops_reading_and_nothing_is_lost() -> None:
    host = Host()
    frames = [frame(2, 900) for _ in range(9)]
    host.device.frames.extend(frames)
    host.gateway.pump(0)
    assert host.gateway.wakes_by == ()
    assert len(host.device.frames) == 4
    came = b""
    for now_ns in range(1, 20):
        if host.wires[2].under_way:
            came += host.wires[2].deliver()
            assert host.gateway.written("to2", now_ns)
        host.gateway.pump(now_ns)
    assert came == b"".join(frames)
    assert host.gateway.wakes_by == (7,)


def test_a_peer_that_acknowledges_nothing_holds_up_nobody() -> None:
    host = Host()
    host.device.frames.extend([frame(2, 900)] * 6 + [frame(3)])
    host.gateway.pump(0)
    assert not host.wires[3].under_way
    assert host.gateway.next_ns(1) == STUCK_NS
    host.gateway.pump(STUCK_NS - 1)
    assert not host.wires[3].under_way
    host.gateway.pump(STUCK_NS)
    assert host.wires[3].deliver() == frame(3)
    assert host.counts()["dropped"] == 2
    host.wires[2].deliver()
    host.gateway.written("to2", STUCK_NS + 1)
    host.device.frames.append(frame(2, 10))
    host.gateway.pump(STUCK_NS + 2)
    assert host.counts()["dropped"] == 2


def test_an_address_that_nobody_has_is_unreachable() -> None:
    host = Host()
    host.device.frames.extend([frame(9), frame(9, version=6)])
    host.gateway.pump(0)
    four, six = (taken[HEADER:] for taken in host.device.taken)
    answer = IP(four)
    assert (answer.src, answer.dst) == ("10.64.255.254", "10.64.0.1")
    assert (answer[ICMP].type, answer[ICMP].code) == (3, 1)
    answer6 = IPv6(six)
    assert answer6[ICMPv6DestUnreach].code == 3
    for packet, layer in ((answer, ICMP), (answer6, ICMPv6DestUnreach)):
        told = packet[layer].chksum if layer is ICMP else packet[layer].cksum
        again = packet.copy()
        setattr(again[layer], "chksum" if layer is ICMP else "cksum", None)
        rebuilt = type(packet)(bytes(again))
        assert told == (rebuilt[layer].chksum if layer is ICMP else rebuilt[layer].cksum)
    assert host.counts() == {"unknown": 2}


def test_multicast_broadcast_and_what_is_no_packet_are_dropped() -> None:
    host = Host()
    several = ["224.0.0.251", "255.255.255.255", "10.64.255.255"]
    host.device.frames.extend(bytes(HEADER) + bytes(IP(dst=address) / UDP()) for address in several)
    host.device.frames.extend([bytes(HEADER) + bytes(IPv6(dst="ff02::1") / UDP()), b"x" * 30, b"y"])
    host.gateway.pump(0)
    assert host.counts() == {"multicast": 6}
    assert not host.device.taken


@pytest.mark.parametrize("tos", [0, 1, 2, 3])
@pytest.mark.parametrize("version", [4, 6])
def test_who_understands_it_is_told_that_the_ring_is_long(version: int, tos: int) -> None:
    """The fourth one, and the fifth, which finds no room; checksums stay right."""
    host = Host()
    packet = IP(dst="10.64.0.2", tos=tos) if version == 4 else IPv6(dst="fd00:3::2", tc=tos)
    frames = [bytes(HEADER) + bytes(packet / UDP() / bytes(900))] * 5
    host.device.frames.extend(frames)
    host.gateway.pump(0)
    came = []
    while host.wires[2].under_way:
        came.append(host.wires[2].deliver()[HEADER:])
    found = [type(packet)(each) for each in came]
    bits = [each.tos if version == 4 else each.tc for each in found]
    understands = tos in (1, 2)
    assert bits == [tos] * 3 + [3 if understands else tos]
    assert host.counts().get("marked", 0) == (2 if understands else 0)
    for each in found:
        again = each.copy()
        if version == 4:
            del again.chksum
        assert bytes(again) == bytes(each)


def test_a_turn_is_no_longer_than_it_may_be() -> None:
    host = Host()
    host.device.frames.extend([frame(2, 1)] * (FRAMES_A_TURN + 5))
    host.gateway.pump(0)
    assert len(host.device.frames) == 5
    assert host.gateway.next_ns(3) == 3


@given(st.binary(max_size=80))
def test_no_bytes_are_too_odd_to_be_read(data: bytes) -> None:
    view = memoryview(data)
    assert frame_bytes(view) >= 0
    for_several(destination(view))
    host = Host()
    host.device.frames.append(data or b"z")
    host.gateway.pump(0)
