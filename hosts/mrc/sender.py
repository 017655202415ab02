"""The requester half of a QP: sends writes, retransmits, completes. Here is what it hears of them."""

from __future__ import annotations

from collections.abc import Callable

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.events import QpFailure, WriteCompleted
from mrc_testbed.hosts.common.psn import STRANGE, signed16, unwrap
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import MPR_UNIT, QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.inflight import OUTSTANDING
from mrc_testbed.hosts.mrc.loss import NEVER_ASKED, SackOrder, inferred
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.peer import Peer
from mrc_testbed.hosts.mrc.reasons import NACK_REASONS, NAK_FAILURES, Ignored
from mrc_testbed.hosts.mrc.sack import MIN_COUNTED_BYTES
from mrc_testbed.hosts.mrc.transmission import Transmission


class Sender(Transmission):
    """Sends one QP's messages (`Transmission`), sends again what is lost (`LossRecovery`), and hears of both."""

    __slots__ = ("_acked_unseen", "_hears_times", "_most_mpr", "_order", "_reinfer", "_rtt_ns")

    def __init__(
        self,
        context: Context,
        peer: Peer,
        local: QpAttributes,
        remote: QpAttributes,
        peer_is_ready: bool,
        fail: Callable[[QpFailure], None],
    ) -> None:
        """As of `LossRecovery`."""
        super().__init__(context, peer, local, remote, peer_is_ready, fail)
        self._hears_times = peer.selection.uses_round_trips
        self._most_mpr = remote.mpr if local.dynamic_mpr and remote.dynamic_mpr else 0
        """Largest PSN range SACKs may set; 0: they may not."""
        self._acked_unseen = 0
        """Bytes that Transport ACKs have acknowledged since the last SACK. A receiver sends the ACK of a message before
        the SACK of its last packet, so that without them congestion control would hear nothing of short messages."""
        self._rtt_ns: int | None = None
        """Of the trigger of the SACK being read, if it is a sample."""
        self._order = SackOrder(max(self._packet_bytes, MIN_COUNTED_BYTES), context.counters)
        self._reinfer = context.config.reinfer

    def _hear_first(self, now_ns: int) -> None:
        """The peer is there. How long it was not is nobody's stall."""
        self._answered = True
        self._retry.begin(now_ns)
        self.silence.since_ns = now_ns

    def _progress(self, now_ns: int) -> None:
        """Something new was acknowledged."""
        if not self._answered:
            self._hear_first(now_ns)
        self._retry.progress(now_ns)
        self.silence.progress(now_ns)

    def on_sack(self, view: memoryview, arrival_ns: int, now_ns: int) -> None:
        """One SACK: what it acknowledges, then what it shows to be lost."""
        bits, flags, offset, entropy, down_mask, mpr, sack_offset, bitmap, echo, out_of_order, received = (
            wire.read_sack(view)
        )
        flight, counters = self.flight, self._context.counters
        mark = flags & wire.SACK_MARK_MASK
        counters.sacks_received += 1
        if mark == wire.SACK_CE_SEEN:
            counters.sacks_with_ce += 1
        cack = unwrap(bits & bth.PSN_MASK, self._initial_psn, flight.una)
        if cack >= flight.next:
            counters.refuse(Ignored.ACKS_UNSENT)
            return
        base = cack + sack_offset
        before, self._rtt_ns = flight.bytes, None
        new_arrivals = flight.acknowledge(cack, base, bitmap)
        asked = NEVER_ASKED
        if flags & wire.SACK_PROBE_ANSWER:
            asked = self._tail.answered(offset)
        else:
            trigger, again = cack + signed16(offset), bits & wire.RETRANSMISSION != 0
            new_arrivals += self._judge_trigger(trigger, again, entropy, mark, echo, arrival_ns, now_ns)
        if new_arrivals:
            self._hear_oldest(arrival_ns, now_ns)
            self._progress(now_ns)
        self._quiet_since = now_ns
        acked, self._acked_unseen = before - flight.bytes + self._acked_unseen, 0
        self._control_window(acked, mark == wire.SACK_CE_SEEN, received >> 24, now_ns)
        # A SACK whose cack is behind what is known cannot be the latest, whatever its counter says.
        if cack + 1 == flight.una and self._order.is_latest(received & 0xFFFFFF, flight):
            if mpr and self._most_mpr:
                self._psn_range = min(mpr, self._most_mpr) * MPR_UNIT
            if down_mask != self.peer.ports.sack_down:
                self.peer.ports.on_sack_mask(down_mask, echo, arrival_ns, now_ns)
            timing, reinfer = self.peer.timing, self._reinfer
            for seq, reason in inferred(flight, cack, base, bitmap, out_of_order, timing, asked, reinfer):
                self._lose(seq, reason, now_ns)
        if not self.ready:
            self.wake()

    def _control_window(self, acked: int, marked: bool, asked: int, now_ns: int) -> None:
        """Let congestion control hear of a SACK: `acked` bytes are not under way any more, `asked` is byte 32."""
        if asked:
            self._cc.on_penalty(asked & wire.PENALTY_MASK, bool(asked & wire.RESTORE_WINDOW), acked)
        self._cc.on_sack(acked, self._rtt_ns, marked, self.flight.bytes, now_ns)

    def _judge_trigger(
        self, seq: int, retransmission: bool, entropy: int, mark: int, echo: int, arrival_ns: int, now_ns: int
    ) -> int:
        """Learn from the packet that caused a SACK; returns 1 if its arrival was not known.

        RTT rule: the echo is a sample when it is clear which attempt it echoes. The RTX bit tells the first attempt
        from the second (UEC 1.0, by its readers), the stamp itself the latest of more.
        """
        flight = self.flight
        if not flight.known(seq):
            return 0
        sent = flight.at(seq)
        sent_ns = sent.sent_ns
        if sent.attempts == retransmission or echo == self._context.stamp(sent_ns):
            self._rtt_ns = self.peer.timing.sample_echo(echo, arrival_ns)
            if self._hears_times:
                self.selection.on_round_trip(sent.path, sent_ns, self._rtt_ns, now_ns)
        new_arrivals = 0
        if seq >= flight.una:
            new_arrivals = flight.acknowledge(flight.una - 1, seq, 1)
        path = self.peer.path_of(entropy)
        if path is not None:
            flight.arrived_by(seq, path, retransmission)
            if mark:
                self._heed(path, mark, sent_ns, now_ns)
            else:
                self.selection.on_arrival(path, sent_ns)
        return new_arrivals

    def _hear_oldest(self, arrival_ns: int, now_ns: int) -> None:
        """Note how long the oldest packet that a SACK made known was under way, if it was sent once. Of four planes in
        turn one may never cause a SACK, and what is late is the oldest."""
        flight = self.flight
        sent_ns = flight.first_acked_sent_ns()
        self.peer.timing.note_arrival(sent_ns, arrival_ns)
        if self._hears_times and sent_ns != NEVER:
            path = flight.at(flight.first_acked).path
            self.selection.on_round_trip(path, sent_ns, arrival_ns - sent_ns, now_ns)

    def _heed(self, path: Path, mark: int, sent_ns: int, now_ns: int) -> None:
        """The m field of a SACK: congestion on the path of its trigger, or worse."""
        if mark == wire.SACK_CE_SEEN:
            self.peer.congest(path, False, sent_ns, now_ns)
        elif mark == wire.SACK_ALWAYS_SKIP:
            self.peer.condemn(path, now_ns)

    def on_ack(self, psn: int, syndrome: int, now_ns: int) -> None:
        """Transport ACK: messages up to `psn` are complete at the peer. Or a NAK, which ends the QP after them."""
        counters = self._context.counters
        counters.acks_received += 1
        flight = self.flight
        covered = unwrap(psn, self._initial_psn, flight.una)
        if syndrome != bth.AETH_ACK and abs(covered - flight.una) < STRANGE:
            counters.naks_received += 1
            if covered < flight.next:
                self._complete(covered, now_ns)
            self._fail(NAK_FAILURES.get(syndrome, QpFailure.REMOTE_OPERATION))
            return
        if covered >= flight.next or syndrome != bth.AETH_ACK:
            counters.refuse(Ignored.ACKS_UNSENT)
            return
        before = flight.bytes
        if flight.acknowledge(covered):
            self._acked_unseen += before - flight.bytes
            self._progress(now_ns)
        self._quiet_since = now_ns
        self._complete(covered, now_ns)
        if self._outbox.idle():
            self.silence.idle()
        self.wake()

    def _complete(self, covered: int, now_ns: int) -> None:
        for message in self._outbox.complete(covered):
            self._context.counters.messages_completed += 1
            self._retry.progress(now_ns)
            self._context.events.append(WriteCompleted(self.qpn, message.wr_id))

    def on_nack(self, bits: int, reason_code: int, entropy: int, now_ns: int) -> None:
        """The peer could not take one packet in: send it again, unless it says that this is hopeless."""
        counters = self._context.counters
        counters.nacks_received += 1
        flight = self.flight
        seq = unwrap(bits & bth.PSN_MASK, self._initial_psn, flight.una)
        if abs(seq - flight.una) >= STRANGE:
            counters.refuse(Ignored.NOT_OUTSTANDING)
            return
        if reason_code == wire.NACK_UNEXP_EVENT:
            self._fail(QpFailure.REMOTE_OPERATION)
            return
        reason = NACK_REASONS.get(reason_code)
        if reason is None:
            counters.refuse(Ignored.UNKNOWN_REASON)
            return
        self._quiet_since = now_ns
        sent = flight.at(seq)
        in_flight = flight.una <= seq < flight.next and sent.state == OUTSTANDING
        if not in_flight or sent.path.ev != entropy:
            counters.refuse(Ignored.NOT_OUTSTANDING)
            return
        if not self._answered:
            self._hear_first(now_ns)
        self._retry.refused = True
        self._lose(seq, reason, now_ns)
        self.wake()
