"""What a switch port does to packets: tables for the port program on the kernel and for the ports of virtual time.

A burst goes from h0 to h2 over uplink 0, with one link of its way slowed down, so that its port has to queue. The
virtual port must do exactly what the table says; the kernel is allowed some packets, as its clock goes on meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import FRAME_BYTES
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.switching.classes import (
    MRC_DATA,
    ROCE_DATA,
    USUAL_MARKS,
    USUAL_TRIMMING,
    DataPackets,
    DscpMarks,
    TrimRules,
)
from mrc_testbed.testbed.switching.port_counts import PortCounts
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.testbed.switching.thresholds import DEFAULT_THRESHOLDS, PortThresholds
from mrc_testbed.topos.families.clos2 import clos2_shape

SMALL = clos2_shape(planes=1, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=20_000_000)
"""h0 and h1 in one group, h2 and h3 in the other: two senders overload one uplink, or one NIC port."""
PAYLOAD = 4096
CORE_LINK, CORE = "p0-t0-0:p0-t1-0", ("p0-t0-0", "up0")
LAST_LINK, LAST = "h2:p0-t0-1", ("p0-t0-1", "down0")
"""Two links of the way, and the ports at which packets wait for them."""
CONTROL = bth.CLASS_CONTROL
NOT_CAPABLE = wire.CLASS_TRIMMABLE & ~bth.ECN_MASK
DEEP = PortThresholds(drop=64)
PLAIN_DATA = DataPackets({**MRC_DATA.headers, **ROCE_DATA.headers}, by_opcode=True)
"""Packets of both transports on one fabric."""
PRODUCTION = DscpMarks(data=1, retransmission=1, control=3)


def mrc_packet(number: int, opcode: int = bth.WRITE_MIDDLE, payload: int = PAYLOAD, fill: int = 0x5A) -> bytes:
    """A sealed data packet with PSN `number`, every header field distinct from zero."""
    buffer = memoryview(bytearray(payload + wire.MAX_HEADER_BYTES))
    immediate = 0xA1B2C3D4 if opcode in bth.HAS_IMMEDIATE else None
    size = wire.emit_data(
        buffer, opcode, 0x123456, wire.TIMESTAMP | number, 0x1122, 0x3344, 0x5566, 0x0102030405060708, 0x99AABBCC,
        0x00DDEEFF, memoryview(bytes([fill]) * payload), immediate,
    )  # fmt: skip
    bth.seal(buffer, size)
    return bytes(buffer[:size])


def rc_packet(opcode: int, number: int, payload: int = 200) -> bytes:
    """Of RoCE: a BTH with its PSN, and as many bytes after it."""
    return bytes([opcode, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0]) + number.to_bytes(3, "big") + bytes(payload)


class Arrived(NamedTuple):
    """A datagram as its receiver has it."""

    data: bytes
    traffic_class: int

    @property
    def number(self) -> int:
        """The PSN it was sent with."""
        return int.from_bytes(self.data[9:12], "big")


@dataclass(frozen=True)
class Burst:
    """A number of packets at once into a port of this link at this rate, and what becomes of them.

    `marked`: how many of those that pass may be marked. `plain`: packets of RoCE, on a fabric whose switches choose.
    """

    name: str
    link: str
    rate_bps: int
    packets: int
    passed: int
    trimmed: int = 0
    dropped: int = 0
    marked: range = range(1)
    opcode: int = bth.WRITE_MIDDLE
    traffic_class: int = wire.CLASS_TRIMMABLE
    thresholds: PortThresholds = DEFAULT_THRESHOLDS
    plain: bool = False
    trimming: TrimRules = USUAL_TRIMMING
    dscps: DscpMarks = USUAL_MARKS

    @property
    def port(self) -> tuple[str, str]:
        """Where the packets wait."""
        return CORE if self.link == CORE_LINK else LAST

    def sent(self) -> list[bytes]:
        """The packets, each with its own number."""
        if self.plain:
            return [rc_packet(self.opcode, number, PAYLOAD) for number in range(self.packets)]
        return [mrc_packet(number, self.opcode) for number in range(self.packets)]

    def check(self, got: list[Arrived], counts: PortCounts, slack: int = 0) -> None:
        """What arrived, and what the port counted; each number may be wrong by `slack` packets."""
        seen = (counts.out_passed, counts.out_trimmed, counts.out_dropped)
        wanted = (self.passed, self.trimmed, self.dropped)
        assert all(abs(a - b) <= slack for a, b in zip(seen, wanted, strict=True)), seen
        assert sum(seen) == counts.out_data == self.packets
        assert len({one.number for one in got}) == len(got) == counts.out_passed + counts.out_trimmed
        sent = self.sent()
        whole = [one for one in got if len(one.data) == len(sent[one.number])]
        assert len(whole) == counts.out_passed
        for one in whole:
            assert one.data == sent[one.number]
            assert one.traffic_class in (self.traffic_class, self.traffic_class | bth.ECN_CE)
        marked = sum(one.traffic_class != self.traffic_class for one in whole)
        assert marked == counts.out_marked
        assert marked in self.marked
        for one in (one for one in got if one not in whole):
            self._check_cut(one, sent[one.number])

    def _check_cut(self, one: Arrived, sent: bytes) -> None:
        headers = wire.DATA_HEADER_BYTES + (bth.IMMEDIATE_BYTES if self.opcode in bth.HAS_IMMEDIATE else 0)
        size = self.trimming.size_bytes
        keep = size - FRAME_BYTES if size else headers
        assert one.data == sent[:keep]
        assert wire.check_trimmed(memoryview(one.data)) is None
        dscp = self.trimming.dscp if self.link == CORE_LINK else self.trimming.dscp_last_hop
        assert one.traffic_class == dscp << 2 | self.traffic_class & bth.ECN_MASK


def _trims(name: str, opcode: int, traffic_class: int) -> tuple[Burst, Burst]:
    """BDP over 1 Mb/s is 500 ms and a packet's time there 33.9 ms, in which 25 come: the 17th meets more than 1 BDP,
    the 25th more than 1.5. From 0.2 BDP on, the 5th, some are marked, and from 0.8 on, the 14th, all."""
    core = Burst(
        f"{name} in the core", CORE_LINK, 1_000_000, 30, 16, 14, marked=range(3, 13), opcode=opcode,
        traffic_class=traffic_class,
    )  # fmt: skip
    last = Burst(f"{name} at the last hop", LAST_LINK, 1_000_000, 30, 24, 6, opcode=opcode, traffic_class=traffic_class)
    return core, last


def _cut_as(name: str, link: str, passed: int, **trimming: Any) -> Burst:
    """The same as a vendor's switches trim them."""
    marked = range(3, 13) if link == CORE_LINK else range(1)
    return Burst(name, link, 1_000_000, 30, passed, 30 - passed, marked=marked, trimming=TrimRules(**trimming))


BURSTS = (
    # Packet k meets k packets less those that have left, 12.2 ms each; the ramp of 0.2 to 0.8 BDP is 40 to 160 ms.
    Burst("the ramp marks", CORE_LINK, 2_500_000, 15, 15, marked=range(3, 12)),
    Burst("what is not capable is not marked", CORE_LINK, 2_500_000, 15, 15, traffic_class=NOT_CAPABLE),
    Burst("the last hop does not mark", LAST_LINK, 2_500_000, 20, 20),
    *_trims("trimmed", bth.WRITE_MIDDLE, wire.CLASS_TRIMMABLE),
    *_trims("trimmed behind its immediate", bth.WRITE_LAST_IMM, wire.CLASS_TRIMMABLE_RETX),
    *_trims("trimmed, only with immediate", bth.WRITE_ONLY_IMM, wire.CLASS_TRIMMABLE),
    _cut_as("cut to 128 bytes, in RETH", CORE_LINK, 16, size_bytes=128),
    _cut_as("cut to 256 bytes, at the last hop", LAST_LINK, 24, size_bytes=256, dscp=48, dscp_last_hop=49),
    _cut_as("cut, and waits with data", CORE_LINK, 16, first=False),
    _cut_as("one DSCP for all", LAST_LINK, 24, dscp=48, dscp_last_hop=48),
    replace(_cut_as("trimmed by other DSCPs", CORE_LINK, 16), traffic_class=1 << 2 | bth.ECN_ECT0, dscps=PRODUCTION),
    Burst(
        "not trimmed by other DSCPs", CORE_LINK, 1_000_000, 60, 47, dropped=13, marked=range(34, 44),
        traffic_class=wire.CLASS_TRIMMABLE, dscps=PRODUCTION,
    ),
    # 3 BDP are 1.5 s at 1 Mb/s.
    Burst(
        "what cannot be trimmed is dropped", CORE_LINK, 1_000_000, 60, 47, dropped=13, marked=range(34, 44),
        traffic_class=wire.CLASS_NO_TRIM,
    ),
    Burst(
        "what cannot be trimmed is dropped at the last hop", LAST_LINK, 1_000_000, 60, 47, dropped=13,
        traffic_class=wire.CLASS_NO_TRIM,
    ),
)  # fmt: skip
_PLAIN: dict[str, Any] = {"opcode": rc.WRITE_MIDDLE, "traffic_class": rc.CLASS_DATA, "plain": True}
# The 48th is dropped, and a later one passes, when the queue is below 3 BDP again.
PLAIN_BURSTS = (
    Burst("a lossy port marks and drops", CORE_LINK, 1_000_000, 60, 48, dropped=12, marked=range(35, 45), **_PLAIN),
    Burst("a deep one only marks", CORE_LINK, 1_000_000, 60, 60, marked=range(47, 57), thresholds=DEEP, **_PLAIN),
    Burst(
        "what is not capable is not marked", CORE_LINK, 1_000_000, 60, 48, dropped=12,
        **_PLAIN | {"traffic_class": rc.CLASS_DATA & ~bth.ECN_MASK},
    ),
    Burst("the last hop does not mark", LAST_LINK, 1_000_000, 60, 48, dropped=12, **_PLAIN),
)  # fmt: skip


class Stream(NamedTuple):
    """Packets of one kind on one path to h2: the sender, the uplink, and whether they are data."""

    source: str
    uplink: int
    data: bool


STREAMS = [Stream(source, uplink, data) for source in ("h0", "h1") for uplink in (0, 1) for data in (True, False)]


@dataclass(frozen=True)
class RuleCase:
    """A rule at the port of h2, and which streams to h2 it takes."""

    name: str
    rule: PortRule
    taken: list[Stream]


RULE_CASES = (
    RuleCase("everything", PortRule("drop"), STREAMS),
    RuleCase("data", PortRule("drop", data_only=True), [one for one in STREAMS if one.data]),
    RuleCase("an uplink", PortRule("drop", uplink=1), [one for one in STREAMS if one.uplink == 1]),
    RuleCase("a sender", PortRule("drop", source=1), [one for one in STREAMS if one.source == "h1"]),
    RuleCase("a receiver", PortRule("drop", destination=2), STREAMS),
    RuleCase("another receiver", PortRule("drop", destination=3), []),
    RuleCase("an EV of a sender", PortRule("drop", uplink=0, source=0, data_only=True), [Stream("h0", 0, True)]),
)
