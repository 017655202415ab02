"""What each host sent and lost on each path, stretch by stretch, as its snapshots tell it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mrc_testbed.testbed.evidence.snapshots import Snapshot
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.evs import ev_ids
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.usid import PathId

MOST_TOLD = 256
"""Paths that a host reports at a time; one with more tells of its peers in turn (hosts/mrc/path_log.py)."""
HostPath = tuple[str, str, int, int]
"""Host, peer, plane and number, as `EvChange.path`."""
Retirements = dict[HostPath, tuple[list[int], list[int]]]
"""By path: when it was retired each time, and when the packet had left whose loss did that."""


@dataclass(frozen=True, slots=True)
class PathCount:
    """`sent` packets left `host` for `peer` on a path between two moments, and `lost` of them vanished.
    `first_lost_ns`: when the first of these left; 0: not known. `congested`: as in `Observation`."""

    host: str
    peer: str
    path: PathId
    begin_ns: int
    end_ns: int
    sent: int
    lost: int
    first_lost_ns: int = 0
    congested: float = 0.0

    @property
    def key(self) -> HostPath:
        """Whose path it is."""
        return self.host, self.peer, self.path.plane, self.path.uplink


class ToldPaths:
    """Reads what hosts tell of their paths, snapshot by snapshot. What a host tells of a peer counts from when it told
    of that one last; with few paths that is the snapshot before."""

    def __init__(self, scenario: Scenario, plan: Plan, retired: Retirements | None = None) -> None:
        """`retired`: those of the whole run, where they are known; else `retire` tells of each."""
        self._scenario, self._plan = scenario, plan
        self._retired: Retirements = {} if retired is None else retired
        self._paths: dict[tuple[str, str], Sequence[PathId]] = {}
        self._since: dict[tuple[str, str], int] = {}
        self._before: dict[str, int] = {}

    def retire(self, path: HostPath, t_ns: int, first_lost_tx_ns: int) -> None:
        """A path was retired, before the snapshot that tells of it."""
        times, first = self._retired.setdefault(path, ([], []))
        times.append(t_ns)
        first.append(first_lost_tx_ns)

    def take(self, shot: Snapshot) -> list[PathCount]:
        """What a host tells of its paths, the snapshots of each in order of time."""
        rows: list[PathCount] = []
        peers = sorted({*(shot.sent_by_path or ()), *shot.lost_by_path})
        for key in ((shot.host, peer) for peer in peers):
            if key not in self._paths:
                self._paths[key] = paths_between(self._scenario, self._plan, *key)
                self._since[key] = self._before.get(shot.host, shot.t_ns)
            rows += self._rows(shot, key)
        mine = [key for key in self._paths if key[0] == shot.host]
        all_told = sum(len(self._paths[key]) for key in mine) <= MOST_TOLD
        self._since |= {key: shot.t_ns for key in mine if all_told or key[1] in peers}
        self._before[shot.host] = shot.t_ns
        return rows

    def _rows(self, shot: Snapshot, key: tuple[str, str]) -> Iterator[PathCount]:
        (host, peer), begin_ns = key, self._since[key]
        sent = (shot.sent_by_path or {}).get(peer) or [0] * len(self._paths[key])
        lost = shot.lost_by_path.get(peer, {})
        for path, count in zip(self._paths[key], sent, strict=False):
            gone = lost.get(f"{path.plane}/{path.uplink}", 0)
            if gone:
                first_ns = first_lost(self._retired, (host, peer, path.plane, path.uplink), begin_ns, shot.t_ns)
                yield PathCount(host, peer, path, begin_ns, shot.t_ns, count, gone, first_ns)
            elif count:
                yield PathCount(host, peer, path, begin_ns, shot.t_ns, count, 0)


def paths_between(scenario: Scenario, plan: Plan, host: str, peer: str) -> Sequence[PathId]:
    """In the order in which a host tells of them; none for names that are not in the plan."""
    hosts = plan.host_by_name
    if host == peer or not {host, peer} <= hosts.keys():
        return ()
    return ev_ids(scenario, plan, hosts[host], hosts[peer])


def first_lost(known: Retirements, path: HostPath, begin_ns: int, end_ns: int) -> int:
    """When the first packet left whose loss retired this path in that time; 0: none did, or nobody knows."""
    times, first = known.get(path, ((), ()))
    number = bisect_right(times, begin_ns)
    return first[number] if number < len(times) and times[number] <= end_ns else 0
