"""A port of the virtual network: its queue, its wire, and what it does to packets, as bpf/port.bpf.c does it.

A packet takes its bytes / rate on the wire, one at a time. One that goes before data waits for the packet that is being
sent, and for its like. The other end has a packet when its last bit is there. So one action of the scheduler carries a
packet over one link: it ends the sending, begins that of the next packet, and lets the other end take the packet in.

The shaper's byte a packet (docs/switch.md) is not charged: a sender at line rate would build a queue by it for ever.
On the kernel no sender is punctual enough for that.

Times of one busy period follow from the bytes since its beginning, not from each other, so that rounding does not add
up: no port is ever faster than its rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from mrc_testbed.hosts.common import bth
from mrc_testbed.testbed.switching.port_counts import CHANGED, CUT, DROPPED, PASSED
from mrc_testbed.testbed.switching.thresholds import NEVER, PortLevels
from mrc_testbed.testbed.virtual.packet import TRIMMED_ROW, Headers, PacketQueue, VirtualPacket
from mrc_testbed.testbed.virtual.port_row import PortRow
from mrc_testbed.testbed.virtual.rules import ActiveRule, PortDice, fate
from mrc_testbed.testbed.virtual.scheduler import Due, Scheduler
from mrc_testbed.topos.nodes import Interface

_NS_BITS = 8 * 10**9

Deliver = Callable[[int, VirtualPacket], None]
"""Takes what has arrived at a host, and when."""
Choose = Callable[[VirtualPacket], tuple["Port", ...]]
"""All ports of a packet in a switch which chooses them; empty without a way."""

See = Callable[["Port", VirtualPacket, int], None]
"""Sees a packet leave by a port, and when."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """What a port's queues take: `levels` of data in the whole queue, `high_bytes` of packets that go before data."""

    levels: PortLevels
    high_bytes: int


NIC_LIMITS = QueueLimits(PortLevels(NEVER, NEVER, NEVER, NEVER, False), NEVER)
"""A NIC drops and marks nothing."""


class Port:
    """One end of a link: what leaves by it waits here, and what arrives at it is taken in here.

    `out`, `into`: what was counted (`port_row.py`). `up`: this end is, and
    `live`: both are. `instead`: the port that the table of its switch leads to in its place, usually itself; None: to
    none. `usual`: the link is live, and the table leads here. `strange`, `strange_bytes`: packets that
    came in here and for which the node had no entry; `no_route`: those that were to leave here, and had none. `peer`:
    the other end. `deliver` at hosts, `choose` at switches that choose paths.
    """

    # More attributes than instances share the names of: without slots each port had a dictionary, and was slower.
    __slots__ = (
        "_admitted",
        "_begin_ns",
        "_calm_ns",
        "_dice",
        "_drop_ns",
        "_ecn_high_ns",
        "_ecn_low_ns",
        "_free_at_ns",
        "_headers",
        "_high",
        "_high_bytes",
        "_limits",
        "_longest_ns",
        "_low",
        "_most_bytes",
        "_ns_bits",
        "_per",
        "_rate_bps",
        "_round_up",
        "_scheduler",
        "_see",
        "_sending",
        "_sent_bytes",
        "_trim_ns",
        "choose",
        "deliver",
        "high_drops",
        "instead",
        "interface",
        "into",
        "live",
        "no_route",
        "out",
        "peer",
        "rules",
        "strange",
        "strange_bytes",
        "up",
        "usual",
    )

    def __init__(
        self,
        interface: Interface,
        limits: QueueLimits,
        rate_bps: int,
        headers: Headers,
        scheduler: Scheduler,
        dice: PortDice,
    ) -> None:
        self.interface = interface
        self.join(self)
        self.up = self.live = self.usual = True
        self.instead: Port | None = self
        self.strange = self.strange_bytes = self.no_route = 0
        self.out, self.into = PortRow(), PortRow()
        self.high_drops = 0
        self.rules: tuple[ActiveRule, ...] = ()
        self.deliver: Deliver | None = None
        self.choose: Choose = lambda _packet: ()
        self._limits = limits
        self._headers = headers
        self._scheduler = scheduler
        self._dice = dice
        self._see: See | None = None
        self._high, self._low = PacketQueue(), PacketQueue()
        self._high_bytes = 0
        self._sending: Due | None = None  # also what no packet of the network is, such as a frame of a lossless port
        # Of this busy period: when it began, the bytes that came in it, and those sent or being sent.
        self._begin_ns = self._admitted = self._sent_bytes = 0
        self._free_at_ns = 0
        # The longest queue that a packet met, in time at this rate, and in bytes at earlier ones.
        self._longest_ns = self._most_bytes = 0
        self._set_times(rate_bps)

    def join(self, peer: Port) -> None:
        """Make `peer` the other end of this port's link."""
        self.peer = peer

    def set_live(self, live: bool) -> None:
        """Both ends of the link are up, or one is not."""
        self.live = live
        self.usual = live and self.instead is self

    def lead(self, instead: Port | None) -> None:
        """From now on the table of this switch leads to that port in place of this one; None: to none."""
        self.instead = instead
        self.usual = self.live and instead is self

    def set_limits(self, limits: QueueLimits) -> None:
        """From now on the queue is judged by these."""
        self._limits = limits
        self._set_times(self._rate_bps)

    def _set_times(self, rate_bps: int) -> None:
        self._rate_bps = rate_bps
        shared = gcd(_NS_BITS, rate_bps)
        self._ns_bits, self._per = _NS_BITS // shared, rate_bps // shared
        self._round_up = self._per - 1
        levels = self._limits.levels
        times = (level * _NS_BITS // rate_bps for level in (levels.ecn_low, levels.ecn_high, levels.trim, levels.drop))
        self._ecn_low_ns, self._ecn_high_ns, self._trim_ns, self._drop_ns = times
        self._calm_ns = min(self._ecn_low_ns, self._trim_ns, self._drop_ns)

    def offer(self, packet: VirtualPacket, now_ns: int) -> None:
        """A packet is to leave by this port: it is judged, and sent at once or put into the queue."""
        if not self.usual and self._turned_away(packet, now_ns):
            return
        waits_ns, row, size_bytes = self._free_at_ns - now_ns, packet.row, packet.size_bytes
        verdict = PASSED
        if waits_ns <= 0:
            # Nothing waits, and if something is still being sent, its last bit leaves now.
            waits_ns, self._begin_ns = 0, now_ns
            self._admitted = self._sent_bytes = 0
        elif waits_ns > self._longest_ns:
            self._longest_ns = waits_ns
        if waits_ns > self._calm_ns and not packet.high:
            verdict = self._judge(packet, waits_ns)
        self.out.count(row + verdict, size_bytes)
        if verdict == DROPPED:
            return
        wire_bytes = packet.size_bytes
        sending = self._sending
        if sending is not None:
            if not packet.high:
                self._low.put(packet)
            elif self._high_bytes + wire_bytes <= self._limits.high_bytes:
                self._high_bytes += wire_bytes
                self._high.put(packet)
            else:
                self.high_drops += 1
                return
        self._admitted = admitted = self._admitted + wire_bytes
        self._free_at_ns = free_at_ns = self._begin_ns + (admitted * self._ns_bits + self._round_up) // self._per
        if sending is None:
            self._sending = packet
            self._sent_bytes = admitted
            packet.port = self
            self._scheduler.wake(free_at_ns, packet)

    def has_left(self, packet: VirtualPacket) -> None:
        """The last bit of a packet has left, and is at the other end."""
        if self._sending is not packet:
            return  # the link went down under it
        following = self._high.take()
        if following is not None:
            self._high_bytes -= following.size_bytes
        else:
            following = self._low.take()
        self._sending = following
        if following is not None:
            self._sent_bytes = sent_bytes = self._sent_bytes + following.size_bytes
            ends_ns = self._begin_ns + (sent_bytes * self._ns_bits + self._round_up) // self._per
            following.port = self
            self._scheduler.wake(ends_ns, following)
        self._hand_over(packet, self._scheduler.now_ns)

    def _hand_over(self, packet: VirtualPacket, now_ns: int) -> None:
        if self._see is not None:
            self._see(self, packet, now_ns)
        self.peer.take_in(packet, now_ns)

    def take_in(self, packet: VirtualPacket, now_ns: int) -> None:
        """A packet has come over the link: rules may lose or change it, the node sends it on or has it."""
        at = packet.row
        if self.rules:
            at += fate(self.rules, packet, self._headers.payload, self._dice)
        self.into.count(at, packet.size_bytes)
        if at - packet.row == DROPPED:
            return
        deliver = self.deliver
        if deliver is not None:
            if packet.hop + 1 != len(packet.ports):
                self._know_no_entry(packet)
                return
            deliver(now_ns, packet)
            return
        packet.hop = hop = packet.hop + 1
        if hop == len(packet.ports) and not self._chosen(packet):
            return
        packet.ports[hop].offer(packet, now_ns)

    def _chosen(self, packet: VirtualPacket) -> bool:
        """Let this switch choose how a packet goes on; False without a way, and then it is lost here."""
        packet.ports = self.choose(packet)
        if not packet.ports:
            self._know_no_entry(packet)
        return bool(packet.ports)

    def _know_no_entry(self, packet: VirtualPacket) -> None:
        self.strange += 1
        self.strange_bytes += packet.size_bytes

    def _turned_away(self, packet: VirtualPacket, now_ns: int) -> bool:
        """True if a packet does not leave by this port: its link is down, or the table leads elsewhere."""
        instead = self.instead
        if instead is None:
            self.no_route += 1
        elif instead is not self:
            self._lead_astray(packet, instead, now_ns)
        elif not self.live:
            self._lose(packet)
        else:
            return False
        return True

    def _lead_astray(self, packet: VirtualPacket, port: Port, now_ns: int) -> None:
        """Let a packet leave by another port of this switch. It ends at the node there, which has no entry for it."""
        ends_at_host = port.peer.deliver is not None
        packet.ports = (*packet.ports[: packet.hop], port, *((port,) if ends_at_host else ()))
        usual, port.usual = port.usual, True  # the entry for that port may lead astray, too
        if port.live:
            port.offer(packet, now_ns)
        else:
            port._lose(packet)
        port.usual = usual

    def _judge(self, packet: VirtualPacket, backlog_ns: int) -> int:
        """What happens to a packet that does not go first and meets this queue."""
        if backlog_ns > self._drop_ns:
            return DROPPED
        if backlog_ns > self._trim_ns and (bare_bytes := self._headers.bare_bytes(packet)):
            self._trim(packet, bare_bytes)
            return CUT
        if packet.traffic_class & bth.ECN_MASK and self._in_ramp(backlog_ns):
            packet.traffic_class |= bth.ECN_CE
            return CHANGED
        return PASSED

    def _in_ramp(self, backlog_ns: int) -> bool:
        low_ns, high_ns = self._ecn_low_ns, self._ecn_high_ns
        if backlog_ns <= low_ns:
            return False
        if backlog_ns >= high_ns:
            return True
        return self._dice.getrandbits(16) * (high_ns - low_ns) < (backlog_ns - low_ns) << 16

    def _trim(self, packet: VirtualPacket, bare_bytes: int) -> None:
        rules = self._headers.rules
        if not rules.rewrite_length:
            packet.sent = packet.length, packet.traffic_class
        packet.traffic_class = rules.mark(self._limits.levels.last_hop) << 2 | packet.traffic_class & bth.ECN_MASK
        packet.become(packet.whole()[:bare_bytes])
        packet.size_bytes = self._headers.frame_bytes + bare_bytes
        packet.row, packet.high = TRIMMED_ROW, rules.first

    def _lose(self, packet: VirtualPacket) -> None:
        """A port without carrier counts what it is given, as the port program does; one that is down is no way."""
        if self.up:
            self.out.count(packet.row, packet.size_bytes)

    def watch(self, see: See | None) -> None:
        """Tell `see` of every packet whose last bit leaves by this port, before the other end; None: nobody."""
        self._see = see

    def flush(self) -> None:
        """The link went down: what waits or is on the wire is lost, and the queue is empty."""
        self._sending = None
        self._high.clear()
        self._low.clear()
        self._high_bytes = self._admitted = self._sent_bytes = self._free_at_ns = 0

    def set_rate(self, rate_bps: int) -> None:
        """Go on at another rate. The packet on the wire keeps its own; the queue and its levels keep their bytes."""
        self._most_bytes, self._longest_ns = self.watermark_bytes(), 0
        now_ns = self._scheduler.now_ns
        ends_ns = self._begin_ns + (self._sent_bytes * self._ns_bits + self._round_up) // self._per
        self._admitted -= self._sent_bytes
        self._begin_ns, self._sent_bytes = max(ends_ns, now_ns), 0
        self._set_times(rate_bps)
        if self._free_at_ns > now_ns:
            self._free_at_ns = self._begin_ns + (self._admitted * self._ns_bits + self._round_up) // self._per

    def backlog_ns(self) -> int:
        """How long it takes until what waits now has left."""
        return max(0, self._free_at_ns - self._scheduler.now_ns)

    def backlog_bytes(self) -> int:
        """What waits or is being sent now, in bytes at the port's rate."""
        return self.backlog_ns() * self._per // self._ns_bits

    def watermark_bytes(self) -> int:
        """The longest queue that a packet has met here."""
        return max(self._most_bytes, self._longest_ns * self._per // self._ns_bits)

    def queued_bytes(self) -> int:
        """Bytes that wait behind the packet on the wire."""
        return self._admitted - self._sent_bytes
