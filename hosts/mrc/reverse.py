"""The way back: which EV carries SACKs, NACKs and Transport ACKs (P1 2.4).

Reversing the path of the data does not always work, since links fail in one direction. So one EV a plane, and at least
MIN_EVS in all, are kept that are known to work: those that own data have last arrived by, or, while nothing is sent,
those of the latest answered EV probes. One such probe goes out per T, on an EV drawn at random. Answers take the planes
in turn, and the EVs of a plane. (The plane of the packet they answer would be the same one for ever, with a SACK for
every fourth packet and four planes.)
"""

from __future__ import annotations

from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.evstate import IN_USE, EvState
from mrc_testbed.hosts.mrc.inflight import Inflight
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.views import PeerView

MIN_EVS = 2
"""With one EV in a fabric of one plane, a dead way back is silence: the sender fills its window and stops, and as
nothing comes the receiver has no reason to look for another way."""


class ReverseSet:
    """The EVs of answers to one peer."""

    __slots__ = ("_chosen", "_context", "_each", "_kept_ns", "_peer", "_turn")

    def __init__(self, peer: PeerView, context: Context) -> None:
        self._peer = peer
        self._context = context
        self._chosen: dict[int, list[Path]] = {}
        """By plane, the newest first."""
        self._each = -(-MIN_EVS // context.config.planes)
        self._kept_ns = 0
        self._turn = 0

    def learn(self, path: Path) -> None:
        """Something sent on `path` has arrived."""
        chosen = self._chosen.setdefault(path.plane, [])
        if path in chosen:
            chosen.remove(path)
        chosen.insert(0, path)
        del chosen[self._each :]

    def path(self, flow_label: int) -> Path:
        """The path of the next answer, to a packet that came with this flow label.

        While nothing is known of a plane it is the packet's own: it has just been seen to work, in the other direction.
        """
        self._turn += 1
        planes = self._context.config.planes
        turn, plane = self._turn // planes, self._turn % planes
        chosen = self._chosen.get(plane)
        path = chosen[turn % len(chosen)] if chosen else self._peer.path_at(flow_label)
        if path.state in IN_USE and self._peer.ports.healthy(path.plane):
            return path
        return self._other(path)

    def _other(self, path: Path) -> Path:
        """Instead of an EV that must not be used: another of its plane, then of any plane, then none the less it."""
        evs = self._peer.evs
        other = evs.any_of(path.plane)
        if other is None and evs.paths:
            other = evs.any_path()
        return path if other is None else other

    def keep_alive(self, now_ns: int) -> None:
        """Called a few times per T while data comes in: once per T follow the own data, or else send a probe."""
        if now_ns - self._kept_ns < self._peer.timing.unit_ns:
            return
        self._kept_ns = now_ns
        sending = [sender.flight for sender in self._peer.senders if sender.flight.next > sender.flight.una]
        for flight in sending:
            self._follow(flight)
        if not sending:
            self._probe(now_ns)

    def _follow(self, flight: Inflight) -> None:
        """Own data are under way: each plane's EV becomes the one by which the newest of them arrived."""
        newest: dict[int, int] = {}
        for path in self._peer.paths:
            seq = flight.last_first[path.index]
            if seq > newest.get(path.plane, -1) and path.state in IN_USE:
                newest[path.plane] = seq
                self.learn(path)

    def _probe(self, now_ns: int) -> None:
        paths = self._peer.paths
        path = paths[self._context.prng.below(len(paths))]
        if path.state is not EvState.DENIED and self._peer.ports.can_probe(path.plane):
            self._peer.prober.probe(path, now_ns)
            self._context.counters.reverse_probes_sent += 1
