"""Reliability probes: finding out what became of packets when nothing more is heard (spec 7.4.6, by its readers).

When they are sent: docs/protocol.md, "Loss and recovery".
"""

from __future__ import annotations

from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.evstate import IN_USE
from mrc_testbed.hosts.mrc.loss import NEVER_ASKED, Asked
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.peer import Peer

REPEAT_T = 5
"""Pause between probes, in T (htsim)."""
REMEMBERED = 16
"""Probes whose answer may still come."""


class TailProbe:
    """Asks the peer for a SACK when the last ones, or the packets that would have caused them, were lost."""

    __slots__ = ("_asked", "_context", "_last_ns", "_next_id", "_peer", "_qpn", "_remote_qpn", "_unanswered")

    def __init__(self, context: Context, peer: Peer, qpn: int, remote_qpn: int) -> None:
        self._context = context
        self._peer = peer
        self._qpn = qpn
        self._remote_qpn = remote_qpn
        self._next_id = 0
        self._asked: dict[int, Asked] = {}
        self._last_ns: int | None = None
        self._unanswered: set[int] = set()

    def due_at(self, quiet_since_ns: int, may_send: bool) -> int:
        """When to send the next probe if nothing is sent or heard until then."""
        timing = self._peer.timing
        due = quiet_since_ns + timing.silence_ns(may_send)
        return due if self._last_ns is None else max(due, self._last_ns + REPEAT_T * timing.unit_ns)

    def asked_since(self, when_ns: int) -> bool:
        """Has a probe been sent after that time?"""
        return self._last_ns is not None and self._last_ns > when_ns

    def send(self, suspect: Path | None, now_ns: int) -> None:
        """Ask twice. With the data on the path of the oldest missing packet, `suspect`: when that probe arrives, so has
        all that went before it there, and what is missing is lost. And, as that path may be dead, before all data on
        any GOOD one: the turn of the planes belongs to data."""
        if suspect is not None and suspect.state in IN_USE and self._peer.ports.healthy(suspect.plane):
            self._ask(suspect, Asked(now_ns, suspect), now_ns)
        self._ask(self._peer.evs.any_path(), Asked(now_ns, None), now_ns)
        self._last_ns = now_ns

    def ask(self, now_ns: int) -> None:
        """Ask once, before all data. What is missing is lost if it was late by now; what is younger may wait in a queue
        that grows."""
        timing = self._peer.timing
        as_if_ns = now_ns - (timing.late_ns() - timing.reorder_ns)
        self._ask(self._peer.evs.any_path(), Asked(as_if_ns, None), now_ns)

    def _ask(self, path: Path, asked: Asked, now_ns: int) -> None:
        probe_id = self._next_id
        self._next_id = probe_id + 1 & 0xFFFF
        self._asked[probe_id] = asked
        self._asked.pop(probe_id - REMEMBERED & 0xFFFF, None)
        self._unanswered.add(probe_id)
        self._unanswered.discard(probe_id - REMEMBERED & 0xFFFF)
        traffic_class = self._context.no_trim_class if asked.path else None
        self._context.counters.reliability_probes_sent += 1
        emit = self._emit_suspect if asked.path else self._emit
        self._context.send_control(path, emit, (probe_id,), traffic_class)

    def _emit_suspect(self, buffer: memoryview, now_ns: int, probe_id: int) -> int:
        """One that waits with the data counts as data when it leaves: at the end of a run it may still wait."""
        self._context.counters.suspect_probes_sent += 1
        return self._emit(buffer, now_ns, probe_id)

    def _emit(self, buffer: memoryview, now_ns: int, probe_id: int) -> int:
        timestamp, ts_field = self._context.stamp(now_ns), self._context.config.ts_field
        return wire.emit_probe(buffer, self._remote_qpn, probe_id, self._qpn, timestamp, ts_field)

    def answered(self, probe_id: int) -> Asked:
        """The probe of that answer, NEVER_ASKED when it is not one of ours or too old. Answers may be several."""
        asked = self._asked.get(probe_id, NEVER_ASKED)
        if probe_id in self._unanswered:
            self._unanswered.remove(probe_id)
            self._context.counters.reliability_probes_answered += 1
        return asked
