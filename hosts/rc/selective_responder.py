"""A responder that keeps what comes out of order, after IRN (see `mrc_testbed.hosts.rc.selective`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.memory import Domain
from mrc_testbed.hosts.common.psn import MASK
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcAttributes
from mrc_testbed.hosts.rc.context import RcContext, Way
from mrc_testbed.hosts.rc.reasons import RcIgnored
from mrc_testbed.hosts.rc.responder import Responder


class SelectiveResponder(Responder):
    """Every packet says where it belongs. For each that comes out of order a NAK names it."""

    __slots__ = ("_arrived", "_ends")

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
        super().__init__(context, local, remote, region, domain, ways, fail)
        self._arrived = 0
        """Bit i: expected + i has come (bit 0 never is)."""
        self._ends: dict[int, tuple[int | None, int]] = {}
        """Last packets of messages that have come, at or above expected: sequence number -> immediate, bytes of the
        message."""

    def _on_ahead(self, view: memoryview, bits: int, offset: int, arrival_ns: int) -> None:
        """A packet is missing: keep this one, and name it."""
        if offset >= self._context.psn_range:
            self._counters.refuse(RcIgnored.PSN_WINDOW)
        elif self._arrived >> offset & 1:
            self._counters.duplicates += 1
            self._queue_ack()
        elif self._take_in(view, self._expected + offset, arrival_ns):
            self._counters.out_of_order += 1
            if self._arrived >> offset:
                self._counters.reordered += 1
            self._arrived |= 1 << offset
            self._name(bits & MASK)

    def _name(self, psn: int) -> None:
        """Tell the requester that this one has come."""
        self._queue_gap(psn)

    def _on_expected(self, view: memoryview, bits: int, arrival_ns: int) -> None:
        if not self._take_in(view, self._expected, arrival_ns):
            return
        if self._arrived:
            self._counters.reordered += 1
        arrived = self._arrived | 1
        run = (~arrived & (arrived + 1)).bit_length() - 1
        self._arrived = arrived >> run
        first = self._expected
        self._expected = first + run
        if self._ends:
            for seq in range(first, first + run):
                wrong = self._complete(*self._ends.pop(seq)) if seq in self._ends else None
                if wrong is not None:
                    self._expected = seq
                    self._refuse(wrong)
                    return
        self._count_for_ack(run, bits)

    def _take_in(self, view: memoryview, seq: int, arrival_ns: int) -> bool:
        """Place one packet; False when it cannot be, which ends the QP."""
        address, rkey, length = wire.parse_reth(view)
        start, end = wire.payload_bounds(view, wire.SELECTIVE_OVERHEAD)
        size = end - start
        wrong = self._put(rkey, address, view[start:end]) if size <= length else RcIgnored.WRONG_LENGTH
        if wrong is not None:
            self._refuse(wrong)
            return False
        opcode = view[0]
        if opcode in wire.ENDS_MESSAGE:
            has_immediate = opcode in wire.HAS_IMMEDIATE
            immediate = wire.parse_immediate(view, wire.SELECTIVE_OVERHEAD) if has_immediate else None
            self._ends[seq] = immediate, length
        self._counters.data_received += 1
        self._counters.bytes_delivered += size
        self.placed.note(size, arrival_ns)
        return True
