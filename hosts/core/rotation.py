"""Which path the next packet takes.

Outer rotation: the usable planes in strict turn, so that planes are equal to within one packet. Inner rotation: the
active EVs of that plane, each once a turn, in an order drawn anew for every turn (digest 3.4, 5.4). An EV in SKIP makes
room for a GOOD backup of its plane; without one it is passed over as often as its penalty says. Both forms stay inside
the plane, so congestion never shifts load between planes.
"""

from __future__ import annotations

from collections.abc import Callable

from hosts.core.paths import Path
from hosts.core.prng import Prng
from hosts.core.timers import NEVER

NO_PLANE = -1
MAX_PENALTY = 15
"""Most passes an EV in SKIP can owe (htsim's cap, digest 3.4, 5.4)."""


class _Ring:
    """The EVs of one plane: the active ones in the order of this turn, and more in reserve."""

    __slots__ = ("active", "backups", "position", "quota", "skipping")

    def __init__(self, quota: int) -> None:
        self.quota = quota
        self.active: list[Path] = []
        self.backups: list[Path] = []
        self.position = 0
        self.skipping = 0
        """How many of both are in SKIP; 0 keeps the hot path short."""

    def good_backup(self, skipped_before_ns: int = NEVER) -> Path | None:
        """The GOOD backup that has waited longest, of those that last met congestion before that time; it leaves the
        reserve."""
        for place, path in enumerate(self.backups):
            if not path.penalty and path.skipped_ns < skipped_before_ns:
                return self.backups.pop(place)
        return None

    def relieve(self, path: Path, skipped_before_ns: int) -> None:
        """Put a GOOD backup in the place of an active EV in SKIP, which joins the tail of the reserve."""
        rested = self.good_backup(skipped_before_ns)
        if rested is not None:
            self.active[self.active.index(path)] = rested
            self.backups.append(path)

    def all_skip(self) -> bool:
        """Is no active EV GOOD?"""
        return all(path.penalty for path in self.active)


class Rotation:
    """Active and backup EVs to one peer, all of them GOOD or SKIP. `path.penalty` > 0 says which."""

    __slots__ = ("_after", "_closed", "_prng", "_rested", "_rings", "_skips", "turn")

    def __init__(
        self, planes: int, ev_active: int, prng: Prng, rested: Callable[[Path], None] = lambda path: None
    ) -> None:
        """`rested(path)` is called when an EV in SKIP has paid its penalty."""
        self._prng = prng
        self._rested = rested
        self._rings = [_Ring(max(ev_active // planes, 1)) for _ in range(planes)]
        self._after = [NO_PLANE] * planes
        self._closed: set[int] = set()
        self._skips = 0
        self.turn = NO_PLANE
        """Plane of the next packet; NO_PLANE when none is usable."""

    def usable(self, plane: int) -> bool:
        """Has the plane a port at both ends and an EV that may carry data?"""
        return bool(self._rings[plane].active) and plane not in self._closed

    def count(self, plane: int) -> int:
        """EVs of the plane that may carry data, backups included."""
        ring = self._rings[plane]
        return len(ring.active) + len(ring.backups)

    def quota(self, plane: int) -> int:
        """Most EVs of the plane in use at once."""
        return self._rings[plane].quota

    def add(self, path: Path) -> None:
        """A path enters: as active while the plane has room, else as backup."""
        ring = self._rings[path.plane]
        ring.skipping += path.penalty > 0
        if len(ring.active) >= ring.quota:
            ring.backups.append(path)
            return
        ring.active.append(path)
        if len(ring.active) == 1:
            self._link_planes()

    def remove(self, path: Path) -> None:
        """A path may carry data no longer; a backup of the same plane takes its place."""
        ring = self._rings[path.plane]
        ring.skipping -= path.penalty > 0
        path.penalty = 0
        if path in ring.backups:
            ring.backups.remove(path)
            return
        place = ring.active.index(path)
        if ring.backups:
            drawn = ring.good_backup()
            ring.active[place] = drawn if drawn is not None else ring.backups.pop(0)
            return
        del ring.active[place]
        if place < ring.position:
            ring.position -= 1
        if not ring.active:
            self._link_planes()

    def skip(self, path: Path, passes: int, now_ns: int, rest_ns: int) -> None:
        """A path in the rotation met congestion: rest it for `passes` turns of its plane. A backup takes its place,
        unless all of them met congestion themselves in the last `rest_ns`."""
        ring = self._rings[path.plane]
        path.skipped_ns = now_ns
        if not path.penalty:
            ring.skipping += 1
            self._skips += 1
            path.skipped = self._skips
        path.penalty = min(path.penalty + passes, MAX_PENALTY)
        if path in ring.active:
            ring.relieve(path, now_ns - rest_ns)

    def close(self, plane: int) -> None:
        """The plane lost a port at either end: its EVs keep their states and wait."""
        self._closed.add(plane)
        self._link_planes()

    def open(self, plane: int) -> None:
        """Undo `close`."""
        self._closed.discard(plane)
        self._link_planes()

    def _link_planes(self) -> None:
        """Recompute which usable plane follows which."""
        planes = len(self._rings)
        usable = [plane for plane in range(planes) if self.usable(plane)]
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
        self.turn = self._after[plane]
        if ring.skipping:
            return self._take_around(ring, avoid)
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
        return path

    def _take_around(self, ring: _Ring, avoid: Path | None) -> Path:
        """As `take`, passing over EVs in SKIP; when there is nothing else, the one skipped longest ago."""
        if ring.all_skip():
            # A retransmission would rather wait longer, or take a backup, than meet the same queue again.
            choice = (*ring.active, *ring.backups) if ring.active == [avoid] else ring.active
            oldest = min(choice, key=lambda path: (path is avoid, path.skipped))
            self._pass(ring, self._next(ring))
            return oldest
        path = self._next(ring)
        while path.penalty:
            self._pass(ring, path)
            path = self._next(ring)
        if path is avoid:
            others = [other for other in ring.active if other is not avoid]
            return min(others, key=lambda other: (other.penalty > 0, other.skipped), default=path)
        return path

    def _next(self, ring: _Ring) -> Path:
        """The EV whose place in the turn it is, whatever its state."""
        if ring.position >= len(ring.active):
            self._prng.shuffle(ring.active)
            ring.position = 0
            for path in ring.backups:
                self._pass(ring, path)
        path = ring.active[ring.position]
        ring.position += 1
        return path

    def _pass(self, ring: _Ring, path: Path) -> None:
        """The rotation has passed this EV over once."""
        if path.penalty:
            path.penalty -= 1
            if not path.penalty:
                ring.skipping -= 1
                self._rested(path)

    def any_good(self) -> Path:
        """Some active path, for a control packet; leaves the turn alone. Only while a plane is usable."""
        usable = [ring for plane, ring in enumerate(self._rings) if self.usable(plane)]
        ring = usable[self._prng.below(len(usable))]
        return ring.active[self._prng.below(len(ring.active))]

    def any_of(self, plane: int) -> Path | None:
        """Some active path of one plane; None when it has none or is closed."""
        if not self.usable(plane):
            return None
        active = self._rings[plane].active
        return active[self._prng.below(len(active))]
