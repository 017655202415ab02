"""Which path the next packet takes.

Outer rotation: the usable planes in strict turn, so that planes are equal to within one packet. Inner rotation: the
active EVs of that plane, each once a turn, in an order drawn anew for every turn (digest 3.4, 5.4).
"""

from __future__ import annotations

from hosts.core.paths import Path
from hosts.core.prng import Prng

NO_PLANE = -1


class _Ring:
    """The EVs of one plane: the active ones in the order of this turn, and GOOD ones in reserve."""

    __slots__ = ("active", "backups", "position", "quota")

    def __init__(self, quota: int) -> None:
        self.quota = quota
        self.active: list[Path] = []
        self.backups: list[Path] = []
        self.position = 0


class Rotation:
    """Active and backup EVs to one peer, all of them GOOD."""

    __slots__ = ("_after", "_prng", "_rings", "turn")

    def __init__(self, planes: int, ev_active: int, prng: Prng) -> None:
        self._prng = prng
        self._rings = [_Ring(max(ev_active // planes, 1)) for _ in range(planes)]
        self._after = [NO_PLANE] * planes
        self.turn = NO_PLANE
        """Plane of the next packet; NO_PLANE when no path is GOOD."""

    def usable(self, plane: int) -> bool:
        """Has the plane an EV that may carry data?"""
        return bool(self._rings[plane].active)

    def add(self, path: Path) -> None:
        """A GOOD path enters: as active while the plane has room, else as backup."""
        ring = self._rings[path.plane]
        if len(ring.active) >= ring.quota:
            ring.backups.append(path)
            return
        ring.active.append(path)
        if len(ring.active) == 1:
            self._link_planes()

    def remove(self, path: Path) -> None:
        """A path is GOOD no longer; a backup of the same plane takes its place."""
        ring = self._rings[path.plane]
        if path in ring.backups:
            ring.backups.remove(path)
            return
        place = ring.active.index(path)
        if ring.backups:
            ring.active[place] = ring.backups.pop(self._prng.below(len(ring.backups)))
            return
        del ring.active[place]
        if place < ring.position:
            ring.position -= 1
        if not ring.active:
            self._link_planes()

    def _link_planes(self) -> None:
        """Recompute which usable plane follows which."""
        usable = [plane for plane, ring in enumerate(self._rings) if ring.active]
        planes = len(self._rings)
        for plane in range(planes):
            self._after[plane] = min(usable, key=lambda p: (p - plane - 1) % planes, default=NO_PLANE)
        if not usable:
            self.turn = NO_PLANE
        elif self.turn not in usable:
            self.turn = self._after[self.turn] if self.turn != NO_PLANE else usable[0]

    def take(self, avoid: Path | None = None) -> Path:
        """The path of the next packet; not `avoid` unless its plane, whose turn it is, has no other."""
        plane = self.turn
        ring = self._rings[plane]
        position = ring.position
        active = ring.active
        if position >= len(active):
            self._prng.shuffle(active)
            position = 0
        path = active[position]
        if path is avoid and len(active) > 1:
            other = (position + 1) % len(active)
            active[position], active[other] = active[other], path
            path = active[position]
        ring.position = position + 1
        self.turn = self._after[plane]
        return path

    def any_good(self) -> Path:
        """Some active path, for a control packet; leaves the turn alone. Only while a plane is usable."""
        usable = [ring for ring in self._rings if ring.active]
        ring = usable[self._prng.below(len(usable))]
        return ring.active[self._prng.below(len(ring.active))]
