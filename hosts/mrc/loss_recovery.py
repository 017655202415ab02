"""What a sender has under way, what it does about what is lost, and when it looks at that."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.base import DataSender
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.messages import Outbox
from mrc_testbed.hosts.common.stalls import StallWatch, least_stall_ns
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.cc.nscc import Nscc
from mrc_testbed.hosts.mrc.config import MPR_UNIT, QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.inflight import LOST, Inflight
from mrc_testbed.hosts.mrc.peer import Peer
from mrc_testbed.hosts.mrc.reasons import BLAMES_PATH, TRIMS, LossReason
from mrc_testbed.hosts.mrc.retry import RetryCounter
from mrc_testbed.hosts.mrc.tail import TailProbe
from mrc_testbed.hosts.mrc.timing import COUNTED_HEADER_BYTES, MAX_TIMEOUT, TIMER_UNIT_NS

PATIENCE_NS = 60 * 10**9
"""How long a QP waits for a first answer of a peer that may not be ready, before it counts tries."""
LOOKS = 16
"""Most searches for expired packets in one timeout: as a burst was sent, so it would expire packet by packet."""


class LossRecovery(DataSender):
    """What one QP has under way to its peer. `ready` says whether it is in the endpoint's queue."""

    __slots__ = (
        "_answered",
        "_cc",
        "_context",
        "_fail",
        "_least_rto_ns",
        "_look_at",
        "_lost",
        "_nscc",
        "_outbox",
        "_packet_bytes",
        "_payload_bytes",
        "_psn_range",
        "_quiet_since",
        "_retry",
        "_tail",
        "_timeout_at",
        "flight",
        "peer",
        "wake_ns",
    )

    def __init__(
        self,
        context: Context,
        peer: Peer,
        local: QpAttributes,
        remote: QpAttributes,
        peer_is_ready: bool,
        fail: Callable[[QpFailure], None],
    ) -> None:
        """`peer_is_ready`: the peer's QP is known to be in RTR. Else nothing is held against a path or the peer until
        it has answered once, for PATIENCE_NS at most: what it does not know yet it drops."""
        config = context.config
        self._context = context
        self.peer = peer
        self.qpn = local.qpn
        self._payload_bytes = min(local.mtu, remote.mtu)
        self._packet_bytes = self._payload_bytes + wire.DATA_HEADER_BYTES + bth.ICRC_BYTES + COUNTED_HEADER_BYTES
        self._psn_range = remote.mpr * MPR_UNIT
        self._outbox = Outbox(remote.max_wimm)
        self._fail = fail
        self._cc = context.choices.make_control(config.congestion_control, peer.timing)
        self._nscc = self._cc if type(self._cc) is Nscc else None
        """The congestion control, if it is ours: machine code reads it without a search for the name."""
        self.flight = Inflight(self._psn_range, peer.paths)
        self._lost: list[int] = []
        """Heap of sequence numbers taken for lost; entries acknowledged since are passed over."""
        self._retry = RetryCounter(local.linear, local.exp)
        self._least_rto_ns = TIMER_UNIT_NS << min(local.timeout, MAX_TIMEOUT) if local.timeout else 0
        self._answered = peer_is_ready
        self._tail = TailProbe(context, peer, local.qpn, remote.qpn)
        self._quiet_since = 0
        """When the last packet was sent or heard."""
        self._timeout_at = NEVER
        self._look_at = NEVER
        """When to look whether the timer would come before the answer to the next probe."""
        self.lost_packets = 0
        self.silence = StallWatch(local.qpn, peer.number, least_stall_ns(config.rtt_ns, config.swift), context.events)
        self.ready = False
        self.wake_ns = NEVER

    # --- room to send ---

    def wake(self) -> None:
        """Enter the endpoint's queue if there is something to send and room to send it."""
        if not self.ready and self._can_send():
            self._context.make_ready(self)

    def _can_send(self) -> bool:
        flight = self.flight
        if flight.bytes:
            nscc = self._nscc
            window = self._window_of_plugin() if nscc is None else nscc.window
            if flight.bytes + self._packet_bytes > window:
                return False
        if flight.lost:
            return self._oldest_lost() - flight.una < self._psn_range
        return flight.next - flight.una < self._psn_range and self._outbox.has_packet()

    def _oldest_lost(self) -> int:
        """The first packet to be sent again; there is one. It waits where the peer has made its PSN range shorter."""
        flight, lost = self.flight, self._lost
        while flight.at(lost[0]).state != LOST or lost[0] < flight.una:
            heappop(lost)
        return lost[0]

    def _window_of_plugin(self) -> float:
        control: Any = self._cc  # the window of a plugin may be a float, which machine code would not take for int
        return float(control.window)

    # --- losses ---

    def _lose(self, seq: int, reason: LossReason, now_ns: int) -> None:
        flight = self.flight
        sent = flight.at(seq)
        flight.lose(seq, reason)
        heappush(self._lost, seq)
        self.lost_packets += 1
        self._context.counters.lost[reason] += 1
        if reason in BLAMES_PATH and self._answered:
            self._cc.on_loss(sent.size)
            self.peer.lose(sent.path, reason, sent.sent_ns, now_ns)
        elif reason in TRIMS:
            self.peer.timing.note_trim(now_ns)
            self._cc.on_trim(sent.size, flight.bytes, now_ns)
            if reason is LossReason.TRIMMED:
                self.peer.congest(sent.path, True, sent.sent_ns, now_ns)

    def abandon(self, plane: int, now_ns: int) -> None:
        """The plane lost a port: all that is under way on it goes again, at once and elsewhere."""
        for seq in self.flight.on_plane(plane):
            self._lose(seq, LossReason.PORT_DOWN, now_ns)
        self.wake()

    def stop(self) -> None:
        """The QP failed: send nothing more, not even what is under way when a port falls later."""
        self._outbox.clear()
        self.flight.forget()
        self._lost.clear()

    # --- time ---

    def _begin_work(self, now_ns: int) -> None:
        if self.silence.since_ns == NEVER:
            self.silence.posted(now_ns)
            self._retry.begin(now_ns)

    def _start_timers(self, now_ns: int) -> None:
        if self._timeout_at == NEVER:
            self._timeout_at = now_ns + self._rto_ns()
            self._look_at = self._timeout_at - self.peer.timing.answer_ns()
        self._context.timers.arm(self, now_ns + self.peer.timing.silence_ns(False))

    def _rto_ns(self) -> int:
        """What the path needs, or the program's own if that is longer."""
        return max(self.peer.timing.rto_ns(), self._least_rto_ns)

    def resume(self, now_ns: int) -> None:
        """A plane can be used again. What is under way, if it leaves no room to send, is asked for at once."""
        self.wake()
        if not self.ready and not self._outbox.idle():
            self._context.timers.arm(self, now_ns)

    def on_timer(self, now_ns: int) -> int:
        """Retransmission timeout and reliability probe; returns when to look again."""
        if self._outbox.idle():
            self._timeout_at = NEVER
            return NEVER
        if now_ns >= self._timeout_at:
            self._time_out(now_ns)
        if not self.peer.evs.paths or self._outbox.idle():
            return self._timeout_at
        may_send = self.ready or self._can_send()
        if now_ns >= self._tail.due_at(self._quiet_since, may_send):
            self._tail.send(self.flight.oldest_path(), now_ns)
        elif now_ns >= self._look_at:
            self._forestall(now_ns)
        return min(self._timeout_at, self._look_at, self._tail.due_at(self._quiet_since, may_send))

    def _forestall(self, now_ns: int) -> None:
        """Ask, if the timer of the packet that waits longest would come before the answer to a later probe, and it is
        so old that the answer says whether it is lost. Looks at every packet, once in some T."""
        timing = self.peer.timing
        answer_ns = timing.answer_ns()
        _, oldest = self.flight.sent_before(0)
        since = now_ns if oldest is None else oldest
        ask_at = since + max(timing.rto_ns() - answer_ns, timing.late_ns())
        self._look_at = ask_at if ask_at > now_ns else now_ns + answer_ns
        if ask_at <= now_ns and not self._tail.asked_since(now_ns - answer_ns):
            self._tail.ask(now_ns)

    def _time_out(self, now_ns: int) -> None:
        """Let go of what has expired, count the try if one ends, and say when to look again. Looks at every packet, at
        most LOOKS times in a timeout. The interval of tries doubles, the timer of packets does not: what is on its way
        again waits for the first timeout (readers, of P2), and nothing that is older fills the window."""
        rto, retry = self._rto_ns(), self._retry
        expired, oldest = self.flight.sent_before(now_ns - rto)
        for seq in expired:
            self._lose(seq, LossReason.TIMEOUT, now_ns)
            retry.expired = True
        if now_ns >= retry.ends_ns(rto) and self._gives_up(oldest is not None, now_ns):
            self._timeout_at = NEVER
            self._fail(QpFailure.RETRY_EXCEEDED)
            return
        ends_ns = retry.ends_ns(rto)
        self._timeout_at = (now_ns if oldest is None else oldest) + rto
        if now_ns < ends_ns < self._timeout_at:
            self._timeout_at = ends_ns
        self._timeout_at = max(self._timeout_at, now_ns + rto // LOOKS)
        self.wake()

    def _gives_up(self, outstanding: bool, now_ns: int) -> bool:
        """Nothing was acknowledged for an interval. Count that, unless packets wait for nothing but their turn.

        All may be acknowledged, and yet the peer never says so as a whole: a Transport ACK that does not come, or a
        SACK that was damaged and claimed too much. Or no path is left. Probes answered do not count; only progress
        does. Only refused, it sent each packet again as its NACK came: that is a try, but no timer was waited for.
        """
        if not self._answered:
            self._answered = now_ns - self.silence.since_ns > PATIENCE_NS
            return False
        silent = self._retry.expired or not (outstanding or self.ready) or not self.peer.evs.paths
        self._context.counters.timeouts += silent
        return (silent or self._retry.refused) and self._retry.tried(now_ns)
