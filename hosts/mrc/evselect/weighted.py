"""Planes by what they carry: a plane that is late gets fewer packets. Ours, beyond the sources.

MRC loads all planes equally, so one that is slow and not dead is the bottleneck of every flow (P1 section 4: a
controller has to deny it). Here a sender finds out by itself. A plane's delay is the shortest round trip of its packets
of late, less the shortest of any plane: a queue before all EVs of this plane and of no other. One full port
makes no such queue, nor do chance meetings, bursts and late machines; what all planes share, such as an incast, is no
difference between them. Inside a plane all is as in `adaptive`.

Each plane has a weight, 1 for the best. It falls by a share while the plane is late and rises by equal steps while it
is not, so that senders which share a slow plane come to equal parts of it. Its turns are its weight, and fewer at once
as its delay grows: without that the weight, which is a round trip behind, swings.
docs/decisions/0108-planes-by-weight.md has what else was tried.
"""

from __future__ import annotations

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc.evselect.adaptive import Adaptive
from mrc_testbed.hosts.mrc.evselect.evset import EvSet
from mrc_testbed.hosts.mrc.paths import Path

ENOUGH = 8
"""Round trips of a plane that show that all of it is late; one shows that it is not."""
LATE_T = 0.5
"""A plane whose delay is above this loses weight, T: below NSCC's target of 0.75 T, so that windows stay open."""
EARLY_T = 0.25
"""One whose delay is below this is on time, T; a SACK may wait for T/4."""
LEAST_FACTOR = 0.5
"""Most that is taken off a weight at once."""
STEP = 1 / 64
"""What a plane gets back each T while it is on time."""
SURE = 8
"""Looks in a row that find a plane on time before what it gets back grows, by a `STEP` each look."""
MOST_STEPS = 8
"""Most `STEP`s that a plane gets back in a T: one that is well has its whole part within some 20 T."""
LEAST_WEIGHT = 1 / 32
"""Of a plane in use: enough packets to hear that it is well again."""


class _Share:
    """One plane's part of the packets, and what was heard of it since the last look."""

    __slots__ = ("credit", "fastest_ns", "heard", "since_ns", "steps", "turns", "weight")

    def __init__(self) -> None:
        self.weight = 1.0
        self.turns = 1.0
        """How often it has its turn, for each turn of the best plane."""
        self.credit = 0.0
        """Turns that it is behind."""
        self.steps = 0
        """Looks in a row that found it on time."""
        self.since_ns = 0
        """When its weight last fell."""
        self.forget()

    def forget(self) -> None:
        """Begin to listen again."""
        self.heard = 0
        self.fastest_ns = NEVER


class WeightedPlanes(Adaptive):
    """The rotation of `adaptive`, in which planes have their turns by weight."""

    __slots__ = ("_even", "_look_ns", "_shares", "_usable")

    uses_round_trips = True

    def __init__(self, evs: EvSet) -> None:
        super().__init__(evs)
        self._shares = [_Share() for _ in range(evs.planes)]
        self._usable: list[int] = []
        self._look_ns = 0
        self._even = True
        """Are all turns equal? Then they are those of `adaptive`, to the packet."""

    @property
    def weights(self) -> list[float]:
        """By plane, 1 for the best."""
        return [share.weight for share in self._shares]

    def take(self, avoid: Path | None = None) -> Path:
        """As of `Rotation`; the plane after this one is drawn by weight."""
        if not self._even:
            self._after[self.turn] = self._furthest_behind()
        return super().take(avoid)

    def _furthest_behind(self) -> int:
        """Smooth weighted round robin."""
        chosen, total = self._usable[0], 0.0
        best = self._shares[chosen]
        for plane in self._usable:
            share = self._shares[plane]
            share.credit += share.turns
            total += share.turns
            if share.credit > best.credit:
                best, chosen = share, plane
        best.credit -= total
        return chosen

    def _link_planes(self) -> None:
        """Planes that cannot be used keep their weight, and have no turns."""
        self._usable = [plane for plane in range(len(self._shares)) if self._evs.usable(plane)]
        super()._link_planes()

    def on_round_trip(self, path: Path, sent_ns: int, rtt_ns: int, now_ns: int) -> None:
        """Note the shortest of its plane, and look at all planes once a T."""
        share = self._shares[path.plane]
        share.heard += 1
        share.fastest_ns = min(share.fastest_ns, rtt_ns)
        if now_ns >= self._look_ns:
            self._look_ns = now_ns + self._evs.timing.unit_ns
            self._look(now_ns)

    def _look(self, now_ns: int) -> None:
        """Compare the planes that were heard of, then have the largest weight be 1."""
        usable = [self._shares[plane] for plane in self._usable]
        heard = [share for share in usable if share.heard]
        if len(heard) < 2:
            return
        fastest_ns, unit_ns = min(share.fastest_ns for share in heard), self._evs.timing.unit_ns
        for share in heard:
            late_t = (share.fastest_ns - fastest_ns) / unit_ns
            if late_t < EARLY_T or share.heard >= ENOUGH:
                _judge(share, late_t, unit_ns, now_ns)
        most = max(share.weight for share in usable)
        for share in usable:
            share.weight = max(share.weight / most, LEAST_WEIGHT)
            share.turns = max(share.turns / most, LEAST_WEIGHT)
        self._level()

    def _level(self) -> None:
        """Go back to strict turns once all are equal."""
        even = all(share.turns >= 1 for share in self._shares)
        if even and not self._even:
            self._link_planes()
        self._even = even


def _judge(share: _Share, late_t: float, unit_ns: int, now_ns: int) -> None:
    """Change the weight of a plane whose delay is `late_t`. It falls once in a round trip of the plane: what was sent
    before it fell met the queue that this was the answer to."""
    if late_t < EARLY_T:
        share.steps = min(share.steps + 1, SURE + MOST_STEPS)
        share.weight = min(share.weight + max(share.steps - SURE, 1) * STEP, 1.0)
    else:
        share.steps = 0
        if late_t > LATE_T and now_ns - share.since_ns >= share.fastest_ns + unit_ns:
            share.weight *= max(1 - (late_t - EARLY_T) / 2, LEAST_FACTOR)
            share.since_ns = now_ns
    share.turns = share.weight / (1 + max(late_t - EARLY_T, 0))
    share.forget()
