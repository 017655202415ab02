"""Two rotations, which the built-in selections share. They differ in what congestion costs an EV.

Outer rotation: the usable planes in strict turn, so that planes are equal to within one packet; one whose port is full
may be passed over (`pass_over`), and then they are as equal as ports are. Inner rotation: the
active EVs of that plane, each once a turn, in a new random order for every turn (spec 9.3.1, by its readers; the two
rotations are ours). An EV in SKIP makes room for a GOOD backup of its plane; without one it is passed over as often as
its penalty says. Both forms stay inside the plane, so congestion never shifts load between planes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE
from mrc_testbed.hosts.mrc.evselect.evset import EvSet
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.paths import Path


class PlaneRing:
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

    def has_only(self, path: Path) -> bool:
        """Is this the one EV of the plane?"""
        return not self.backups and len(self.active) == 1 and self.active[0] is path

    def all_skip(self) -> bool:
        """Is no active EV GOOD?"""
        return all(path.penalty for path in self.active)


class Rotation:
    """Active and backup EVs to one peer, all of them GOOD or SKIP. `path.penalty` > 0 says which.

    What derives from it says in `on_congestion` which EVs `_rest`, and for how long.
    """

    __slots__ = ("_after", "_evs", "_passes_left", "_prng", "_rings", "_skips", "_then", "turn")

    uses_skip = True
    retires = True
    uses_round_trips = False
    passes_a_packet: int
    """Of how many EVs in SKIP one packet counts that the rotation has passed them."""

    def __init__(self, evs: EvSet) -> None:
        self._evs = evs
        self._prng = evs.prng
        self._rings = [PlaneRing(evs.quota(plane)) for plane in range(evs.planes)]
        self._after = [NO_PLANE] * evs.planes
        self._skips = 0
        self._passes_left = 0
        """Of the packet being sent."""
        self._then = NO_PLANE
        """Whose turn it is after the present one, where a retransmission went before that; else the next in order."""
        self.turn = NO_PLANE

    def active(self, plane: int) -> Sequence[Path]:
        """Backups are not touched."""
        return self._rings[plane].active

    def enter(self, path: Path) -> None:
        """As active while the plane has room, else as backup. After a marked probe it rests for one turn first."""
        ring = self._rings[path.plane]
        if path.state is EvState.SKIP:
            path.penalty = 1
        ring.skipping += path.penalty > 0
        if len(ring.active) >= ring.quota:
            ring.backups.append(path)
            return
        ring.active.append(path)
        if len(ring.active) == 1:
            self._link_planes()

    def leave(self, path: Path) -> None:
        """A backup of the same plane takes its place."""
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

    def _rest(self, path: Path, passes: int, now_ns: int, rest_ns: int) -> None:
        """Have a path in SKIP owe `passes` turns of its plane. A backup takes its place, unless all of them met
        congestion themselves in the last `rest_ns`."""
        ring = self._rings[path.plane]
        path.skipped_ns = now_ns
        if not path.penalty:
            ring.skipping += 1
            self._skips += 1
            path.skipped = self._skips
        path.penalty = passes
        if path in ring.active:
            ring.relieve(path, now_ns - rest_ns)

    def changed(self) -> None:
        """Who is active follows from what enters and leaves."""

    def on_arrival(self, path: Path, sent_ns: int) -> None:
        """It says nothing of congestion."""

    def on_round_trip(self, path: Path, sent_ns: int, rtt_ns: int, now_ns: int) -> None:
        """Not listened to: planes are equal, however late one is."""

    def on_loss(self, path: Path, sent_ns: int, now_ns: int) -> None:
        """`leave` says enough."""

    def close(self, plane: int) -> None:
        """The turn goes past it."""
        self._link_planes()

    def open(self, plane: int) -> None:
        """It has its turn again."""
        self._link_planes()

    def _link_planes(self) -> None:
        """Recompute which usable plane follows which."""
        planes = len(self._rings)
        usable = [plane for plane in range(planes) if self._evs.usable(plane)]
        for plane in range(planes):
            self._after[plane] = min(usable, key=lambda p: (p - plane - 1) % planes, default=NO_PLANE)
        if self._then not in usable:
            self._then = NO_PLANE
        if not usable:
            self.turn = NO_PLANE
        elif self.turn not in usable:
            self.turn = self._after[self.turn] if self.turn != NO_PLANE else usable[0]

    def pass_over(self, has_room: Callable[[int], bool]) -> None:
        """Give the turn of a plane to the next in order whose port has room; the planes between lose theirs. Where none
        has room, all stays."""
        plane = self._after[self.turn] if self._then == NO_PLANE else self._then
        for _ in self._rings:
            if has_room(plane):
                self.turn, self._then = plane, NO_PLANE
                return
            plane = self._after[plane]

    def take(self, avoid: Path | None = None) -> Path:
        """Not `avoid`, unless it is the only EV of the only plane."""
        return self._take_in(self._rings[self._take_plane(avoid)], avoid)

    def _take_plane(self, avoid: Path | None) -> int:
        """The plane of this packet; moves the turn on."""
        plane = self.turn
        if avoid is not None and self._rings[plane].has_only(avoid):
            return self._go_before(plane)
        if self._then == NO_PLANE:
            self.turn = self._after[plane]
        else:
            self.turn, self._then = self._then, NO_PLANE
        return plane

    def _take_in(self, ring: PlaneRing, avoid: Path | None) -> Path:
        """The EV of that plane whose turn it is."""
        if ring.skipping:
            return self._take_around(ring, avoid)
        position = ring.position
        active = ring.active
        if position >= len(active):
            self._prng.shuffle(active)
            position = 0
        path = active[position]
        if path is avoid:
            if len(active) == 1:
                return ring.backups[0] if ring.backups else path
            other = (position + 1) % len(active)
            active[position], active[other] = active[other], path
            path = active[position]
        ring.position = position + 1
        return path

    def _go_before(self, plane: int) -> int:
        """The plane after this one, whose turn stays: what this one cannot carry goes first, and planes stay equal."""
        other = self._then
        if other in (NO_PLANE, plane):
            other = self._after[plane]
        self._then = self._after[other]
        return other

    def _take_around(self, ring: PlaneRing, avoid: Path | None) -> Path:
        """As `take`, passing over EVs in SKIP; when there is nothing else, the one skipped longest ago (ours: otherwise
        marks would shift load between planes)."""
        self._passes_left = self.passes_a_packet
        if ring.all_skip():
            # A retransmission would rather wait longer, or take a backup, than meet the same queue again.
            choice = (*ring.active, *ring.backups) if ring.active == [avoid] else ring.active
            oldest = min(choice, key=lambda path: (path is avoid, path.skipped))
            passed = self._next(ring)
            while passed is oldest and len(ring.active) > 1:
                passed = self._next(ring)
            self._pass(ring, passed)
            return oldest
        path = self._next(ring)
        passed_over: list[Path] = []
        while path.penalty:
            self._pass(ring, path)
            passed_over.append(path)
            path = self._next(ring, passed_over)
        if path is avoid:
            others = [other for other in (ring.active if len(ring.active) > 1 else ring.backups) if other is not avoid]
            rested = [other for other in others if not other.penalty and other not in passed_over]
            return min(rested or others, key=lambda other: (other.penalty > 0, other.skipped), default=path)
        return path

    def _next(self, ring: PlaneRing, passed_over: Sequence[Path] = ()) -> Path:
        """The EV whose place in the turn it is, whatever its state. In a new turn those that this packet has passed
        over come last, so that it takes none that it has brought back."""
        if ring.position >= len(ring.active):
            self._prng.shuffle(ring.active)
            ring.active.sort(key=lambda path: path in passed_over)
            ring.position = 0
            for path in ring.backups:
                self._pass(ring, path)
        path = ring.active[ring.position]
        ring.position += 1
        return path

    def _pass(self, ring: PlaneRing, path: Path) -> None:
        """The rotation has passed this EV over once."""
        if path.penalty and self._passes_left:
            self._passes_left -= 1
            path.penalty -= 1
            if not path.penalty:
                ring.skipping -= 1
                self._evs.rested(path)
