"""Ports that pause each other and drop nothing: priority flow control (PFC, IEEE 802.1Qbb), in virtual time.

A switch counts what waits in it by the port that it came in by. Above XOFF that port sends a PAUSE frame to the other
end of its link, which then sends no data until a second frame, at XON, lets it go on. Packets that go before data have
a class of their own and are not paused. A frame goes first, waits for the packet that is being sent, takes its bytes on
the wire, and is obeyed one reaction later; a packet that has begun is sent to its end. What comes until then needs room
above XOFF, the headroom. It has a closed form (`headroom_bytes`), and what does not fit in it is dropped and counted:
that nothing is ever dropped is seen and not assumed.

Pauses last until they are ended, so there are no quanta and nothing to refresh; rules that lose packets do not lose
frames, which are the MAC's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from mrc_testbed.hosts.common import bth
from mrc_testbed.testbed.switching.port_counts import CHANGED, DROPPED, PASSED
from mrc_testbed.testbed.switching.thresholds import PauseLevels
from mrc_testbed.testbed.virtual.packet import Headers, VirtualPacket
from mrc_testbed.testbed.virtual.port import NIC_LIMITS, Port
from mrc_testbed.testbed.virtual.rules import PortDice
from mrc_testbed.testbed.virtual.scheduler import Due, Scheduler
from mrc_testbed.topos.nodes import Interface

FRAME_BYTES = 64
"""A PAUSE frame is the shortest one of Ethernet."""
REACTIONS_PER_T = 50
"""A frame is obeyed T/50 after its last bit: 260 ns at 13 us, 40 m of fibre and what a MAC takes to stop."""
FIRST_AND_LAST_BYTES = 20
"""Of RETH and ImmDt, which the longest packet has beside those of `Shape.wire_bytes`."""
_MARK_BITS = 32


@dataclass(frozen=True, slots=True)
class PauseRules:
    """What lossless ports of one fabric have in common. `room_bytes`: what may wait of one entrance, XOFF and headroom
    together."""

    levels: PauseLevels
    reaction_ns: int
    room_bytes: int


def headroom_bytes(packet_bytes: int, rate_bps: int, reaction_ns: int) -> int:
    """What may come in above XOFF: the packet that passes it; what follows while the frame waits for a whole packet, is
    sent and is obeyed; and the packet that the other end has just begun then. Three times on that way are rounded up to
    a ns."""
    return 3 * packet_bytes + FRAME_BYTES - -(reaction_ns + 3) * rate_bps // (8 * 10**9)


class _PauseFrame(Due):
    """One of the MAC's own: stop, or go on. `port`: what sends it."""

    __slots__ = ("port", "size_bytes", "stop")

    def __init__(self, port: LosslessPort, stop: bool) -> None:
        super().__init__()
        self.port = port
        self.size_bytes = FRAME_BYTES
        self.stop = stop

    def act(self) -> None:
        """As of `Due`."""
        self.port.frame_has_left(self)


HearPause = Callable[[bool], None]
"""Told that its port was paused (True) or may go on."""


class LosslessPort(Port):
    """As `Port`, but what waits is counted by the port that it came in by, and data waits while the port is paused.

    `held_bytes`: what waits in this switch, or is being sent, of what came in by this port; `most_held_bytes` so far.
    `pauses`: how often this port was paused. `hear_pause`: of the host whose port it is.
    """

    __slots__ = (
        "_ends_ns",
        "_epoch",
        "_frames",
        "_low_bytes",
        "_pause_rules",
        "_paused_from_ns",
        "_paused_ns",
        "asks_to_pause",
        "hear_pause",
        "held_bytes",
        "most_held_bytes",
        "paused",
        "pauses",
    )

    def __init__(
        self,
        interface: Interface,
        rules: PauseRules,
        rate_bps: int,
        headers: Headers,
        scheduler: Scheduler,
        dice: PortDice,
    ) -> None:
        super().__init__(interface, NIC_LIMITS, rate_bps, headers, scheduler, dice)
        self._pause_rules = rules
        self._frames: deque[_PauseFrame] = deque()
        self._low_bytes = 0
        self._ends_ns = 0
        self._epoch = 0
        self.paused = self.asks_to_pause = False
        self._paused_from_ns = self._paused_ns = 0
        self.held_bytes = self.most_held_bytes = self.pauses = 0
        self.hear_pause: HearPause | None = None

    # --- what leaves ---

    def offer(self, packet: VirtualPacket, now_ns: int) -> None:
        """As of `Port`."""
        if not self.usual and self._turned_away(packet, now_ns):
            return
        entrance = None if packet.high else self._entrance(packet)
        verdict = PASSED if entrance is None else self._admit(packet, entrance)
        size_bytes = packet.size_bytes
        self.out.count(packet.row + verdict, size_bytes)
        if verdict == DROPPED:
            return
        if packet.high:
            self._high.put(packet)
            self._high_bytes += size_bytes
        else:
            self._low.put(packet)
            self._low_bytes += size_bytes
        if entrance is not None:
            entrance._hold(size_bytes)
        if self._ends_ns <= now_ns:
            # What is still being sent, if anything, has its last bit out now.
            self._begin_ns, self._sent_bytes = now_ns, 0
        if self._sending is None:
            self._send_next()

    def _entrance(self, packet: VirtualPacket) -> LosslessPort | None:
        """The port by which a packet came into this switch; None for what a host sends by its own port."""
        if not packet.hop:
            return None
        entrance = packet.ports[packet.hop - 1].peer
        assert isinstance(entrance, LosslessPort)
        return entrance

    def _admit(self, packet: VirtualPacket, entrance: LosslessPort) -> int:
        """The verdict on data that comes from another port of this switch."""
        if entrance.held_bytes + packet.size_bytes > self._pause_rules.room_bytes:
            return DROPPED
        if packet.traffic_class & bth.ECN_MASK and self._marks():
            packet.traffic_class |= bth.ECN_CE
            return CHANGED
        return PASSED

    def _marks(self) -> bool:
        """Does DCQCN's congestion point mark a packet that meets this queue?"""
        levels, waiting = self._pause_rules.levels, self._low_bytes
        if waiting <= levels.ecn_low:
            return False
        if waiting > levels.ecn_high:
            return True
        share = levels.most * (waiting - levels.ecn_low) / (levels.ecn_high - levels.ecn_low)
        return self._dice.getrandbits(_MARK_BITS) < share * (1 << _MARK_BITS)

    def _go_on(self) -> None:
        """If the wire is free, something may go by it now."""
        if self._sending is None:
            self._begin_ns, self._sent_bytes = self._scheduler.now_ns, 0
            self._send_next()

    def _send_next(self) -> None:
        """Begin with what goes first now: a frame, what goes before data, or data if nobody paused it."""
        if self._frames:
            frame = self._frames.popleft()
            self._begin(frame, frame.size_bytes)
        elif (packet := self._high.take()) is not None:
            self._high_bytes -= packet.size_bytes
            self._begin_packet(packet)
        elif not self.paused and (packet := self._low.take()) is not None:
            self._low_bytes -= packet.size_bytes
            self._begin_packet(packet)
        else:
            self._sending = None

    def _begin_packet(self, packet: VirtualPacket) -> None:
        packet.port = self
        self._begin(packet, packet.size_bytes)

    def _begin(self, following: Due, size_bytes: int) -> None:
        self._sending = following
        self._sent_bytes = sent_bytes = self._sent_bytes + size_bytes
        self._ends_ns = ends_ns = self._begin_ns + (sent_bytes * self._ns_bits + self._round_up) // self._per
        self._scheduler.wake(ends_ns, following)

    def has_left(self, packet: VirtualPacket) -> None:
        """As of `Port`."""
        if self._sending is not packet:
            return  # the link went down under it
        self._send_next()
        if not packet.high:
            self._let_go(packet)
        self._hand_over(packet, self._scheduler.now_ns)

    def frame_has_left(self, frame: _PauseFrame) -> None:
        """Its last bit is at the other end."""
        if self._sending is not frame:
            return
        self._send_next()
        peer = self.peer
        assert isinstance(peer, LosslessPort)
        obeyed_ns = self._scheduler.now_ns + self._pause_rules.reaction_ns
        self._scheduler.at(obeyed_ns, peer._obey, frame.stop, peer._epoch)

    def _let_go(self, packet: VirtualPacket) -> None:
        """A packet waits in this switch no longer."""
        entrance = self._entrance(packet)
        if entrance is not None:
            entrance._release(packet.size_bytes)

    # --- what came in by this port ---

    def _hold(self, size_bytes: int) -> None:
        held_bytes = self.held_bytes = self.held_bytes + size_bytes
        self.most_held_bytes = max(self.most_held_bytes, held_bytes)
        if held_bytes > self._pause_rules.levels.xoff and not self.asks_to_pause:
            self._ask(True)

    def _release(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes
        if self.asks_to_pause and self.held_bytes <= self._pause_rules.levels.xon:
            self._ask(False)

    def _ask(self, stop: bool) -> None:
        """Send the other end a frame; if the one before it still waits, neither is needed."""
        self.asks_to_pause = stop
        if self._frames:
            self._frames.clear()
        elif self.live:
            self._frames.append(_PauseFrame(self, stop))
            self._go_on()

    # --- what the other end asks for ---

    def _obey(self, stop: bool, epoch: int) -> None:
        """A frame takes effect, unless the link has gone down since it was sent."""
        if epoch != self._epoch or stop is self.paused:
            return
        self._set_paused(stop)
        self._go_on()

    def _set_paused(self, paused: bool) -> None:
        now_ns = self._scheduler.now_ns
        self.paused = paused
        if paused:
            self.pauses += 1
            self._paused_from_ns = now_ns
        else:
            self._paused_ns += now_ns - self._paused_from_ns
        if self.hear_pause is not None:
            self.hear_pause(paused)

    def paused_ns(self) -> int:
        """For how long this port was paused in all."""
        return self._paused_ns + (self._scheduler.now_ns - self._paused_from_ns if self.paused else 0)

    # --- changes of the link ---

    def flush(self) -> None:
        """As of `Port`: what waits is lost, and so is every pause."""
        lost = [*self._low.clear(), *([self._sending] if isinstance(self._sending, VirtualPacket) else [])]
        super().flush()
        self._frames.clear()
        self._low_bytes = self._ends_ns = 0
        self._epoch += 1
        self.asks_to_pause = False
        if self.paused:
            self._set_paused(False)
        for packet in lost:
            if not packet.high:
                self._let_go(packet)

    def set_rate(self, rate_bps: int) -> None:
        """As of `Port`."""
        self._begin_ns, self._sent_bytes = max(self._ends_ns, self._scheduler.now_ns), 0
        self._set_times(rate_bps)

    def backlog_ns(self) -> int:
        """How long it takes until what waits now has left, if nobody pauses it."""
        rest_ns = max(0, self._ends_ns - self._scheduler.now_ns)
        return rest_ns - -self.queued_bytes() * self._ns_bits // self._per

    def queued_bytes(self) -> int:
        """As of `Port`."""
        return self._low_bytes + self._high_bytes
