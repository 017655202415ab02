"""What a denylist entry of the runner means in paths of this host (P1 2.4, 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mrc_testbed.hosts.control import CommandError, number_in, text_in
from mrc_testbed.hosts.mrc.paths import PathId
from mrc_testbed.hosts.udp import Address


class ObeysDenials(Protocol):
    """An endpoint, as far as this needs one."""

    def deny(self, peer: int, paths: Sequence[PathId]) -> None:
        """As mrc_testbed.hosts.mrc.endpoint.Endpoint."""

    def allow(self, peer: int, paths: Sequence[PathId], now_ns: int) -> None:
        """As mrc_testbed.hosts.mrc.endpoint.Endpoint."""


class Denylist:
    """Entries are `{"plane": n}`, narrowed by `"uplink"` (else the whole plane) and `"peer"` (a name, else all)."""

    def __init__(
        self,
        endpoint: ObeysDenials,
        peers: Mapping[str, int],
        paths: Mapping[int, Sequence[tuple[int, int, Address]]],
    ) -> None:
        """`peers`: name to host number; `paths`: the path table of each."""
        self._endpoint = endpoint
        self._peers = peers
        self._paths = paths

    def deny(self, rows: Sequence[Any]) -> None:
        """Use these paths no more. Raises CommandError, and nothing changes, when a row names none."""
        for peer, paths in self._select(rows):
            self._endpoint.deny(peer, paths)

    def allow(self, rows: Sequence[Any], now_ns: int) -> None:
        """Undo `deny`. Raises as it does."""
        for peer, paths in self._select(rows):
            self._endpoint.allow(peer, paths, now_ns)

    def _select(self, rows: Sequence[Any]) -> list[tuple[int, list[tuple[int, int]]]]:
        """The (plane, uplink) paths that the entries name, by peer."""
        chosen: dict[int, list[tuple[int, int]]] = {}
        for row in rows:
            found = self._matches(row)
            if not found:
                raise CommandError(f"no path matches the denylist entry {row!r}")
            for peer, path in found:
                chosen.setdefault(peer, []).append(path)
        return list(chosen.items())

    def _matches(self, row: Any) -> list[tuple[int, tuple[int, int]]]:
        plane = number_in(row, "plane")
        uplink = number_in(row, "uplink") if "uplink" in row else None
        peer = self._peers.get(text_in(row, "peer"), -1) if "peer" in row else None
        return [
            (host, (p, u))
            for host, paths in self._paths.items()
            for p, u, _ in paths
            if peer in (None, host) and p == plane and uplink in (None, u)
        ]
