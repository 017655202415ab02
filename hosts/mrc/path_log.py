"""What snapshots tell of paths: data packets sent on each and lost there, since they told of it last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mrc_testbed.hosts.mrc.paths import PathId

MOST = 256
"""Paths that one snapshot tells of, unless one peer has more: a host with more tells of its peers in turn."""

Counts = list[tuple[PathId, int, int]]
"""Of each path: packets sent on it, and lost."""


class CountsPaths(Protocol):
    """An endpoint, as far as this needs one."""

    def path_counts(self, peer: int) -> Counts:
        """Those of the paths to a peer, always in the same order."""


class PathLog:
    """Counts since the last time, of the paths of one host."""

    def __init__(self, endpoint: CountsPaths, peers: Mapping[int, str]) -> None:
        """`peers`: host number to name; the endpoint must know them."""
        self._endpoint = endpoint
        self._peers = list(peers.items())
        self._next = 0
        """Which peer is told of next."""
        self._told: dict[int, Counts] = {}

    def take(self) -> dict[str, object]:
        """`sent_by_path`: by peer the packets sent on each of its paths, in the order of `configure`, peers without any
        left out; `lost_by_path`: by peer and `plane/uplink` those lost, where there are some."""
        sent: dict[str, list[int]] = {}
        lost: dict[str, dict[str, int]] = {}
        paths = 0
        for _ in self._peers:
            peer, name = self._peers[self._next]
            counts = self._endpoint.path_counts(peer)
            if paths and paths + len(counts) > MOST:
                break
            paths += len(counts)
            self._next = (self._next + 1) % len(self._peers)
            before = self._told.get(peer) or [(path, 0, 0) for path, _, _ in counts]
            self._told[peer] = counts
            if any(new := [now[1] - old[1] for now, old in zip(counts, before, strict=True)]):
                sent[name] = new
            if gone := _lost(counts, before):
                lost[name] = gone
        return {"sent_by_path": sent, "lost_by_path": lost}


def _lost(counts: Counts, before: Counts) -> dict[str, int]:
    pairs = zip(counts, before, strict=True)
    return {f"{plane}/{uplink}": now - old for ((plane, uplink), _, now), (_, _, old) in pairs if now > old}
