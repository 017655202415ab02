"""Recycled entropies: an EV whose packet came through unmarked is taken once more, and all others are drawn at random.

After REPS (arXiv 2407.21625) as htsim has it (`UecMpReps`, buffer_reps.cpp): the last 8 good EVs, the oldest that was
not taken again first; without one any EV at random. After a loss that is no trim it takes the EVs of its buffer in
turn, again and again, for FREEZE_T, then EXPLORED packets at random. It retires no EV: what does not come back is not
recycled.

Ours: planes in strict turn and a buffer for each, as a plane is to its port what a network is there; what is drawn are
the EVs in rotation (`ev_active`); a loss counts however it was found, where htsim has its timeout alone, because here a
loss is inferred long before; the end of the freeze is noticed by the first unmarked arrival of a packet sent after it,
where htsim looks at the clock whenever it hears of a packet; an EV that leaves (denied) takes the buffer of its plane
with it.
"""

from __future__ import annotations

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc.evselect.evset import EvSet
from mrc_testbed.hosts.mrc.evselect.rotation import PlaneRing, Rotation
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.paths import Path

BUFFER = 8
"""Good EVs that are kept (both sources)."""
FREEZE_T = 770
"""How long EVs are taken from the buffer alone after a loss: htsim's 10 ms, whose networks have a T of about 13 us."""
EXPLORED = 16
"""Packets that take any EV after that (htsim)."""
THAWED = -NEVER


class GoodEvs:
    """A ring of the last BUFFER good EVs. A fresh one has not been taken again since it was put down.

    `until_ns`: frozen up to then, THAWED while it is not. `explore`: packets that must take any EV.
    """

    __slots__ = ("_count", "_frozen", "_head", "_is_fresh", "_paths", "explore", "fresh", "until_ns")

    def __init__(self) -> None:
        self.explore = 0
        self.until_ns = THAWED
        self.clear()

    def clear(self) -> None:
        """Forget all EVs."""
        self._paths: list[Path] = []
        self._is_fresh = [False] * BUFFER
        self._count = 0
        self._head = 0
        """The place of the next one."""
        self._frozen = 0
        """The place that is read next while frozen."""
        self.fresh = 0

    def add(self, path: Path) -> None:
        """A packet on `path` came through unmarked. The oldest of BUFFER others makes room."""
        head = self._head
        if self._count < BUFFER:
            self._paths.append(path)
            self._count += 1
        else:
            self._paths[head] = path
        if not self._is_fresh[head]:
            self._is_fresh[head] = True
            self.fresh += 1
        self._head = (head + 1) % BUFFER

    def take_fresh(self) -> Path:
        """The oldest fresh one, which is fresh no more. Only while there is one."""
        place = (self._head - self.fresh) % BUFFER
        self._is_fresh[place] = False
        self.fresh -= 1
        return self._paths[place]

    def take_frozen(self) -> Path | None:
        """The next in turn, fresh or not; None while nothing is kept."""
        if not self._count:
            return None
        place = self._frozen
        self.fresh -= self._is_fresh[place]
        self._is_fresh[place] = False
        self._frozen = (place + 1) % self._count
        return self._paths[place]


class Reps(Rotation):
    """The turn of the planes, and in each the EVs that came back."""

    __slots__ = ("_good",)

    uses_skip = False
    retires = False

    def __init__(self, evs: EvSet) -> None:
        super().__init__(evs)
        self._good = [GoodEvs() for _ in range(evs.planes)]

    def leave(self, path: Path) -> None:
        """The EVs that are kept of its plane are forgotten."""
        super().leave(path)
        self._good[path.plane].clear()

    def take(self, avoid: Path | None = None) -> Path:
        """Not `avoid`, as far as its plane has another one."""
        plane = self._take_plane(avoid)
        ring, good = self._rings[plane], self._good[plane]
        path = self._recycled(good)
        if path is None or path is avoid:
            path = self._drawn(ring, avoid)
        return path

    def _recycled(self, good: GoodEvs) -> Path | None:
        """What the buffer has for this packet; None: any EV."""
        if good.explore:
            good.explore -= 1
            return None
        if good.until_ns != THAWED:
            return good.take_frozen()
        return good.take_fresh() if good.fresh else None

    def _drawn(self, ring: PlaneRing, avoid: Path | None) -> Path:
        """Any of the plane's EVs in rotation, but for the one to avoid; a backup where that is the only one."""
        active = ring.active
        place = self._prng.below(len(active))
        path = active[place]
        if path is not avoid:
            return path
        if len(active) > 1:
            return active[(place + 1 + self._prng.below(len(active) - 1)) % len(active)]
        return ring.backups[0] if ring.backups else path

    def on_congestion(self, path: Path, trimmed: bool, sent_ns: int, now_ns: int) -> None:
        """A marked or trimmed packet's EV is not recycled."""

    def on_arrival(self, path: Path, sent_ns: int) -> None:
        """Keep the EV. The freeze is over with the first packet that was sent after it."""
        good = self._good[path.plane]
        if THAWED < good.until_ns < sent_ns:
            good.until_ns = THAWED
            good.clear()
            good.explore = EXPLORED
        if path.state is EvState.GOOD:
            good.add(path)

    def on_loss(self, path: Path, sent_ns: int, now_ns: int) -> None:
        """Freeze, unless the plane is frozen already, or explores after the last time."""
        good = self._good[path.plane]
        if good.until_ns == THAWED and not good.explore:
            good.until_ns = now_ns + FREEZE_T * self._evs.timing.t_ns
