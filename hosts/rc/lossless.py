"""A QP over a network that drops nothing and keeps no order: adaptive routing in switches, or several planes at once.

Each packet says where it belongs, as in `mrc_testbed.hosts.rc.selective`, and is kept whatever came before it. One that
overtook another is named by an ACK, not by a NAK: nothing is sent again because of it. Loss is found by timeout alone.
"""

from __future__ import annotations

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.psn import MASK, unwrap
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.selective import SelectiveRequester
from mrc_testbed.hosts.rc.selective_responder import SelectiveResponder


class LosslessRequester(SelectiveRequester):
    """Takes no gap for a loss. `_edge` moves at timeouts alone."""

    __slots__ = ()

    def on_ack(self, psn: int, syndrome: int, named: int, arrival_ns: int, now_ns: int) -> None:
        """As of any requester; an ACK names a packet that came, which may be one above those that it acknowledges."""
        super().on_ack(psn, syndrome, named, arrival_ns, now_ns)
        if not syndrome & wire.SYNDROME_KIND:
            seq = unwrap(named, self._initial_psn, self._una)
            if self._is_new(seq):
                self._note_arrival(seq, now_ns)

    def _resend_missing(self, now_ns: int) -> None:
        """What is missing below the highest that arrived counts as lost now, not before."""
        if self._arrived:
            self._edge = max(self._arrived) + 1
        super()._resend_missing(now_ns)


class LosslessResponder(SelectiveResponder):
    """The MSN field of each of its ACKs is the PSN of a packet that came."""

    __slots__ = ()

    def _count_for_ack(self, packets: int, bits: int) -> None:
        """One that fills a gap is acknowledged at once: what asked for an ACK may be behind the gap."""
        super()._count_for_ack(packets, bits | (bth.ACK_REQUEST if packets > 1 else 0))

    def _name(self, psn: int) -> None:
        self._since_ack = 0
        self._answer(self._emit_naming, (psn,))

    def _emit_ack(self, buffer: memoryview, now_ns: int) -> int:
        self._ack_queued = False
        return self._emit_naming(buffer, now_ns, self._initial_psn + self._expected - 1 & MASK)

    def _emit_naming(self, buffer: memoryview, now_ns: int, named: int) -> int:
        """Written when it is sent, so that it acknowledges all that has come in order until then."""
        self._counters.acks_sent += 1
        psn = self._initial_psn + self._expected - 1 & MASK
        return wire.emit_ack(buffer, self._remote_qpn, psn, wire.SYNDROME_ACK, named)
