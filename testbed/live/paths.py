"""Number of EVs per state, by the switch halfway along their path, where that is known. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.evs import evs_a_plane
from mrc_testbed.topos.graph import Way
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan

LOCAL = "local"
"""Replaces the switch for paths below one T0, which cross no other."""
HASHED = "hashed"
"""The same of EVs that switches hash: they may take any way through their plane."""
GOOD = "GOOD"
COUNTED = {GOOD: "good", "SKIP": "skip", "ASSUMED_BAD": "bad", "DENIED": "denied"}
"""The states of an EV, and the names of their counts."""


def halfway(way: Way) -> str:
    """`t1-3`: the highest switch of a way, where it turns down; of a path below one T0 "local"."""
    return LOCAL if len(way) == 1 else str(way[len(way) // 2])


class EvTiles:
    """Counts by plane and switch over all ordered pairs of hosts that share a QP.

    All EVs start as GOOD. Unknown paths and states are ignored, so that the counts of a tile always add up to its
    paths.
    """

    def __init__(self, plan: Plan, pairs: Iterable[tuple[str, str]], hashed: tuple[int, int] | None = None) -> None:
        """`hashed`: EVs a plane towards a host of the same group, and of another one, where switches hash them."""
        self._plan = plan
        self._is_hashed = hashed is not None
        self._pairs = {ordered for src, dst in pairs for ordered in ((src, dst), (dst, src))}
        in_a_plane = self._by_switch() if hashed is None else Counter({HASHED: self._of_hashed(*hashed)})
        planes = range(plan.shape.planes)
        self._counts = {
            (plane, place): {**dict.fromkeys(COUNTED.values(), 0), "good": total}
            for plane in planes
            for place, total in in_a_plane.items()
            if total
        }
        self._states: dict[tuple[str, str, int, int], str] = {}

    def _hosts(self, pair: tuple[str, str]) -> tuple[Host, Host]:
        src, dst = pair
        return self._plan.host_by_name[src], self._plan.host_by_name[dst]

    def _by_switch(self) -> Counter[str]:
        """Paths of a plane by the switch halfway, the lowest tier first, those below one T0 last."""
        found: Counter[str] = Counter()
        examples = {(src.group, dst.group): (src, dst) for src, dst in map(self._hosts, self._pairs)}
        alike = Counter((src.group, dst.group) for src, dst in map(self._hosts, self._pairs))
        for groups, ends in examples.items():
            for way in self._plan.ways(*ends):
                found[halfway(way)] += alike[groups]
        order = [str(place) for place in self._plan.shape.family.switches()]
        return Counter({place: found[place] for place in (*order, LOCAL) if found[place]})

    def _of_hashed(self, near: int, far: int) -> int:
        return sum(near if src.group == dst.group else far for src, dst in map(self._hosts, self._pairs))

    def change(self, host: str, peer: str, plane: int, uplink: int, state: str) -> str | None:
        """Set the state of a path from `host` to `peer`. Returns the switch of its tile, None for an unknown path."""
        if (host, peer) not in self._pairs:
            return None
        tile = self.tile(host, peer, uplink)
        counts = self._counts.get((plane, tile))
        if counts is None or state not in COUNTED:
            return None
        path = (host, peer, plane, uplink)
        counts[COUNTED[self._states.get(path, GOOD)]] -= 1
        counts[COUNTED[state]] += 1
        self._states[path] = state
        return tile

    def counts(self) -> dict[str, dict[str, int]]:
        """`{"0/t1-3": {"good": 54, "skip": 1, "bad": 1, "denied": 0}}`; of paths below one T0 the switch is "local", of
        EVs that switches hash "hashed"."""
        return {f"{plane}/{place}": dict(counts) for (plane, place), counts in self._counts.items()}

    def tile(self, host: str, peer: str, uplink: int) -> str:
        """The switch of the tile of an EV, or what replaces it; empty for a number that no way has."""
        if self._is_hashed:
            return HASHED
        ways = self._plan.ways(*self._hosts((host, peer)))
        return halfway(ways[uplink]) if uplink < len(ways) else ""


def tiles_of(scenario: Scenario, plan: Plan) -> EvTiles:
    """The tiles of a run, with all its EVs; of a transport without EVs there are none."""
    pairs = scenario.job.pairs(plan.shape) if scenario.transport.has_paths else ()
    return EvTiles(plan, pairs, _hashed(scenario, plan))


def _hashed(scenario: Scenario, plan: Plan) -> tuple[int, int] | None:
    """EVs a plane, near and far, where they name no path."""
    if scenario.transport.names_paths:
        return None
    return evs_a_plane(scenario, plan.shape, True), evs_a_plane(scenario, plan.shape, False)
