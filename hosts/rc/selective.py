"""A requester that sends only what is missing again, after IRN.

Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018. A NAK acknowledges everything before its PSN and
names the packet that came; what is missing below the highest one named is sent again once. A second loss of the same
packet is found by a timeout of its own. As many packets as one BDP holds are under way, of all QPs of a host together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.messages import Message
from mrc_testbed.hosts.common.psn import unwrap
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcAttributes
from mrc_testbed.hosts.rc.context import SLACK_PACKETS, RcContext, Way
from mrc_testbed.hosts.rc.dcqcn import scaled
from mrc_testbed.hosts.rc.peer import RcPeer
from mrc_testbed.hosts.rc.requester import ACK_EVERY, Requester

SHORT_RTO_NS = 100_000
"""At the T of `mrc_testbed.hosts.rc.dcqcn.REFERENCE_T_NS`; when fewer than `FEW_PACKETS` are under way (IRN, section
4.1)."""
LONG_RTO_NS = 320_000
FEW_PACKETS = 3


class SelectiveRequester(Requester):
    """`_arrived` has the packets above `_una` that came; those missing from `_resend` to below `_edge` are sent again.

    Every packet below `_edge` that is in neither has been counted as lost."""

    __slots__ = ("_arrived", "_edge", "_given_up", "_oldest_ns", "_resend", "_waits")

    def __init__(
        self,
        context: RcContext,
        peer: RcPeer,
        local: RcAttributes,
        remote: RcAttributes,
        ways: Sequence[Way],
        fail: Callable[[QpFailure], None],
    ) -> None:
        super().__init__(context, peer, local, remote, ways, fail)
        self._arrived: set[int] = set()
        self._resend = self._edge = 0
        self._given_up = 0
        """Packets under way that do not count against the window of the host. While there are any, no new one does."""
        self._oldest_ns = 0
        """When the oldest packet became the oldest, or was sent again."""
        self._waits = False
        """Whether it waits because the host has no window for it."""

    def stop(self) -> None:
        """The QP has ended: send nothing more."""
        freed = self._under_way
        super().stop()
        self._arrived.clear()
        self._resend = self._edge = self._high
        self._release(freed)

    @property
    def _under_way(self) -> int:
        return self._high - self._una - len(self._arrived)

    def _release(self, packets: int) -> None:
        """These packets are under way no longer; those that were given up go first."""
        given_up = min(packets, self._given_up)
        self._given_up -= given_up
        self._context.release(packets - given_up)

    def _give_up(self) -> None:
        """The peer is silent: what is under way there must not keep the host's window from other QPs."""
        packets, self._given_up = self._under_way - self._given_up, self._under_way
        self._context.release(packets)

    # --- sending ---

    def wake(self) -> None:
        """Enter the endpoint's queue if there is something to send, or the queue of those that wait for the window."""
        self._waits = False
        super().wake()

    def can_send(self) -> bool:
        """Is a packet missing at the peer, or one waiting for which both windows have room?"""
        if self._missing() < self._edge:
            return True
        context = self._context
        if self._high - self._una >= context.psn_range or not self._outbox.has_packet():
            return False
        if self._given_up or context.in_flight < context.window:
            return True
        if not self._waits:
            self._waits = True
            context.waiting.append(self)
        return False

    def _missing(self) -> int:
        """The first packet to send again; `_edge` or more if there is none."""
        seq = max(self._resend, self._una)
        while seq in self._arrived:
            seq += 1
        self._resend = seq
        return seq

    def _take(self) -> int:
        seq = self._missing()
        if seq < self._edge:
            self._resend = seq + 1
            return seq
        if self._given_up:
            self._given_up += 1
        else:
            self._context.in_flight += 1
        return self._high

    def _begin_waiting(self, now_ns: int) -> None:
        super()._begin_waiting(now_ns)
        self._oldest_ns = now_ns
        self._context.timers.arm(self, now_ns + scaled(SHORT_RTO_NS, self._context.t_ns))

    def _ack_comes_late(self, now_ns: int) -> bool:
        """Whether what the peers of all QPs have not acknowledged yet would fill the shared window."""
        context = self._context
        return ACK_EVERY * (len(context.ready) + len(context.waiting)) > SLACK_PACKETS or (
            super()._ack_comes_late(now_ns)
        )

    def _reth(self, message: Message, offset: int) -> tuple[int, int, int] | None:
        return message.address + offset, message.rkey, len(message.data)

    # --- hearing ---

    def _acknowledge(self, seq: int, arrival_ns: int, now_ns: int) -> None:
        before = self._under_way
        if self._arrived:
            self._arrived = {arrived for arrived in self._arrived if arrived > seq}
        self._oldest_ns = now_ns
        # The window is released below, when `_una` has moved.
        super()._acknowledge(seq, arrival_ns, now_ns)
        self._release(before - self._under_way)

    def _tells_news(self, syndrome: int, named: int) -> bool:
        """It names a packet that arrived, which an ACK sent meanwhile does not say of those above its own."""
        return syndrome == wire.SYNDROME_NAK_SEQUENCE and self._is_new(unwrap(named, self._initial_psn, self._una))

    def _is_new(self, seq: int) -> bool:
        """Is it under way, as far as known until now?"""
        return self._una < seq < self._high and seq not in self._arrived

    def _on_gap(self, named: int, now_ns: int) -> None:
        seq = unwrap(named, self._initial_psn, self._una)
        if not self._is_new(seq):
            return
        if seq >= self._edge:
            self.lost_packets += seq - max(self._edge, self._una)
            self._edge = seq + 1
        self._note_arrival(seq, now_ns)

    def _note_arrival(self, seq: int, now_ns: int) -> None:
        """This one above the oldest has come."""
        self._arrived.add(seq)
        self._progress(now_ns)
        self._release(1)
        self.wake()

    # --- time ---

    def on_timer(self, now_ns: int) -> int:
        """Both timeouts: that of one packet, and that of the QP."""
        when_ns = super().on_timer(now_ns)
        if when_ns == NEVER:
            return NEVER
        t_ns = self._context.t_ns
        short_ns = self._oldest_ns + scaled(SHORT_RTO_NS, t_ns)
        long_ns = self._oldest_ns + scaled(LONG_RTO_NS, t_ns)
        due_ns = short_ns if self._under_way < FEW_PACKETS else long_ns
        if now_ns >= due_ns:
            self._context.counters.resend_timeouts += 1
            if now_ns >= self._since_ns + scaled(LONG_RTO_NS, t_ns):
                self._give_up()
            self._resend_missing(now_ns)
            return min(when_ns, now_ns + scaled(SHORT_RTO_NS, t_ns))
        return min(when_ns, short_ns if now_ns < short_ns else long_ns)

    def _resend_all(self, now_ns: int) -> None:
        self._give_up()
        self._resend_missing(now_ns)

    def _resend_missing(self, now_ns: int) -> None:
        """Send what is missing once more: below the highest that arrived, or everything."""
        if not self._arrived:
            self._edge = self._high
        self.lost_packets += self._edge - self._una - len(self._arrived)
        self._resend = self._una
        self._oldest_ns = now_ns
        self._timed_seq = NEVER
        self.wake()
