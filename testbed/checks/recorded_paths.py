"""Packets that each host of a finished run sent and lost on each path, stretch by stretch. Pure.

Hosts tell of their paths. Where they did not, it is reckoned from what they sent and lost in all: what a host sent
between two snapshots is divided among its paths in use, by how much each carried in the whole run. What vanished
meanwhile is put down to the paths that it retired for it. So a path that loses without being retired is not seen, and
losses of two paths at once may change places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.evidence.events import ASSUMED_BAD
from mrc_testbed.testbed.evidence.snapshots import Snapshot
from mrc_testbed.testbed.evidence.told_paths import (
    HostPath,
    PathCount,
    Retirements,
    ToldPaths,
    first_lost,
    paths_between,
)
from mrc_testbed.topos.usid import PathId

_BLAMED = ("lost_overtaken", "lost_reordered", "lost_probed", "lost_timeout")
"""Counters of packets that vanished without explanation."""
_UNUSED = (ASSUMED_BAD, "DENIED")
_REMEMBERED = 3
"""Snapshots for which a retired path still takes losses that show later."""


def tells_paths(record: RunRecord) -> bool:
    """True if hosts told what they sent and lost by path. Those of earlier versions did not."""
    return any(shot.sent_by_path is not None for shot in record.snapshots.last().values())


def told(record: RunRecord) -> Iterator[tuple[Snapshot, list[PathCount]]]:
    """Each snapshot, with what its host tells of its paths."""
    reader = ToldPaths(record.scenario, record.plan, retirements(record))
    for shot in record.snapshots.thinned(0):
        yield shot, reader.take(shot)


def reckoned(record: RunRecord) -> Iterator[tuple[Snapshot, list[PathCount]]]:
    """Each snapshot, with what can be reckoned of the paths of its host since the one before."""
    hosts: dict[str, _HostPaths] = {}
    for shot in record.snapshots.thinned(0):
        if shot.host not in hosts:
            hosts[shot.host] = _HostPaths(record, shot)
            yield shot, []
        else:
            yield shot, hosts[shot.host].advance(shot)


class _HostPaths:
    """The paths of one host: how much of its data each takes, and what it has lost."""

    def __init__(self, record: RunRecord, first: Snapshot) -> None:
        self._record, self._last = record, first
        self._shares = _shares(record, first.host)
        self._rest = dict.fromkeys(self._shares, 0.0)
        """What is left of a packet."""
        self._retired: deque[list[HostPath]] = deque(maxlen=_REMEMBERED)

    def advance(self, shot: Snapshot) -> list[PathCount]:
        """What happened since the last one."""
        begin_ns, end_ns = self._last.t_ns, shot.t_ns
        sent = self._sent(_grown(self._last, shot, "data_sent"), begin_ns, end_ns)
        lost = self._lost(sum(_grown(self._last, shot, name) for name in _BLAMED), begin_ns, end_ns)
        self._last = shot
        return [
            PathCount(
                *(key[0], key[1], PathId(key[2], key[3])),
                *(begin_ns, end_ns, sent.get(key, 0), lost.get(key, 0)),
                first_lost(retirements(self._record), key, begin_ns, end_ns) if key in lost else 0,
            )
            for key in sent.keys() | lost.keys()
            if sent.get(key) or lost.get(key)
        ]

    def _sent(self, packets: int, begin_ns: int, end_ns: int) -> dict[HostPath, int]:
        used = {key: share * _part_in_use(self._record, key, begin_ns, end_ns) for key, share in self._shares.items()}
        total = sum(used.values())
        found = {}
        for key, share in used.items() if total else ():
            exact = self._rest[key] + packets * share / total
            found[key] = int(exact)
            self._rest[key] = exact - found[key]
        return found

    def _lost(self, packets: int, begin_ns: int, end_ns: int) -> dict[HostPath, int]:
        known = retirements(self._record)
        self._retired.append(
            [key for key in self._shares if _one_within(known.get(key, ((), ()))[0], begin_ns, end_ns)]
        )
        guilty = next((keys for keys in reversed(self._retired) if keys), [])
        packets = max(packets, len(self._retired[-1]))
        return {key: packets // len(guilty) + (number < packets % len(guilty)) for number, key in enumerate(guilty)}


def _shares(record: RunRecord, host: str) -> dict[HostPath, float]:
    """What each path carried in the whole run; of a run that was killed the same, on those that events name."""
    counted: dict[HostPath, float] = {}
    for peer, ways in record.paths.get(host, {}).items():
        for way, packets in ways.items():
            plane, _, number = way.partition("/")
            if plane.isdecimal() and number.isdecimal():
                counted[host, peer, int(plane), int(number)] = packets
    if counted:
        return counted
    peers = {change.peer for change in record.ev_changes if change.host == host}
    ids = ((peer, path) for peer in sorted(peers) for path in paths_between(record.scenario, record.plan, host, peer))
    return {(host, peer, path.plane, path.uplink): 1.0 for peer, path in ids}


@derived
def _changes(record: RunRecord) -> dict[HostPath, tuple[list[int], list[bool]]]:
    """By path: when it came into use or left it, and which."""
    found: dict[HostPath, tuple[list[int], list[bool]]] = {}
    for change in record.ev_changes:
        times, used = found.setdefault(change.path, ([], []))
        times.append(change.t_ns)
        used.append(change.new not in _UNUSED)
    return found


def _part_in_use(record: RunRecord, key: HostPath, begin_ns: int, end_ns: int) -> float:
    times, used = _changes(record).get(key, ((), ()))
    number = bisect_right(times, begin_ns)
    on, at_ns, total = used[number - 1] if number else True, begin_ns, 0
    while at_ns < end_ns:
        next_ns = min(times[number], end_ns) if number < len(times) else end_ns
        total += on * (next_ns - at_ns)
        if number < len(times):
            on = used[number]
        number, at_ns = number + 1, next_ns
    return total / (end_ns - begin_ns) if end_ns > begin_ns else float(on)


@derived
def retirements(record: RunRecord) -> Retirements:
    """Retirements of the whole run."""
    found: Retirements = {}
    for change in record.ev_changes:
        if change.retired:
            times, first = found.setdefault(change.path, ([], []))
            times.append(change.t_ns)
            first.append(change.first_lost_tx_ns)
    return found


def _one_within(times: list[int] | tuple[()], begin_ns: int, end_ns: int) -> bool:
    number = bisect_right(times, begin_ns)
    return number < len(times) and times[number] <= end_ns


def _grown(before: Snapshot, after: Snapshot, name: str) -> int:
    return max(after.counters.get(name, 0) - before.counters.get(name, 0), 0)
