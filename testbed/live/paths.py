"""Number of EVs per state, by the T1 that they cross, where that is known. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.topos.plan import Plan

LOCAL = "local"
"""Replaces the uplink for paths inside one group, which cross no T1."""
HASHED = "hashed"
"""The same of EVs that switches hash: they may cross any T1 of their plane."""
GOOD = "GOOD"
COUNTED = {GOOD: "good", "SKIP": "skip", "ASSUMED_BAD": "bad", "DENIED": "denied"}
"""The states of an EV, and the names of their counts."""


class EvTiles:
    """Counts by plane and uplink over all ordered pairs of hosts that share a QP.

    All EVs start as GOOD. Unknown paths and states are ignored, so that the counts of a tile always add up to its
    paths.
    """

    def __init__(self, plan: Plan, pairs: Iterable[tuple[str, str]], hashed: tuple[int, int] | None = None) -> None:
        """`hashed`: EVs a plane towards a host of the same group, and of another one, where switches hash them."""
        self._is_hashed = hashed is not None
        self._group = {host.name: host.group for host in plan.hosts}
        self._pairs = {ordered for src, dst in pairs for ordered in ((src, dst), (dst, src))}
        local = sum(self._is_local(*pair) for pair in self._pairs)
        far, planes = len(self._pairs) - local, range(plan.shape.planes)
        totals: dict[tuple[int, int | str], int] = {}
        if hashed is None:
            totals |= {(plane, uplink): far for plane in planes for uplink in range(plan.shape.t1)}
            totals |= {(plane, LOCAL): local for plane in planes}
        else:
            totals |= {(plane, HASHED): local * hashed[0] + far * hashed[1] for plane in planes}
        self._counts = {
            tile: {**dict.fromkeys(COUNTED.values(), 0), "good": total} for tile, total in totals.items() if total
        }
        self._states: dict[tuple[str, str, int, int], str] = {}

    def change(self, host: str, peer: str, plane: int, uplink: int, state: str) -> int | str | None:
        """Set the state of a path from `host` to `peer`. Returns the uplink of its tile, None for an unknown path."""
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
        """`{"0/3": {"good": 54, "skip": 1, "bad": 1, "denied": 0}}`; of paths inside a group the uplink is "local",
        of EVs that switches hash "hashed"."""
        return {f"{plane}/{uplink}": dict(counts) for (plane, uplink), counts in self._counts.items()}

    def tile(self, host: str, peer: str, uplink: int) -> int | str:
        """The uplink of the tile of an EV, or what stands for it."""
        if self._is_hashed:
            return HASHED
        return LOCAL if self._is_local(host, peer) else uplink

    def _is_local(self, host: str, peer: str) -> bool:
        return self._group[host] == self._group[peer]
