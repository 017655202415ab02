"""A QP on all planes at once: each packet takes the plane that `mrc_testbed.hosts.rc.planes` chooses for it.

Recovery is that of `mrc_testbed.hosts.rc.lossless`, since planes keep no order among each other. What is under way on a
plane that fails is sent again at once over the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mrc_testbed.hosts.common.base import Packet
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.figures import QpFlow
from mrc_testbed.hosts.common.memory import Domain
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcAttributes
from mrc_testbed.hosts.rc.context import RcContext, Way
from mrc_testbed.hosts.rc.dcqcn import scaled
from mrc_testbed.hosts.rc.lossless import LosslessRequester, LosslessResponder
from mrc_testbed.hosts.rc.peer import RcPeer
from mrc_testbed.hosts.rc.planes import SILENT_T, Planes
from mrc_testbed.hosts.rc.reasons import RcIgnored
from mrc_testbed.hosts.rc.selective import SHORT_RTO_NS

_NEVER_BEFORE = -(1 << 62)


class BalancedRequester(LosslessRequester):
    """Knows of each packet under way the plane, and when it was sent. The window is that of the planes."""

    __slots__ = ("_again", "_now_ns", "_planes", "_sent", "_tokens")

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
        self._rate = None
        self._tokens = dict(ways)
        self._sent: dict[int, tuple[int, int]] = {}
        """Plane and time of what is under way, by sequence number."""
        self._again: deque[int] = deque()
        """What was taken for lost, to be sent again."""
        self._now_ns = 0
        self._planes: Planes = peer.planes
        self._planes.join(self)

    def stop(self) -> None:
        """The QP has ended: send nothing more."""
        self._planes.quit(self)
        for plane, _ in self._sent.values():
            self._planes.given_up(plane)
        self._sent.clear()
        self._again.clear()
        super().stop()

    def scale(self, t_ns: int) -> None:
        """Rates are the planes'."""

    def flows(self) -> list[QpFlow]:
        """One in each plane."""
        return [self._flow(plane, plane) for plane in self._tokens]

    # --- sending ---

    def can_send(self) -> bool:
        """Is there a packet, lost or new, and a plane with room for it?"""
        if self._first_lost() < 0 and (
            self._high - self._una >= self._context.psn_range or not self._outbox.has_packet()
        ):
            return False
        if self._planes.has_room():
            return True
        if not self._waits:
            self._waits = True
            self._planes.wait(self)
        return False

    def _first_lost(self) -> int:
        """The first packet to send again; -1 if there is none."""
        again = self._again
        while again and (again[0] < self._una or again[0] in self._arrived or again[0] in self._sent):
            again.popleft()
        return again[0] if again else -1

    def may_send_at(self, now_ns: int) -> int:
        """When a plane has room, and its port and its rate let the next packet go."""
        if not self.can_send():
            self.ready = False
            return NEVER
        free_at = self._planes.free_at()
        if free_at > now_ns and self._owed:
            self.silence.posted(now_ns)
        return free_at

    def transmit(self, now_ns: int, buffer: memoryview) -> Packet | None:
        """As of any requester, on the plane whose turn it is."""
        plane = self.plane = self._planes.choose(now_ns)
        self.token = self._tokens[plane]
        self._now_ns = now_ns
        packet = super().transmit(now_ns, buffer)
        if packet is not None:
            self._planes.paced(plane, packet[0], now_ns)
        return packet

    def _take(self) -> int:
        seq = self._first_lost()
        if seq < 0:
            seq = self._high
        self._sent[seq] = self.plane, self._now_ns
        self._planes.took(self.plane, self._now_ns)
        return seq

    def _release(self, packets: int) -> None:
        """The host has no window beside those of the planes."""

    def _give_up(self) -> None:
        """Nor does a silent peer keep anything from others."""

    def probe_plane(self, plane: int) -> None:
        """Send a probe on it."""
        self._context.send_control((plane, self._tokens[plane]), self._emit_probe)

    def _emit_probe(self, buffer: memoryview, now_ns: int) -> int:
        self._context.counters.plane_probes_sent += 1
        return wire.emit_plane_packet(buffer, wire.PLANE_PROBE, self._remote_qpn)

    # --- hearing ---

    def _acknowledge(self, seq: int, arrival_ns: int, now_ns: int) -> None:
        for came in range(self._una, seq + 1):
            self._came(came, now_ns)
        super()._acknowledge(seq, arrival_ns, now_ns)

    def _note_arrival(self, seq: int, now_ns: int) -> None:
        self._came(seq, now_ns)
        super()._note_arrival(seq, now_ns)

    def _came(self, seq: int, now_ns: int) -> None:
        """This packet has arrived, by the plane on which it was last sent as far as known."""
        sent = self._sent.pop(seq, None)
        if sent is not None:
            self._planes.arrived(sent[0], now_ns)

    def on_cnp(self, now_ns: int) -> None:
        """The peer saw CE marks on the plane by which this came: cut its rate."""
        counters = self._context.counters
        counters.cnps_received += 1
        plane = self._came_by()
        if plane in self._tokens and self._planes.notified(plane, now_ns):
            counters.rate_cuts += 1

    def on_probe_answer(self, now_ns: int) -> None:
        """The plane by which this came works both ways."""
        plane = self._came_by()
        if plane in self._tokens:
            self._planes.probe_answered(plane, now_ns)
        else:
            self._context.counters.refuse(RcIgnored.UNKNOWN_PLANE)

    def _came_by(self) -> int:
        return wire.plane_of(self._context.source_port, self._remote_qpn, self.qpn)

    # --- time ---

    def leave(self, plane: int, now_ns: int) -> None:
        """The plane has failed: what is under way there is lost."""
        self._lose([seq for seq, (number, _) in self._sent.items() if number == plane])
        self._timed_seq = NEVER
        self.wake()

    def _resend_missing(self, now_ns: int) -> None:
        """What has been under way for longer than the shorter timeout is lost."""
        latest_ns = now_ns - scaled(SHORT_RTO_NS, self._context.t_ns)
        self._lose([seq for seq, (_, sent_ns) in self._sent.items() if sent_ns <= latest_ns])
        self._oldest_ns = now_ns
        self._timed_seq = NEVER
        self.wake()

    def _resend_all(self, now_ns: int) -> None:
        self._lose(list(self._sent))
        super()._resend_all(now_ns)

    def _lose(self, lost: Iterable[int]) -> None:
        """These are under way no longer, and are sent again."""
        planes = [self._sent.pop(seq)[0] for seq in lost]
        self.lost_packets += len(planes)
        self._again = deque(sorted({*self._again, *lost}))
        for plane in planes:
            self._planes.given_up(plane)


class BalancedResponder(LosslessResponder):
    """Its ACKs take turns over the planes by which packets come; what is about one plane goes back on that plane."""

    __slots__ = ("_heard", "_notified", "_now_ns", "_tokens", "_turn")

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
        self._tokens = dict(ways)
        self._heard = dict.fromkeys(self._tokens, _NEVER_BEFORE)
        """When a packet last came, by plane."""
        self._notified = dict.fromkeys(self._tokens, _NEVER_BEFORE)
        """When a notification was last sent, by plane."""
        self._now_ns = 0
        self._turn = 0

    def on_data(self, view: memoryview, marked: bool, arrival_ns: int, now_ns: int) -> None:
        """As of any responder."""
        if self._finds_way_back():
            self._now_ns = self._heard[self._way[0]] = now_ns
            super().on_data(view, marked, arrival_ns, now_ns)

    def _finds_way_back(self) -> bool:
        """The plane that a packet came by, which its source port tells."""
        plane = wire.plane_of(self._context.source_port, self._remote_qpn, self._qpn)
        token = self._tokens.get(plane)
        if token is None:
            self._counters.refuse(RcIgnored.UNKNOWN_PLANE)
            return False
        self._way = plane, token
        return True

    def _answer(self, emit: Callable[..., int], arguments: tuple[Any, ...] = ()) -> bool:
        """By the next plane that is heard from. If all went back as they came, one dead plane could take them all: with
        four planes it may be that each fourth packet, which is acknowledged, comes by the same."""
        latest_ns = self._now_ns - SILENT_T * self._context.t_ns
        heard = [plane for plane, heard_ns in self._heard.items() if heard_ns >= latest_ns]
        self._turn += 1
        plane = heard[self._turn % len(heard)]
        return self._context.send_control((plane, self._tokens[plane]), emit, arguments)

    def _note_mark(self, now_ns: int) -> None:
        plane, _ = self._way
        self._notified_at = self._notified[plane]
        super()._note_mark(now_ns)
        self._notified[plane] = self._notified_at

    def on_probe(self) -> None:
        """The peer asks whether the plane works by which this came."""
        if self._finds_way_back():
            self._context.send_control(self._way, self._emit_probe_answer)

    def _emit_probe_answer(self, buffer: memoryview, now_ns: int) -> int:
        return wire.emit_plane_packet(buffer, wire.PLANE_ANSWER, self._remote_qpn)
