"""The responder half of a QP: places packets in order, acknowledges, and notices congestion.

InfiniBand Architecture Specification 1.4, section 9.7.4: a packet that is not the expected one is a duplicate, which is
acknowledged again, or shows a gap, for which one NAK is sent until the expected one has come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpFailure
from mrc_testbed.hosts.common.memory import Domain
from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.common.psn import HALF, MASK, STRANGE
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcAttributes
from mrc_testbed.hosts.rc.context import RcContext, Way
from mrc_testbed.hosts.rc.dcqcn import PROFILES, scaled
from mrc_testbed.hosts.rc.reasons import REFUSED_REQUESTS, RcIgnored
from mrc_testbed.hosts.rc.requester import ACK_EVERY

ANY_NUMBER = 1 << 62
"""Receives of a QP whose application posts none."""


class Responder:
    """Takes in one QP's packets. Sequence numbers as in `mrc_testbed.hosts.common.psn`."""

    __slots__ = (
        "_ack_queued",
        "_base",
        "_closed",
        "_completed",
        "_context",
        "_counters",
        "_domain",
        "_end",
        "_expected",
        "_fail",
        "_gap_told",
        "_initial_psn",
        "_key",
        "_length",
        "_notified_at",
        "_notify_ns",
        "_place",
        "_qpn",
        "_region",
        "_remote_qpn",
        "_rkey",
        "_seen",
        "_since_ack",
        "_way",
        "placed",
        "receives",
    )

    def __init__(
        self,
        context: RcContext,
        local: RcAttributes,
        remote: RcAttributes,
        region: memoryview,
        domain: Domain,
        ways: Sequence[Way],
        fail: Callable[[QpFailure], None],
    ) -> None:
        self._context = context
        self._counters = context.counters
        self._fail = fail
        self._way = ways[0]
        """Of its answers."""
        self._qpn = local.qpn
        self._remote_qpn = remote.qpn
        self._initial_psn = remote.psn
        self._region = region
        self._base = local.region_address
        self._rkey = local.rkey
        self._domain = domain
        self.receives = ANY_NUMBER
        """How many more immediates may be delivered."""
        self._closed = False
        self._expected = 0
        self._place = self._end = -1
        """The address of the next packet of the message in progress, and where the message ends; -1: none is in
        progress."""
        self._length = 0
        """Bytes of the message in progress."""
        self._key = 0
        """Its rkey. The region may go in the middle of a message."""
        self._completed = 0
        """Messages completed."""
        self._since_ack = 0
        self._ack_queued = False
        self._gap_told = False
        self._seen = 0
        """Bit i: expected + i has come, perhaps to be dropped."""
        profile = PROFILES.get(context.config.congestion_control)
        self._notify_ns = profile.notify_ns if profile is not None else 0
        """Least time between CNPs in the reference network; 0: none are sent."""
        self._notified_at = -(1 << 62)
        self.placed = PlacedBytes()

    # --- data ---

    def on_data(self, view: memoryview, marked: bool, arrival_ns: int, now_ns: int) -> None:
        """One whole data packet; `marked`: with CE."""
        bits = wire.bits_and_psn(view)
        offset = ((bits - self._initial_psn - self._expected + HALF) & MASK) - HALF
        if not -STRANGE < offset < STRANGE:
            self._counters.refuse(RcIgnored.PSN_WINDOW)
            return
        if marked:
            self._note_mark(now_ns)
        if offset < 0:
            self._counters.duplicates += 1
            self._queue_ack()
        elif self._closed:
            self._counters.refuse(RcIgnored.QP_STATE)
        elif offset:
            self._on_ahead(view, bits, offset, arrival_ns)
        else:
            self._on_expected(view, bits, arrival_ns)

    def _on_ahead(self, view: memoryview, bits: int, offset: int, arrival_ns: int) -> None:
        """A packet is missing: drop this one, and say so once."""
        self._counters.out_of_order += 1
        if offset < self._context.psn_range:
            self._note_ahead(offset)
        if not self._gap_told:
            self._gap_told = True
            self._queue_gap(self._completed)

    def _note_ahead(self, offset: int) -> None:
        from_here = self._seen >> offset
        if not from_here & 1:
            self._seen |= 1 << offset
            if from_here:
                self._counters.reordered += 1

    def _on_expected(self, view: memoryview, bits: int, arrival_ns: int) -> None:
        opcode = view[0]
        start, end = wire.payload_bounds(view, wire.GO_BACK_N_OVERHEAD)
        wrong = self._begin(view) if opcode in wire.BEGINS_MESSAGE else self._continue()
        place = self._place
        stop = place + end - start
        ends = opcode in wire.ENDS_MESSAGE
        if wrong is None and (stop != self._end if ends else not place < stop < self._end):
            wrong = RcIgnored.WRONG_LENGTH
        if wrong is None:
            wrong = self._put(self._key, place, view[start:end])
        if wrong is None and ends:
            self._end = -1
            immediate = wire.parse_immediate(view, wire.GO_BACK_N_OVERHEAD) if opcode in wire.HAS_IMMEDIATE else None
            wrong = self._complete(immediate, self._length)
        if wrong is not None:
            self._refuse(wrong)
            return
        self._place = stop
        self._expected += 1
        if self._seen:
            if not self._seen & 1:
                self._counters.reordered += 1
            self._seen >>= 1
        self._counters.data_received += 1
        self._counters.bytes_delivered += stop - place
        self.placed.note(stop - place, arrival_ns)
        self._gap_told = False
        self._count_for_ack(1, bits)

    def _begin(self, view: memoryview) -> RcIgnored | None:
        """A message begins: where does it go?"""
        if self._end >= 0:
            return RcIgnored.OUT_OF_MESSAGE
        address, rkey, length = wire.parse_reth(view)
        there = not length or self._in_region(rkey, address, length)
        if not there and self._domain.find(rkey, address, length) is None:
            return RcIgnored.REMOTE_ACCESS
        self._key, self._place, self._end, self._length = rkey, address, address + length, length
        return None

    def _in_region(self, rkey: int, address: int, size: int) -> bool:
        at = address - self._base
        return rkey == self._rkey and at >= 0 and at + size <= len(self._region)

    def _put(self, rkey: int, address: int, data: memoryview) -> RcIgnored | None:
        """Place a payload where it belongs, or say what is wrong with that. A write of nothing needs no rkey
        (InfiniBand 1.4, C9-88)."""
        if not data:
            return None
        if self._in_region(rkey, address, len(data)):
            at = address - self._base
            self._region[at : at + len(data)] = data
            return None
        memory = self._domain.find(rkey, address, len(data))
        if memory is None:
            return RcIgnored.REMOTE_ACCESS
        return None if memory.write(address, data) else RcIgnored.OWN_MEMORY

    def _continue(self) -> RcIgnored | None:
        return RcIgnored.OUT_OF_MESSAGE if self._end < 0 else None

    def _complete(self, immediate: int | None, length: int) -> RcIgnored | None:
        """A message of `length` bytes, and every one before it, is whole. It may need a receive, and there is none:
        then no answer may acknowledge it, even one that was queued before."""
        if immediate is not None and not self.receives:
            return RcIgnored.NO_RECEIVE
        self._completed = self._completed + 1 & MASK
        if immediate is not None:
            self.receives -= 1
            self._counters.immediates += 1
            self._counters.wimm_delivered += 1
            self._context.events.append(ImmediateDelivered(self._qpn, immediate, self._completed, length))
        return None

    def close(self) -> None:
        """Take nothing new, and go on to acknowledge what has come."""
        self._closed = True

    def _note_mark(self, now_ns: int) -> None:
        """Congestion on the way: tell the sender, but not more often than its profile says."""
        self._counters.marked_received += 1
        if self._notify_ns and now_ns - self._notified_at >= scaled(self._notify_ns, self._context.t_ns):
            self._notified_at = now_ns
            self._context.send_control(self._way, self._emit_cnp)

    def on_probe(self) -> None:
        """The peer asks whether a plane works: it must not, of a QP that keeps to one."""
        self._counters.refuse(RcIgnored.ONE_PLANE)

    # --- answers ---

    def _count_for_ack(self, packets: int, bits: int) -> None:
        self._since_ack += packets
        if self._since_ack >= ACK_EVERY or bits & bth.ACK_REQUEST:
            self._queue_ack()

    def _queue_ack(self) -> None:
        self._since_ack = 0
        if not self._ack_queued:
            self._ack_queued = self._answer(self._emit_ack)

    def _emit_ack(self, buffer: memoryview, now_ns: int) -> int:
        self._ack_queued = False
        self._counters.acks_sent += 1
        psn = self._initial_psn + self._expected - 1 & MASK
        return wire.emit_ack(buffer, self._remote_qpn, psn, wire.SYNDROME_ACK, self._completed)

    def _queue_gap(self, named: int) -> None:
        self._since_ack = 0
        self._queue_nak(wire.SYNDROME_NAK_SEQUENCE, named)

    def _queue_nak(self, syndrome: int, named: int) -> None:
        psn = self._initial_psn + self._expected & MASK
        self._answer(self._emit_nak, (psn, syndrome, named))

    def _answer(self, emit: Callable[..., int], arguments: tuple[Any, ...] = ()) -> bool:
        """Queue an ACK or NAK; False when there is no room for it."""
        return self._context.send_control(self._way, emit, arguments)

    def _emit_nak(self, buffer: memoryview, now_ns: int, psn: int, syndrome: int, named: int) -> int:
        if syndrome == wire.SYNDROME_NAK_SEQUENCE:
            self._counters.nacks_sent += 1
        else:
            self._counters.naks_sent += 1
        return wire.emit_ack(buffer, self._remote_qpn, psn, syndrome, named)

    def _refuse(self, why: RcIgnored) -> None:
        """A request that cannot be: it ends the QP at both ends."""
        syndrome, failure = REFUSED_REQUESTS[why]
        self._counters.refuse(why)
        self._queue_nak(syndrome, self._completed)
        self._fail(failure)

    def _emit_cnp(self, buffer: memoryview, now_ns: int) -> int:
        self._counters.cnps_sent += 1
        return wire.emit_cnp(buffer, self._remote_qpn)
