"""Packets on their way through the virtual network, and what ports see of them.

A packet is the UDP payload that a host sent, in one piece or as headers and a payload that stays where its sender has
it. The headers below are counted in its size, and what they would say is beside it; they are not made. The rules by
which ports read a packet are those of bpf/mrc_packets.h and plain_packets.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrc_testbed.hosts.common import bth
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_counts import CONTROL, DATA, TRIMMED, VERDICTS
from mrc_testbed.testbed.virtual.scheduler import Due

if TYPE_CHECKING:
    from mrc_testbed.testbed.virtual.port import Port

DATA_ROW = DATA * VERDICTS
TRIMMED_ROW = TRIMMED * VERDICTS
CONTROL_ROW = CONTROL * VERDICTS
"""Where the verdicts on a class begin in the counts of a port."""


@dataclass(slots=True, eq=False)
class VirtualWay:
    """What all packets from a host to one destination have in common.

    `ports`: those that they leave by, one after the other; the first alone where a switch is to choose the others.
    `source`, `destination`: numbers of hosts; `source_key`, `destination_key`: the same as rules name them. `uplink`:
    as the headers say, which name none where switches choose; it is 0 then.
    """

    ports: tuple[Port, ...]
    source: int
    destination: int
    plane: int
    uplink: int
    source_port: int
    flow_label: int
    source_key: int
    destination_key: int


class VirtualPacket(Due):
    """`data`: the packet, or what goes before `payload`; a payload beside it never changes. `size_bytes` is that of the
    frame, `row` one of the rows above, `high` says that it goes before data, `hop` is the number of ports that it has
    left by, and `port` the one by which it is being sent: its time comes when its last bit has left. `sent`: bytes and
    traffic class that its headers still claim, where a switch trimmed it and left them alone. `after`: the packet that
    waits behind it (`PacketQueue`). `due_ns`: when it has arrived at its host, delay line included."""

    __slots__ = (
        *("after", "data", "due_ns", "high", "hop", "payload", "port", "ports", "row", "sent", "size_bytes"),
        *("traffic_class", "way"),
    )

    def __init__(
        self,
        way: VirtualWay,
        data: bytes,
        size_bytes: int,
        traffic_class: int,
        row: int,
        high: bool,
        payload: memoryview | None = None,
    ) -> None:
        super().__init__()
        self.way = way
        self.ports = way.ports
        self.port: Port | None = None
        self.data = data
        self.payload = payload
        self.size_bytes = size_bytes
        self.traffic_class = traffic_class
        self.row = row
        self.high = high
        self.hop = 0
        self.sent: tuple[int, int] | None = None
        self.after: VirtualPacket | None = None
        self.due_ns = 0

    def act(self) -> None:
        """As of `Due`."""
        if self.port is not None:
            self.port.has_left(self)

    @property
    def length(self) -> int:
        """Bytes of the whole packet."""
        return len(self.data) if self.payload is None else len(self.data) + bth.bytes_after_headers(self.payload)

    def whole(self) -> bytes:
        """The packet in one piece."""
        return self.data if self.payload is None else bth.whole(self.data, self.payload)

    def become(self, data: bytes) -> None:
        """Something on the way has made another packet of it."""
        self.data, self.payload = data, None


class PacketQueue:
    """Packets that wait, first in, first out; none waits in two. `first`: None where nothing waits."""

    __slots__ = ("_last", "first")

    def __init__(self) -> None:
        self.first: VirtualPacket | None = None
        self._last: VirtualPacket | None = None

    def put(self, packet: VirtualPacket) -> None:
        """At the end."""
        if self._last is None or self.first is None:
            self.first = packet
        else:
            self._last.after = packet
        self._last = packet

    def take(self) -> VirtualPacket | None:
        """The first packet; None: nothing waits."""
        packet = self.first
        if packet is not None:
            self.first = packet.after
            packet.after = None
        return packet

    def clear(self) -> list[VirtualPacket]:
        """Nothing waits any more; what did."""
        left = []
        while (packet := self.take()) is not None:
            left.append(packet)
        return left


class Headers:
    """How ports read the packets of a fabric. `frame_bytes`: of a frame, up to the UDP payload. `options`: what they go
    by."""

    def __init__(self, frame_bytes: int, options: FabricOptions) -> None:
        self.frame_bytes = frame_bytes
        self.rules = options.trimming
        self._control = options.marks.control
        self._trimmable = options.marks.trimmable if options.trims else frozenset()
        self._data_dscps = options.data.data_dscps(options.marks)
        self._by_opcode = options.data.by_opcode
        self._sizes = list(options.data.header_bytes)
        self._left = [self.rules.left_bytes(frame_bytes, size) if size else 0 for size in self._sizes]

    def look(self, data: bytes, traffic_class: int) -> tuple[int, bool]:
        """Row and priority of what a host sends, which is never trimmed; control packets go first if they ask for
        it."""
        dscp = traffic_class >> 2
        if dscp in self._data_dscps and (not self._by_opcode or self._sizes[data[0]]):
            return DATA_ROW, False
        return CONTROL_ROW, dscp == self._control

    def payload(self, packet: VirtualPacket) -> range:
        """The bytes of the UDP payload that may be corrupted: those that only the ICRC protects."""
        start = self._sizes[packet.data[0]]
        return range(start, packet.length - bth.ICRC_BYTES) if start else range(0)

    def bare_bytes(self, packet: VirtualPacket) -> int:
        """How much of the UDP payload trimming leaves, if the DSCP and the opcode allow it and something is left to cut
        off; else 0."""
        left = self._left[packet.data[0]] if packet.traffic_class >> 2 in self._trimmable else 0
        return left if left < packet.length else 0


ENCAPSULATED_BYTES = 14 + 40 + 40 + 8
"""Ethernet, two IPv6 headers and UDP."""
