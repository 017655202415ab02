"""The requester half of a QP: sends writes, retransmits, completes."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.base import DataSender, Packet
from mrc_testbed.hosts.common.events import QpFailure, WriteCompleted
from mrc_testbed.hosts.common.memory import ReadableMemory
from mrc_testbed.hosts.common.messages import Message, Outbox
from mrc_testbed.hosts.common.psn import STRANGE, signed16, unwrap
from mrc_testbed.hosts.common.stalls import StallWatch, least_stall_ns
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.cc.nscc import Nscc
from mrc_testbed.hosts.mrc.config import MPR_UNIT, QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE
from mrc_testbed.hosts.mrc.evselect.rotation import Rotation
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.inflight import LOST, OUTSTANDING, Inflight
from mrc_testbed.hosts.mrc.loss import NEVER_ASKED, SackOrder, inferred
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.peer import Peer
from mrc_testbed.hosts.mrc.reasons import BLAMES_PATH, NACK_REASONS, NAK_FAILURES, TRIMS, Ignored, LossReason
from mrc_testbed.hosts.mrc.retry import RetryCounter
from mrc_testbed.hosts.mrc.sack import MIN_COUNTED_BYTES
from mrc_testbed.hosts.mrc.tail import TailProbe
from mrc_testbed.hosts.mrc.timing import COUNTED_HEADER_BYTES, MAX_TIMEOUT, TIMER_UNIT_NS

GOOD = EvState.GOOD
PATIENCE_NS = 60 * 10**9
"""How long a QP waits for a first answer of a peer that may not be ready, before it counts tries."""
LOOKS = 16
"""Most searches for expired packets in one timeout: as a burst was sent, so it would expire packet by packet."""


class Sender(DataSender):
    """Sends one QP's messages over its peer's paths. `ready` says whether it is in the endpoint's queue."""

    __slots__ = (
        "_acked_unseen",
        "_answered",
        "_cc",
        "_context",
        "_fail",
        "_hears_times",
        "_initial_psn",
        "_least_rto_ns",
        "_look_at",
        "_lost",
        "_most_mpr",
        "_nscc",
        "_order",
        "_outbox",
        "_packet_bytes",
        "_payload_bytes",
        "_psn_range",
        "_quiet_since",
        "_reinfer",
        "_remote_qpn",
        "_retry",
        "_rkey",
        "_rotation",
        "_rtt_ns",
        "_stamp_shift",
        "_tail",
        "_timeout_at",
        "_ts_field",
        "flight",
        "peer",
        "selection",
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
        self.selection = peer.selection
        self._rotation: Rotation | None = peer.selection if isinstance(peer.selection, Rotation) else None
        """The selection, if it is one of ours: machine code reads it without a search for the name."""
        self._hears_times = peer.selection.uses_round_trips
        self.qpn = local.qpn
        self._initial_psn = local.psn
        self._remote_qpn = remote.qpn
        self._rkey = remote.rkey
        self._payload_bytes = min(local.mtu, remote.mtu)
        self._packet_bytes = self._payload_bytes + wire.DATA_HEADER_BYTES + bth.ICRC_BYTES + COUNTED_HEADER_BYTES
        self._psn_range = remote.mpr * MPR_UNIT
        self._most_mpr = remote.mpr if local.dynamic_mpr and remote.dynamic_mpr else 0
        """Largest PSN range SACKs may set; 0: they may not."""
        self._outbox = Outbox(remote.max_wimm)
        self._fail = fail
        self._cc = context.choices.make_control(config.congestion_control, peer.timing)
        self._nscc = self._cc if type(self._cc) is Nscc else None
        """As `_rotation`."""
        self._acked_unseen = 0
        """Bytes that Transport ACKs have acknowledged since the last SACK. A receiver sends the ACK of a message before
        the SACK of its last packet, so that without them congestion control would hear nothing of short messages."""
        self._rtt_ns: int | None = None
        """Of the trigger of the SACK being read, if it is a sample."""
        self.flight = Inflight(self._psn_range, peer.paths)
        self._lost: list[int] = []
        """Heap of sequence numbers taken for lost; entries acknowledged since are passed over."""
        self._order = SackOrder(max(self._packet_bytes, MIN_COUNTED_BYTES), context.counters)
        self._reinfer = config.reinfer
        self._stamp_shift, self._ts_field = config.stamp_shift, config.ts_field
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
        self.silence = StallWatch(local.qpn, peer.number, least_stall_ns(config.rtt_ns, config.speed), context.events)
        self.ready = False
        self.wake_ns = NEVER

    # --- application ---

    def post(self, data: ReadableMemory, address: int, wr_id: int, immediate: int | None, rkey: int | None) -> None:
        """Queue one write; without `rkey` into the peer's own region."""
        key = self._rkey if rkey is None else rkey
        self._outbox.post(Message(data, address, key, wr_id, immediate, self._payload_bytes))
        self._context.counters.messages_posted += 1
        self._cc.begin()
        self.wake()

    def stop(self) -> None:
        """The QP failed: send nothing more, not even what is under way when a port falls later."""
        self._outbox.clear()
        self.flight.forget()
        self._lost.clear()

    def abandon(self, plane: int, now_ns: int) -> None:
        """The plane lost a port: all that is under way on it goes again, at once and elsewhere."""
        for seq in self.flight.on_plane(plane):
            self._lose(seq, LossReason.PORT_DOWN, now_ns)
        self.wake()

    # --- sending ---

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
            return True
        return flight.next - flight.una < self._psn_range and self._outbox.has_packet()

    def _window_of_plugin(self) -> float:
        control: Any = self._cc  # the window of a plugin may be a float, which machine code would not take for int
        return float(control.window)

    def _take(self, avoid: Path | None = None) -> Path:
        """The path whose turn it is."""
        return self.selection.take(avoid) if self._rotation is None else self._rotation.take(avoid)

    def stalled(self, now_ns: int) -> None:
        """No plane is usable: time, and with it the retry counter, goes on all the same."""
        self.ready = False
        self._begin_work(now_ns)
        self._start_timers(now_ns)

    def resume(self, now_ns: int) -> None:
        """A plane can be used again. What is under way, if it leaves no room to send, is asked for at once."""
        self.wake()
        if not self.ready and not self._outbox.idle():
            self._context.timers.arm(self, now_ns)

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

    def may_send_at(self, now_ns: int) -> int:
        """When the plane whose turn it is has tokens; NEVER where none can be used."""
        plane = self.selection.turn if self._rotation is None else self._rotation.turn
        if plane == NO_PLANE:
            self.stalled(now_ns)
            return NEVER
        return self._context.pacer.ready_at(plane)

    @property
    def sent_packets(self) -> int:
        """As of `DataSender`."""
        return self.flight.next

    def transmit(self, now_ns: int, buffer: memoryview) -> Packet | None:
        """Write the next packet on the path whose turn it is: (size, token, traffic class). None: nothing to send.

        Leaves `ready` saying whether another may follow at once; the last one that may asks for a SACK (A bit).
        """
        if not self._can_send():
            self.ready = False
            return None
        flight = self.flight
        if flight.lost:
            seq = self._resend(now_ns)
            bits, traffic_class = wire.TIMESTAMP | wire.RETRANSMISSION, self._context.retransmission_class
        else:
            seq = self._send_new(now_ns)
            bits, traffic_class = wire.TIMESTAMP, self._context.data_class
        self.ready = self._can_send()
        if not self.ready:
            bits |= bth.ACK_REQUEST
        sent = flight.at(seq)
        path = sent.path
        size = self._emit(buffer, sent.message, seq, bits, now_ns)
        if not size:
            self._fail(QpFailure.LOCAL_PROTECTION)
            self.ready = False
            return None
        self._account(path, size, now_ns)
        return size, path.token, traffic_class

    def _send_new(self, now_ns: int) -> int:
        flight = self.flight
        seq = flight.next
        message = self._outbox.next_packet(seq)
        missing = (seq - message.first + 1) * self._payload_bytes - len(message.data)
        size = self._packet_bytes - missing if missing > 0 else self._packet_bytes
        flight.send(message, size, self._take(), now_ns)
        self._begin_work(now_ns)
        return seq

    def _resend(self, now_ns: int) -> int:
        """Oldest gap first, on another EV than the attempt that was lost."""
        flight = self.flight
        seq = heappop(self._lost)
        while (sent := flight.at(seq)).state != LOST or seq < flight.una:
            seq = heappop(self._lost)
        flight.send_again(seq, self._take(sent.path), now_ns)
        counters = self._context.counters
        counters.retransmitted += 1
        counters.retransmitted_for[sent.reason] += 1
        return seq

    def _emit(self, buffer: memoryview, message: Message, seq: int, bits: int, now_ns: int) -> int:
        """The packet's size; 0 if its payload cannot be read, for then nothing must be sent."""
        index = seq - message.first
        offset = index * self._payload_bytes
        payload = message.data[offset : offset + self._payload_bytes]
        if len(payload) != self._payload_bytes and offset + len(payload) != len(message.data):
            return 0
        context = self._context
        context.counters.bytes_sent += len(payload)
        if context.lends:
            context.lent = payload if message.fixed else memoryview(bytes(payload))
        return wire.emit_data(
            buffer,
            message.opcode(index),
            self._remote_qpn,
            bits | self._initial_psn + seq & bth.PSN_MASK,
            message.rqmsn,
            message.msn,
            now_ns >> self._stamp_shift & 0xFFFF,
            message.address + offset,
            message.rkey,
            len(message.data),
            payload,
            message.immediate if index == message.last_index else None,
            self._ts_field,
            context.lends,
        )

    def _account(self, path: Path, size: int, now_ns: int) -> None:
        path.sent += 1
        path.last_tx_ns = now_ns
        counters = self._context.counters
        counters.data_sent += 1
        if path.state is not GOOD:
            if path.state is EvState.SKIP:
                counters.data_on_skip_ev += 1
            else:
                counters.data_on_bad_ev += 1
        self._context.pacer.charge(path.plane, size, now_ns)
        self._quiet_since = now_ns
        if self.wake_ns == NEVER or self._timeout_at == NEVER:
            self._start_timers(now_ns)

    # --- hearing ---

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

    # --- time ---

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
