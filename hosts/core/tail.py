"""Reliability probes: finding out what became of packets when nothing more is heard (digest 3.8, 3.12, 5.4)."""

from __future__ import annotations

from hosts import wire
from hosts.core.context import Context
from hosts.core.peer import Peer
from hosts.core.timing import stamp

REPEAT_T = 5
"""Pause between probes, in T (htsim, digest 3.8)."""
REMEMBERED = 16
"""Probes whose answer may still come."""


class TailProbe:
    """Asks the peer for a SACK when the last ones, or the packets that would have caused them, were lost."""

    __slots__ = ("_answered_id", "_context", "_last_ns", "_next_id", "_peer", "_qpn", "_remote_qpn", "_sent_ns")

    def __init__(self, context: Context, peer: Peer, qpn: int, remote_qpn: int) -> None:
        self._context = context
        self._peer = peer
        self._qpn = qpn
        self._remote_qpn = remote_qpn
        self._next_id = 0
        self._sent_ns: dict[int, int] = {}
        self._last_ns: int | None = None
        self._answered_id = -1
        """The last one answered."""

    def due_at(self, quiet_since_ns: int, may_send: bool) -> int:
        """When to send the next probe if nothing is sent or heard until then."""
        timing = self._peer.timing
        due = quiet_since_ns + timing.silence_ns(may_send)
        return due if self._last_ns is None else max(due, self._last_ns + REPEAT_T * timing.t_ns)

    def send(self, now_ns: int) -> None:
        """Ask, on any GOOD path: the turn of the planes belongs to data."""
        probe_id = self._next_id
        self._next_id = probe_id + 1 & 0xFFFF
        self._sent_ns[probe_id] = now_ns
        self._sent_ns.pop(probe_id - REMEMBERED & 0xFFFF, None)
        self._last_ns = now_ns
        self._context.send_control(self._peer.evs.any_path(), self._emit, (probe_id,))
        self._context.counters.reliability_probes_sent += 1

    def _emit(self, buffer: memoryview, now_ns: int, probe_id: int) -> int:
        return wire.emit_probe(buffer, self._remote_qpn, probe_id, self._qpn, stamp(now_ns))

    def answered(self, probe_id: int) -> int:
        """When the probe of that answer was sent; 0 when it is not one of ours or too old. Answers may be several."""
        sent_ns = self._sent_ns.get(probe_id, 0)
        if sent_ns and probe_id != self._answered_id:
            self._answered_id = probe_id
            self._context.counters.reliability_probes_answered += 1
        return sent_ns
