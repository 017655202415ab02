"""One remote host: its paths, their states, and the QPs that lead to it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mrc_testbed.hosts.common.errors import UnknownPathError
from mrc_testbed.hosts.mrc.config import GOOD, EndpointConfig
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.events import EvChanged, FloorHeld, PlaneChanged
from mrc_testbed.hosts.mrc.evselect.evset import EvSet
from mrc_testbed.hosts.mrc.evstate import IN_USE, EvInput, next_state
from mrc_testbed.hosts.mrc.incast import OneWayDelay
from mrc_testbed.hosts.mrc.paths import Path, PathId
from mrc_testbed.hosts.mrc.portwatch import PortWatch
from mrc_testbed.hosts.mrc.probes import Prober
from mrc_testbed.hosts.mrc.reasons import LossReason
from mrc_testbed.hosts.mrc.reverse import ReverseSet
from mrc_testbed.hosts.mrc.timing import Timing
from mrc_testbed.hosts.mrc.views import SenderView

LOSSES_T = 64
"""Losses further apart than this many T are of different causes (ours)."""


class Peer:
    """Paths are shared by all QPs to the same host, so that one lost packet spares the others theirs."""

    __slots__ = (
        "_by_label",
        "_context",
        "_floor",
        "evs",
        "number",
        "one_way",
        "paths",
        "ports",
        "prober",
        "reverse",
        "selection",
        "senders",
        "timing",
    )

    def __init__(
        self,
        number: int,
        paths: Sequence[tuple[int, int, Hashable]],
        context: Context,
        udp_ports: Sequence[int] = (),
    ) -> None:
        """`udp_ports`: the source port of each path; empty: all have that of the host."""
        config = context.config
        self.number = number
        ports = udp_ports or [config.udp_port] * len(paths)
        self.paths = [
            Path(index, plane, uplink, token, port)
            for index, ((plane, uplink, token), port) in enumerate(zip(paths, ports, strict=True))
        ]
        self._by_label = {path.label: path for path in self.paths}
        self._context = context
        self.timing = Timing(config)
        self.one_way = OneWayDelay(config.stamp_shift)
        self.senders: list[SenderView] = []
        self.prober = Prober(self, context, self.timing)
        self.ports = PortWatch(self, context)
        self.reverse = ReverseSet(self, context)
        self.evs = EvSet(config, self.timing, context.prng, self._step)
        self.selection = context.choices.make_selection(config.ev_selection, self.evs)
        self.evs.serve(self.selection)
        drawn = list(self.paths)
        context.prng.shuffle(drawn)
        for path in drawn:
            self.evs.add(path)
        self._floor = _floors(config, self.paths, self.evs)
        for plane in range(config.planes):
            if not self.ports.healthy(plane):
                self.evs.close(plane)
        context.ports.join(self)
        context.control_room += 2 * len(self.paths)

    def path_at(self, flow_label: int) -> Path:
        """The path with this EV[31:16]; of one we do not have, any of its plane, else any."""
        path = self._by_label.get(flow_label)
        if path is None:
            plane = flow_label >> 8 & 0xF
            path = next((path for path in self.paths if path.plane == plane), self.paths[0])
        return path

    def answer_path(self, flow_label: int, up_mask: int) -> Path:
        """The path of the answer to an EV probe: the one it came by, because the probe asks for this one, unless
        a port of its plane is gone. `up_mask`: the ports that the asking host has carrier on, 0 when it says nothing.
        """
        path = self._by_label.get(flow_label)
        there = not up_mask or up_mask >> (path.plane if path else 0) & 1
        if path is not None and there and self._context.ports.table.carrier_mask >> path.plane & 1:
            return path
        return self.reverse.path(flow_label)

    def path_of(self, entropy: int) -> Path | None:
        """The path whose EV a SACK or NACK echoes; None when it is none of ours."""
        path = self._by_label.get(entropy >> 16)
        return path if path is not None and path.ev == entropy else None

    def find(self, ids: Sequence[PathId]) -> list[Path]:
        """The paths of these (plane, uplink); all must exist."""
        known = {(path.plane, path.uplink): path for path in self.paths}
        for plane, uplink in ids:
            if (plane, uplink) not in known:
                raise UnknownPathError(self.number, plane, uplink)
        return [known[where] for where in ids]

    # --- what happens to a port ---

    def port_changed(self, plane: int, now_ns: int) -> None:
        """A port of `plane` changed at either end: leave the plane, return to it, or find out whether one can."""
        was_usable = self.evs.usable(plane)
        if self.ports.healthy(plane):
            self.evs.open(plane)
        else:
            self.evs.close(plane)
            if self.ports.wants_back(plane):
                self.ports.watch(now_ns)
            for sender in self.senders:
                sender.abandon(plane, now_ns)
        self._evs_changed(plane, was_usable)
        self._resume(plane, was_usable, now_ns)

    def announce_ports(self, now_ns: int) -> None:
        """Our ports have changed: send updates until the peer answers one."""
        self.ports.announce(now_ns)

    # --- what happens to an EV ---

    def lose(self, path: Path, reason: LossReason, sent_ns: int, now_ns: int) -> None:
        """A packet sent on `path` at `sent_ns` vanished without explanation: the EV is retired.

        Unless the selection retires none, or its plane would be left with fewer than its share of `ev_min_active`. Such
        a floor must not keep a dead plane in use, so it holds only where something sent after the lost packet has
        arrived over the same plane.
        """
        path.lost += 1
        if sent_ns < path.restored_ns:
            return  # what was lost before the EV failed says nothing of it after it was probed
        self.selection.on_loss(path, sent_ns, now_ns)
        if not self.selection.retires or not self._lost_enough(path, now_ns):
            return
        at_floor = path.state in IN_USE and self.evs.count(path.plane) <= self._floor[path.plane]
        if at_floor and self._answers(path.plane, sent_ns):
            self._hold(path, reason)
        else:
            self._retire(path, EvInput.LOSS, reason.value, sent_ns, now_ns)

    def _lost_enough(self, path: Path, now_ns: int) -> bool:
        """Has it lost `bad_after_losses` packets within LOSSES_T? They are forgotten then."""
        path.losses_ns = [*(at for at in path.losses_ns if at > now_ns - LOSSES_T * self.timing.t_ns), now_ns]
        enough = len(path.losses_ns) >= self._context.config.bad_after_losses
        if enough:
            path.losses_ns = []
        return enough

    def condemn(self, path: Path, now_ns: int) -> None:
        """The peer asks not to use this EV any more."""
        self._retire(path, EvInput.ALWAYS_SKIP, EvInput.ALWAYS_SKIP.value, 0, now_ns)

    def _retire(self, path: Path, event: EvInput, trigger: str, sent_ns: int, now_ns: int) -> None:
        if self._change(path, event, trigger, sent_ns):
            self._context.counters.evs_retired += 1
            self.prober.watch(path, now_ns, failed=True)

    def _answers(self, plane: int, since_ns: int) -> bool:
        """Has anything sent on this plane after `since_ns` arrived?"""
        return any(
            path.probed_ns > since_ns or any(sender.flight.arrived_later(path, since_ns) for sender in self.senders)
            for path in self.paths
            if path.plane == plane
        )

    def _hold(self, path: Path, reason: LossReason) -> None:
        self._context.counters.floor_held += 1
        if not path.floored:
            path.floored = True
            in_use = self.evs.count(path.plane)
            self._context.events.append(FloorHeld(self.number, path.plane, path.uplink, in_use, reason.value))

    def congest(self, path: Path, trimmed: bool, sent_ns: int, now_ns: int) -> None:
        """A packet sent on `path` at `sent_ns` met a queue, on its way to the last hop."""
        if path.state in IN_USE:
            self.selection.on_congestion(path, trimmed, sent_ns, now_ns)

    def _step(self, path: Path, event: EvInput, trigger: str) -> bool:
        """What a selection asks for: GOOD -> SKIP and back."""
        changed = self._change(path, event, trigger, 0)
        if changed and event is EvInput.CONGESTED:
            self._context.counters.evs_skipped += 1
        return changed

    def restore(self, path: Path, marked: bool, now_ns: int) -> None:
        """Enough probes on `path` were answered; `marked`: the last one met congestion."""
        event = EvInput.PROBE_CONGESTED if marked and self.selection.uses_skip else EvInput.PROBES_PASSED
        was_usable = self.evs.usable(path.plane)
        if self._change(path, event, event.value, 0):
            self._context.counters.evs_restored += 1
            self._resume(path.plane, was_usable, now_ns)

    def deny(self, path: Path) -> None:
        """Only `allow` brings it back."""
        self.prober.forget(path)
        self._change(path, EvInput.DENY, EvInput.DENY.value, 0)

    def allow(self, path: Path, now_ns: int) -> None:
        """The EV is GOOD, or may prove itself, as `allow_to` says."""
        was_usable = self.evs.usable(path.plane)
        if self._context.config.allow_to == GOOD:
            if self._change(path, EvInput.ALLOW_GOOD, EvInput.ALLOW.value, 0):
                self._resume(path.plane, was_usable, now_ns)
        elif self._change(path, EvInput.ALLOW, EvInput.ALLOW.value, 0):
            self.prober.watch(path, now_ns, failed=False)

    def _change(self, path: Path, event: EvInput, trigger: str, first_lost_ns: int) -> bool:
        """Take the table's step, keep the set of EVs in line with it, and say so. False: nothing changed."""
        old = path.state
        new = next_state(old, event)
        if new is old:
            return False
        path.state = new
        self._context.events.append(
            EvChanged(self.number, path.plane, path.uplink, old, new, trigger, first_lost_ns, path.last_tx_ns)
        )
        if (old in IN_USE) is not (new in IN_USE):
            was_usable = self.evs.usable(path.plane)
            if new in IN_USE:
                self.evs.add(path)
            else:
                self.evs.remove(path)
            self._evs_changed(path.plane, was_usable)
        return True

    def _evs_changed(self, plane: int, was_usable: bool) -> None:
        """EVs came or went: floors are looked at again."""
        self._context.blocked_until = 0
        if self.evs.count(plane) > self._floor[plane]:
            for path in self.paths:
                if path.plane == plane:
                    path.floored = False
        usable = self.evs.usable(plane)
        if usable is not was_usable:
            self._context.events.append(PlaneChanged(self.number, plane, usable))

    def _resume(self, plane: int, was_usable: bool, now_ns: int) -> None:
        """Senders that wait for a plane look again."""
        if self.evs.usable(plane) and not was_usable:
            for sender in self.senders:
                sender.resume(now_ns)


def _floors(config: EndpointConfig, paths: list[Path], evs: EvSet) -> list[int]:
    """Each plane's share of `ev_min_active`: a quarter of its active EVs unless configured, at least one."""
    if config.ev_min_active is not None:
        return [max(config.ev_min_active // config.planes, 1)] * config.planes
    counts = [sum(path.plane == plane for path in paths) for plane in range(config.planes)]
    return [max(min(count, evs.quota(plane)) // 4, 1) for plane, count in enumerate(counts)]
