"""What each host sent and lost on each path, stretch by stretch, as its snapshots tell it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.snapshots import Snapshot
from mrc_testbed.testbed.scenario.model.evs import ev_ids
from mrc_testbed.topos.usid import PathId

MOST_TOLD = 256
"""Paths of which a host tells at a time; one with more tells of its peers in turn (hosts/mrc/path_log.py)."""
HostPath = tuple[str, str, int, int]
"""Host, peer, plane and number, as `EvChange.path`."""


@dataclass(frozen=True, slots=True)
class PathCount:
    """`sent` packets left `host` for `peer` on a path between two moments, and `lost` of them vanished.
    `first_lost_ns`: when the first of these left; 0: not known."""

    host: str
    peer: str
    path: PathId
    begin_ns: int
    end_ns: int
    sent: int
    lost: int
    first_lost_ns: int = 0

    @property
    def key(self) -> HostPath:
        """Whose path it is."""
        return self.host, self.peer, self.path.plane, self.path.uplink


def tells_paths(record: RunRecord) -> bool:
    """True if hosts told what they sent and lost by path. Those of earlier versions did not."""
    return any(shot.sent_by_path is not None for shot in record.snapshots.last().values())


def told(record: RunRecord) -> Iterator[tuple[Snapshot, list[PathCount]]]:
    """Each snapshot, with what its host tells of its paths. What it tells of a peer counts from when it told of that
    one last; with few paths that is the snapshot before."""
    paths: dict[tuple[str, str], Sequence[PathId]] = {}
    since: dict[tuple[str, str], int] = {}
    before: dict[str, int] = {}
    for shot in record.snapshots.thinned(0):
        rows: list[PathCount] = []
        peers = sorted({*(shot.sent_by_path or ()), *shot.lost_by_path})
        for key in ((shot.host, peer) for peer in peers):
            if key not in paths:
                paths[key] = paths_between(record, *key)
                since[key] = before.get(shot.host, shot.t_ns)
            rows += _rows(record, shot, key[1], paths[key], since[key])
        mine = [key for key in paths if key[0] == shot.host]
        all_told = sum(len(paths[key]) for key in mine) <= MOST_TOLD
        since |= {key: shot.t_ns for key in mine if all_told or key[1] in peers}
        before[shot.host] = shot.t_ns
        yield shot, rows


def _rows(record: RunRecord, shot: Snapshot, peer: str, paths: Sequence[PathId], begin_ns: int) -> Iterator[PathCount]:
    sent = (shot.sent_by_path or {}).get(peer) or [0] * len(paths)
    lost = shot.lost_by_path.get(peer, {})
    for path, count in zip(paths, sent, strict=False):
        gone = lost.get(f"{path.plane}/{path.uplink}", 0)
        if gone:
            first_ns = first_lost_ns(record, (shot.host, peer, path.plane, path.uplink), begin_ns, shot.t_ns)
            yield PathCount(shot.host, peer, path, begin_ns, shot.t_ns, count, gone, first_ns)
        elif count:
            yield PathCount(shot.host, peer, path, begin_ns, shot.t_ns, count, 0)


def paths_between(record: RunRecord, host: str, peer: str) -> Sequence[PathId]:
    """In the order in which a host tells of them; none for names that are not in the plan."""
    hosts = record.plan.host_by_name
    if host == peer or not {host, peer} <= hosts.keys():
        return ()
    return ev_ids(record.scenario, record.plan, hosts[host], hosts[peer])


@derived
def retirements(record: RunRecord) -> dict[HostPath, tuple[list[int], list[int]]]:
    """By path: when it was retired each time, and when the packet had left whose loss did that."""
    found: dict[HostPath, tuple[list[int], list[int]]] = {}
    for change in record.ev_changes:
        if change.retired:
            times, first = found.setdefault(change.path, ([], []))
            times.append(change.t_ns)
            first.append(change.first_lost_tx_ns)
    return found


def first_lost_ns(record: RunRecord, path: HostPath, begin_ns: int, end_ns: int) -> int:
    """When the first packet left whose loss retired this path in that time; 0: none did, or nobody knows."""
    times, first = retirements(record).get(path, ((), ()))
    number = bisect_right(times, begin_ns)
    return first[number] if number < len(times) and times[number] <= end_ns else 0
