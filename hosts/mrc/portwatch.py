"""Port Status Updates to and from one peer, and the probes that bring a plane back."""

from __future__ import annotations

from mrc_testbed.hosts.common.psn import signed16
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import SHORT_STAMP_SHIFT
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.events import PortChanged
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.portstate import PortInput, PortState, PortTable
from mrc_testbed.hosts.mrc.reasons import Ignored
from mrc_testbed.hosts.mrc.views import PeerView

REPEAT_T = 4
"""Pause between Port Status Updates while none is answered, in T (ours)."""
MAX_PAUSE_T = 16
"""Longest pause between probes of a plane that wants to come back, in T: as for EVs (`probes.MAX_BACKOFF_T`)."""
COMPARABLE = 1 << 14
"""Most units between two updates whose order 16-bit time stamps still tell; the second half of
that distance is for the ways that they took."""
_ID_MASK = 0xFFFF


class PortWatch:
    """Port Status Updates to and from one peer.

    The peer's ports are known from two places: its updates, and the mask in its SACKs. A peer of another make sends no
    masks at all, so the two are kept apart: a port is down while either says so, and an update also overrules what
    SACKs said before.

    SACKs have no time stamp of the peer's, and those of several QPs overtake each other and updates. But a SACK left
    after the packet that it answers, and what answers a packet that we sent after some news is newer than it.
    """

    __slots__ = (
        "_context", "_heard_ns", "_heard_stamp", "_news_ns", "_next_probe_ns", "_own_id", "_pause_ns", "_peer",
        "_repeat_ns", "_update_down", "remote", "sack_down", "wake_ns",
    )  # fmt: skip

    def __init__(self, peer: PeerView, context: Context) -> None:
        self._peer = peer
        self._context = context
        self.remote = PortTable(context.config.planes)
        self._own_id = 0
        self._repeat_ns = NEVER
        self._next_probe_ns = NEVER
        self._pause_ns = 0
        self._heard_ns: int | None = None
        """When the newest update of the peer came, None before the first."""
        self._heard_stamp = 0
        """And when it was sent, by its own clock."""
        self._news_ns = 0
        """When the newest word of the peer's ports came, by update or SACK."""
        self._update_down = 0
        self.sack_down = 0
        """Down ports by the newest SACK."""
        self.wake_ns = NEVER

    # --- ours ---

    def announce(self, now_ns: int) -> None:
        """Our ports have changed: send updates until the peer answers one."""
        self._own_id = self._own_id + 1 & _ID_MASK
        self._send_update(now_ns)

    def _send_update(self, now_ns: int) -> None:
        """One update over each healthy plane."""
        for plane in range(self._context.config.planes):
            path = self._peer.evs.any_of(plane)
            if path is not None:
                self._context.send_control(path, self._emit_update, (self._own_id,))
                self._context.counters.port_updates_sent += 1
        self._repeat_ns = now_ns + REPEAT_T * self._peer.timing.unit_ns
        self._context.timers.arm(self, self._repeat_ns)

    def _emit_update(self, buffer: memoryview, now_ns: int, request_id: int) -> int:
        context = self._context
        table, ts_field = context.ports.table, context.config.ts_field
        mask = table.all_ports & ~table.down_mask
        return wire.emit_request(buffer, wire.OP_PORT_STATUS, request_id, mask, context.stamp(now_ns), ts_field)

    def on_update_answer(self, request_id: int) -> bool:
        """The peer has heard us; False when it is not the answer we wait for."""
        if self._repeat_ns == NEVER or request_id != self._own_id:
            return False
        self._repeat_ns = NEVER
        return True

    # --- the peer's ---

    def on_update(self, sent: int, tsr: int, up_mask: int, now_ns: int) -> None:
        """A Port Status Update; an overtaken one changes nothing. `sent` is its time stamp, `tsr` says in which unit.

        Request ids say nothing of the order: they are the requester's own."""
        shift = self._context.config.own_stamp_shift if tsr else SHORT_STAMP_SHIFT
        if self._overtaken(sent, 1 << shift, now_ns):
            self._context.counters.refuse(Ignored.OLD_UPDATE)
            return
        down = ~up_mask & self.remote.all_ports
        if down == self.remote.all_ports:
            self._context.counters.refuse(Ignored.NO_PORT_LEFT)
            return
        self._heard_ns = self._news_ns = now_ns
        self._heard_stamp = sent
        self._update_down = down
        self.sack_down &= down
        self._apply(now_ns)

    def _overtaken(self, sent: int, unit_ns: int, now_ns: int) -> bool:
        """Was it sent before the newest one? What comes long after that one was not."""
        if self._heard_ns is None or now_ns - self._heard_ns >= COMPARABLE * unit_ns:
            return False
        return signed16(sent - self._heard_stamp & 0xFFFF) < 0

    def on_sack_mask(self, down_mask: int, echo: int, arrival_ns: int, now_ns: int) -> None:
        """The mask of down ports in the newest SACK of a QP. `echo`: our time stamp in the packet that it answers."""
        down = down_mask & self.remote.all_ports
        if down == self.sack_down or arrival_ns - self._peer.timing.age_ns(echo, arrival_ns) < self._news_ns:
            return
        if down == self.remote.all_ports:
            self._context.counters.refuse(Ignored.NO_PORT_LEFT)
            return
        self._news_ns = now_ns
        self.sack_down = down
        self._apply(now_ns)

    def on_attributes(self, up_mask: int) -> None:
        """The port mask a QP was set up with counts until there is an update."""
        if self._heard_ns is None and up_mask & self.remote.all_ports:
            self._update_down = ~up_mask & self.remote.all_ports
            self._apply(0)

    def _apply(self, now_ns: int) -> None:
        down = self._update_down | self.sack_down
        for plane in range(self._context.config.planes):
            self._step(plane, PortInput.LOST if down >> plane & 1 else PortInput.CARRIER, now_ns)

    def _step(self, plane: int, event: PortInput, now_ns: int) -> None:
        if self.remote.step(plane, event, now_ns):
            self._context.events.append(PortChanged(self._peer.number, plane, self.remote.state(plane)))
            self._peer.port_changed(plane, now_ns)

    # --- coming back ---

    def healthy(self, plane: int) -> bool:
        """Are the ports of both ends UP?"""
        return not (self._context.ports.table.down_mask | self.remote.down_mask) >> plane & 1

    def can_probe(self, plane: int) -> bool:
        """Is it not known to be in vain to send on this plane?"""
        return bool(self._context.ports.table.carrier_mask & self.remote.carrier_mask & 1 << plane)

    def wants_back(self, plane: int) -> bool:
        """Is a port of this plane RISING, and its other end perhaps there?

        A port of ours asks even where the peer's is said to be DOWN: when both fell together, as with a T0 that they
        share, each is DOWN in the other's books until it has been answered, and neither would ever ask.
        """
        own = self._context.ports.table.state(plane)
        return own is PortState.RISING or (own is PortState.UP and self.remote.state(plane) is PortState.RISING)

    def watch(self, now_ns: int) -> None:
        """A port is RISING: probe its plane from now on."""
        self._pause_ns = self._peer.timing.unit_ns
        self._next_probe_ns = now_ns
        self._context.timers.arm(self, now_ns)

    def on_probe_answer(self, plane: int, sent_ns: int, now_ns: int) -> None:
        """A probe sent at `sent_ns` over `plane` was answered: proof for ports that were RISING when it was sent."""
        local = self._context.ports
        if self.remote.state(plane) is PortState.RISING and sent_ns >= self.remote.since_ns(plane):
            self._step(plane, PortInput.ANSWERED, now_ns)
        if local.table.state(plane) is PortState.RISING and sent_ns >= local.table.since_ns(plane):
            local.step(plane, PortInput.ANSWERED, now_ns)

    def on_timer(self, now_ns: int) -> int:
        """Repeat the update, probe the planes that want to come back."""
        if now_ns >= self._repeat_ns:
            self._send_update(now_ns)
        if now_ns >= self._next_probe_ns:
            self._next_probe_ns = NEVER
            if self._probe_rising(now_ns):
                self._next_probe_ns = now_ns + self._pause_ns
                self._pause_ns = min(2 * self._pause_ns, MAX_PAUSE_T * self._peer.timing.unit_ns)
        return min(self._repeat_ns, self._next_probe_ns)

    def _probe_rising(self, now_ns: int) -> bool:
        """One probe on some path of every such plane; False when there is none."""
        anything = False
        for plane in range(self._context.config.planes):
            if not self.wants_back(plane):
                continue
            paths = [path for path in self._peer.paths if path.plane == plane and path.state is not EvState.DENIED]
            if paths:
                anything = True
                self._peer.prober.probe(paths[self._context.prng.below(len(paths))], now_ns)
        return anything
