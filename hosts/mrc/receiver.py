"""The responder half of a QP: places packets, tracks what has come, says so."""

from __future__ import annotations

from collections.abc import Callable

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpFailure
from mrc_testbed.hosts.common.memory import Domain
from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.common.psn import HALF, MASK
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import MPR_UNIT, QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.incast import Inflow
from mrc_testbed.hosts.mrc.peer import Peer
from mrc_testbed.hosts.mrc.reasons import REFUSALS, Ignored
from mrc_testbed.hosts.mrc.sack import BITMAP_MASK, MIN_COUNTED_BYTES, SackWindow, pieces

SACK_PACKETS = 4
"""A SACK for every 4 full packets' worth of bytes (ours: htsim's 16 KiB are as many packets)."""
ANY_NUMBER = 1 << 62
"""Receives of a QP whose application posts none."""
ACK_EVERY = 64
"""A Transport ACK at least every 64 PSNs (ours)."""
OLDEST_DUPLICATE = -(1 << 15)
"""Below this a PSN is not a late duplicate but nonsense; a SACK has no room to name it (16-bit signed offset)."""
_ASKS_FOR_SACK = bth.ACK_REQUEST | wire.RETRANSMISSION


class Receiver:
    """Takes in one QP's packets in any order. Sequence numbers as in `mrc_testbed.hosts.common.psn`."""

    __slots__ = (
        "_ack_queued",
        "_acked",
        "_base",
        "_completed_msn",
        "_context",
        "_counters",
        "_domain",
        "_dynamic_mpr",
        "_ends",
        "_expected",
        "_fail",
        "_heard",
        "_inflow",
        "_initial_psn",
        "_max_wimm",
        "_mpr",
        "_next_rqmsn",
        "_peer",
        "_pending_since",
        "_psn_range",
        "_qpn",
        "_received",
        "_received_bytes",
        "_region",
        "_region_bytes",
        "_remote_qpn",
        "_rkey",
        "_sack_bytes",
        "_since_sack",
        "_stash",
        "_trim_nack",
        "_window",
        "placed",
        "receives",
        "remote_cid",
        "wake_ns",
    )

    def __init__(
        self,
        context: Context,
        peer: Peer,
        local: QpAttributes,
        remote: QpAttributes,
        region: memoryview,
        domain: Domain,
        fail: Callable[[QpFailure], None],
    ) -> None:
        self._context = context
        self._counters = context.counters
        self._fail = fail
        self._peer = peer
        self._qpn = local.qpn
        self._remote_qpn = remote.qpn
        self.remote_cid = remote.qpn & 0xFFFF
        """As much of the peer's QPN as its answers and probes name."""
        self._initial_psn = remote.psn
        self._region = region
        self._region_bytes = len(region)
        self._base = local.region_address
        self._rkey = local.rkey
        self._domain = domain
        self.receives = ANY_NUMBER
        """How many more immediates may be delivered."""
        self._psn_range = local.mpr * MPR_UNIT
        self._dynamic_mpr = local.dynamic_mpr and remote.dynamic_mpr
        self._mpr = 0
        """What SACKs say of the PSN range, 0: no change."""
        self.limit(context.config.dynamic_mpr)
        self._max_wimm = local.max_wimm
        self._trim_nack = local.trim_nack
        self._sack_bytes = SACK_PACKETS * max(min(local.mtu, remote.mtu), MIN_COUNTED_BYTES)
        self._expected = 0
        """First sequence number not received."""
        self._received = 0
        """Bit i: expected + i is received (bit 0 never is)."""
        self._received_bytes = 0
        self._ends: dict[int, int] = {}
        """Received last packets of messages at or above expected: sequence number -> MSN."""
        self._stash: dict[int, tuple[int, int, int, int]] = {}
        """Immediates not delivered yet: RQMSN -> (sequence number, immediate, MSN, bytes of the message)."""
        self._next_rqmsn = 0
        self._completed_msn = 0
        self._acked = 0
        """expected when the last Transport ACK was queued."""
        self._ack_queued = False
        self._since_sack = 0
        """Counted bytes no SACK has reported."""
        self._pending_since = 0
        self._heard = (0, 0, 0, 0, 0)
        """Of the last new packet: sequence number, EV, timestamp, bits and PSN, arrival."""
        self._window = SackWindow()
        self._inflow = Inflow()
        self.placed = PlacedBytes()
        self.wake_ns = NEVER

    # --- data ---

    def on_data(
        self,
        view: memoryview,
        payload: memoryview | None,
        entropy: int,
        ce_seen: bool,
        arrival_ns: int,
        now_ns: int,
    ) -> None:
        """One data packet: all of it, or its headers with `payload` beside them. `entropy` is its EV."""
        opcode, pad, bits, rqmsn, msn, timestamp, address, rkey, length = wire.read_data(view)
        expected = self._expected
        offset = ((bits - self._initial_psn - expected + HALF) & MASK) - HALF
        if offset < OLDEST_DUPLICATE:
            self._counters.refuse(Ignored.PSN_WINDOW)
            return
        seq = expected + offset
        from_here = self._received >> offset if offset >= 0 else 1
        if from_here & 1:
            self._counters.duplicates += 1
            if self._psn_range:
                self._queue_sack(seq, entropy, timestamp, bits & wire.RETRANSMISSION, ce_seen, False)
            else:
                self._queue_ack(entropy)
            return
        if offset >= self._psn_range:
            self._refuse_new(bits, timestamp, entropy)
            return
        if payload is None:
            start, end = wire.payload_bounds(len(view), opcode, pad, bits)
            payload = view[start:end]
        wrong = self._place(payload, address, rkey, length)
        if wrong is None and opcode in bth.ENDS_MESSAGE:
            wrong = self._note_end(view, opcode, rqmsn, msn, seq, length)
        if wrong is not None:
            self._nak(wrong, entropy)
            return
        if from_here and not bits & wire.RETRANSMISSION:
            self._counters.reordered += 1
        if self._track(offset, entropy):
            self._report(len(payload), seq, bits, timestamp, entropy, ce_seen, arrival_ns, now_ns)

    def _refuse_new(self, bits: int, timestamp: int, entropy: int) -> None:
        """A packet beyond the PSN range, or any new one of a QP that is being closed; that is not answered."""
        if self._psn_range:
            self._counters.refuse(Ignored.PSN_WINDOW)
            self._queue_nack(bits, timestamp, wire.NACK_PSN_OOR_WINDOW, entropy)
        else:
            self._counters.refuse(Ignored.QP_STATE)

    def _place(self, payload: memoryview, address: int, rkey: int, length: int) -> Ignored | None:
        """Put a payload where it belongs, or say what is wrong with that. A write of nothing needs no rkey (InfiniBand
        1.4, C9-88)."""
        at = address - self._base
        stop = at + len(payload)
        if len(payload) > length:
            return Ignored.LONGER_THAN_LENGTH
        if not length:
            return None
        if rkey == self._rkey and at >= 0 and stop <= self._region_bytes:
            self._region[at:stop] = payload
            return None
        memory = self._domain.find(rkey, address, len(payload))
        if memory is None:
            return Ignored.REMOTE_ACCESS
        return None if memory.write(address, payload) else Ignored.OWN_MEMORY

    def _note_end(self, view: memoryview, opcode: int, rqmsn: int, msn: int, seq: int, length: int) -> Ignored | None:
        """Remember the end of a message and its immediate, or say what is wrong with it."""
        if opcode in bth.HAS_IMMEDIATE:
            if (rqmsn - self._next_rqmsn) & 0xFFFF >= self._max_wimm:
                return Ignored.TOO_MANY_WIMM
            if rqmsn in self._stash:
                return Ignored.RQMSN_TWICE
            self._counters.immediates += 1
            self._stash[rqmsn] = seq, wire.parse_immediate(view), msn, length
        self._ends[seq] = msn
        return None

    def _track(self, offset: int, entropy: int) -> bool:
        """Mark a packet received; what it makes whole is delivered and acknowledged. False: that ended the QP."""
        if offset or self._received:
            self._received |= 1 << offset
            if offset:
                return True
            run = (~self._received & (self._received + 1)).bit_length() - 1
            self._received >>= run
        else:
            run = 1
        old = self._expected
        self._expected = old + run
        whole = False
        if self._ends:
            for seq in range(old, old + run):
                msn = self._ends.pop(seq, None)
                if msn is not None:
                    self._completed_msn = msn
                    whole = True
        if whole and not self._deliver():
            self._nak(Ignored.NO_RECEIVE, entropy)
            return False
        if whole or self._expected - self._acked >= ACK_EVERY:
            self._queue_ack(entropy)
        return True

    def _deliver(self) -> bool:
        """Hand over immediates in the order they were sent, as far as everything before them is whole. False if there
        is no receive for the next one: no answer acknowledges its message, even one that was queued before."""
        counters = self._counters
        while self._stash:
            entry = self._stash.get(self._next_rqmsn)
            if entry is None or entry[0] >= self._expected:
                return True
            if not self.receives:
                self._expected, self._received = entry[0], 0
                self._completed_msn = entry[2] - 1 & 0xFFFF
                return False
            self.receives -= 1
            del self._stash[self._next_rqmsn]
            self._next_rqmsn = self._next_rqmsn + 1 & 0xFFFF
            counters.wimm_delivered += 1
            self._context.events.append(ImmediateDelivered(self._qpn, entry[1], entry[2], entry[3]))
        return True

    def _report(
        self,
        placed: int,
        seq: int,
        bits: int,
        timestamp: int,
        entropy: int,
        ce_seen: bool,
        arrival_ns: int,
        now_ns: int,
    ) -> None:
        """Count one new packet and see whether a SACK is due (triggers: spec 7.5.2, by its readers)."""
        counted = placed if placed > MIN_COUNTED_BYTES else MIN_COUNTED_BYTES
        self._received_bytes += counted
        self._counters.data_received += 1
        self._counters.bytes_delivered += placed
        self.placed.note(placed, arrival_ns)
        if not self._since_sack:
            self._pending_since = now_ns
            if self.wake_ns == NEVER:
                self._context.timers.arm(self, now_ns + self._peer.timing.delayed_sack_ns)
        self._since_sack += counted
        if self._since_sack >= self._sack_bytes or bits & _ASKS_FOR_SACK or ce_seen:
            in_turn = self._since_sack >= self._sack_bytes and not bits & bth.ACK_REQUEST
            timed = bits & wire.TIMESTAMP and not ce_seen
            excess = self._peer.one_way.excess(timestamp, arrival_ns) if timed else 0
            self._context.incast.note(self._inflow, self._received_bytes, excess, now_ns)
            self._queue_sack(seq, entropy, timestamp, bits & wire.RETRANSMISSION, ce_seen, in_turn)
        else:
            self._heard = seq, entropy, timestamp, bits, arrival_ns

    def on_trimmed(self, view: memoryview, entropy: int, last_hop: bool) -> None:
        """A switch cut the payload off, perhaps RETH too: ask for the packet again at once, unless it has come."""
        bits, timestamp = wire.read_trimmed(view)
        offset = ((bits - self._initial_psn - self._expected + HALF) & MASK) - HALF
        self._counters.trimmed_received += 1
        if self._trim_nack and offset >= 0 and not self._received >> offset & 1:
            self._queue_nack(bits, timestamp, wire.NACK_TRIMMED_LASTHOP if last_hop else wire.NACK_TRIMMED, entropy)

    def limit(self, mpr: int) -> None:
        """Ask the peer, in every SACK from now on, for a PSN range of `mpr`. More is taken in all the same."""
        if self._dynamic_mpr:
            self._mpr = min(mpr, self._psn_range // MPR_UNIT)

    def on_probe(self, probe_id: int, timestamp: int, entropy: int, now_ns: int) -> None:
        """Reliability probe: tell all there is to tell, by the path it came by.

        The peer asks because it hears nothing, so perhaps the EVs of the way back are dead: they are not trusted with
        this answer, and are looked after. It has as many SACKs as its bitmap needs: with one of 64 bits of 90, what
        the others had to say was left to the retransmission timer, for a peer whose window is full of it sends nothing.
        """
        path = self._peer.answer_path(entropy >> 16, 0)
        for start in pieces(self._received) if self._psn_range else ():
            arguments = (probe_id, start, entropy, timestamp)
            self._context.send_control(path, self._emit_probe_answer, arguments)
        self._context.send_control(path, self._emit_ack, ())
        self._acked = self._expected
        self._peer.reverse.keep_alive(now_ns)

    def on_timer(self, now_ns: int) -> int:
        """Delayed SACK: what has come must not stay unreported for longer than T/4. And the way back is kept."""
        self._peer.reverse.keep_alive(now_ns)
        if not self._since_sack:
            return NEVER
        due = self._pending_since + self._peer.timing.delayed_sack_ns
        if now_ns < due:
            return due
        seq, entropy, timestamp, bits, arrival_ns = self._heard
        if bits & wire.TIMESTAMP:
            # The echo is moved on by the time it was held back, or the wait would look like a slow path.
            timestamp = timestamp + (now_ns - arrival_ns >> self._context.config.stamp_shift) & 0xFFFF
        self._queue_sack(seq, entropy, timestamp, bits & wire.RETRANSMISSION, False, False)
        return NEVER

    def close(self) -> None:
        """Take nothing new, and go on to acknowledge what is whole. No SACK shows from now on that what is new is
        missing: its sender would think that it got lost, and send it again without end."""
        self._psn_range = 0
        self._since_sack = 0
        self._trim_nack = False

    def stop(self) -> None:
        """The QP has ended: report nothing more."""
        self._since_sack = 0
        self._context.incast.forget(self._inflow)

    # --- answers ---

    def _queue(self, entropy: int, emit: Callable[..., int], arguments: tuple[int, ...]) -> bool:
        return self._context.send_control(self._peer.reverse.path(entropy >> 16), emit, arguments)

    def _queue_sack(
        self, seq: int, entropy: int, timestamp: int, retransmission: int, ce_seen: bool, in_turn: bool
    ) -> None:
        """`in_turn`: one of many, so the planes take turns. Else it may be the last for long, and goes back on the path
        of its packet, which works: lost on a plane that has just died, it would cost a timeout and blame good EVs.
        """
        self._since_sack = 0
        flags = wire.SACK_CE_SEEN if ce_seen else 0
        peer, label = self._peer, entropy >> 16
        path = peer.reverse.path(label) if in_turn else peer.answer_path(label, 0)
        self._context.send_control(path, self._emit_sack, (seq, entropy, timestamp, flags, retransmission))

    def _emit_sack(
        self,
        buffer: memoryview,
        now_ns: int,
        seq: int,
        entropy: int,
        timestamp: int,
        flags: int,
        retransmission: int,
    ) -> int:
        trigger = seq - self._expected
        start = self._window.begin(self._received, trigger)
        return self._write_sack(buffer, start, trigger + 1, entropy, timestamp, flags, retransmission)

    def _emit_probe_answer(
        self, buffer: memoryview, now_ns: int, probe_id: int, start: int, entropy: int, timestamp: int
    ) -> int:
        return self._write_sack(buffer, start, probe_id, entropy, timestamp, wire.SACK_PROBE_ANSWER, 0)

    def _write_sack(
        self,
        buffer: memoryview,
        start: int,
        offset: int,
        entropy: int,
        timestamp: int,
        flags: int,
        retransmission: int,
    ) -> int:
        self._counters.sacks_sent += 1
        return wire.emit_sack(
            buffer,
            self._remote_qpn,
            retransmission | self._initial_psn + self._expected - 1 & MASK,
            flags,
            offset,
            entropy,
            self._qpn,
            self._context.ports.table.down_mask,
            self._mpr,
            start + 1,
            self._received >> start & BITMAP_MASK,
            timestamp,
            self._received.bit_count(),
            self._inflow.penalty << 24 | (self._received_bytes + 255 >> 8) & 0xFFFFFF,
        )

    def _queue_ack(self, entropy: int) -> None:
        self._acked = self._expected
        if not self._ack_queued:
            self._ack_queued = self._queue(entropy, self._emit_ack, ())

    def _emit_ack(self, buffer: memoryview, now_ns: int) -> int:
        self._ack_queued = False
        self._counters.acks_sent += 1
        psn = self._initial_psn + self._expected - 1
        return wire.emit_ack(buffer, self._remote_qpn, psn, bth.AETH_ACK, self._completed_msn)

    def _nak(self, why: Ignored, entropy: int) -> None:
        """A request that cannot be: it ends the QP at both ends."""
        syndrome, failure = REFUSALS[why]
        self._counters.refuse(why)
        self._queue(entropy, self._emit_nak, (syndrome,))
        self._fail(failure)

    def _emit_nak(self, buffer: memoryview, now_ns: int, syndrome: int) -> int:
        self._counters.naks_sent += 1
        psn = self._initial_psn + self._expected - 1
        return wire.emit_ack(buffer, self._remote_qpn, psn, syndrome, self._completed_msn)

    def _queue_nack(self, bits: int, timestamp: int, reason: int, entropy: int) -> None:
        named = bits & (wire.RETRANSMISSION | bth.PSN_MASK)
        self._queue(entropy, self._emit_nack, (named, reason, entropy, timestamp))

    def _emit_nack(self, buffer: memoryview, now_ns: int, bits: int, reason: int, entropy: int, timestamp: int) -> int:
        self._counters.nacks_sent += 1
        return wire.emit_nack(buffer, self._remote_qpn, bits, reason, entropy, self._qpn, timestamp)
