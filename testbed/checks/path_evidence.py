"""What endpoints have seen of the fabric, as evidence for the mapper: packets by path, and ports without carrier. Pure.

Where the network chooses the path of a packet, what it may have crossed is known in part: the links that all ways have
in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from heapq import merge

from mrc_testbed.testbed.checks.reckoned_paths import reckoned
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.told_paths import PathCount, tells_paths, told
from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import Elements, SuspectTable, in_common
from mrc_testbed.topos.usid import PathId

PERIOD_NS = 200_000_000
"""Hosts tell five times a second."""
SETTLE = 2
"""Periods until all that endpoints sent after a loss has been told: the `settle` of `PathMapper`."""
GRACE = 10
"""Periods that endpoints may take until they know that something is well again: their probes come less often then."""
CARRIER_PACKETS = 20
"""What the state of a port is worth: as many packets that were all lost, or all arrived, in each period."""
_DOWN, _UP = "DOWN", "UP"
_Place = tuple[str, PathId]


def period_ns(record: RunRecord) -> int:
    """How far apart snapshots are."""
    return PERIOD_NS // record.scenario.shape().speed


def evidence(record: RunRecord, table: SuspectTable) -> Iterator[tuple[int, list[Observation]]]:
    """Period by period: when it ends, and what became known in it. Empty where endpoints told nothing."""
    length_ns = period_ns(record)
    routes = PathRoutesSeen(record, table)
    rows = ((t_ns, [routes.observed(row) for row in counts]) for t_ns, counts in settled_counts(record))
    end_ns, found = 0, list[Observation]()
    for t_ns, observations in merge(rows, _carrier(record, table, length_ns), key=lambda row: row[0]):
        while end_ns and t_ns > end_ns:
            yield end_ns, found
            end_ns, found = end_ns + length_ns, []
        end_ns = end_ns or t_ns + length_ns
        found += observations
    if end_ns:
        yield end_ns, found


class PathRoutesSeen:
    """What packets on each path of each host cross, as far as hosts can know."""

    def __init__(self, record: RunRecord, table: SuspectTable) -> None:
        self._record, self._table = record, table
        self._known: dict[tuple[str, str, PathId], Elements] = {}

    def observed(self, row: PathCount) -> Observation:
        """A count as evidence."""
        key = row.host, row.peer, row.path
        if key not in self._known:
            self._known[key] = self._route(*key)
        route = self._known[key]
        return Observation(route, row.begin_ns, row.end_ns, row.sent, row.lost, row.host, row.first_lost_ns)

    def _route(self, host: str, peer: str, path: PathId) -> Elements:
        plan, names_paths = self._record.plan, self._record.scenario.transport.names_paths
        src, dst = plan.host_by_name[host], plan.host_by_name[peer]
        ids = [path] if names_paths else [one.id for one in plan.paths(src, dst) if one.id.plane == path.plane]
        ways = [self._table.crossed(host, plan.links_on_path(src, dst, each)) for each in ids]
        return in_common(ways)


def settled_counts(record: RunRecord) -> Iterator[tuple[int, list[PathCount]]]:
    """With each snapshot of a host: when it was taken, and what is known of its paths until the one before. A loss is
    noticed some round trips after the packet left, so each row waits for the next one, which may tell of more. A host
    that was late by more than T says nothing of that time."""
    waiting: dict[str, dict[_Place, PathCount]] = {}
    latest: dict[str, int] = {}
    for shot, rows in (told if tells_paths(record) else reckoned)(record):
        was_late = shot.latest_ns > max(latest.get(shot.host, 0), record.scenario.shape().rtt_ns)
        latest[shot.host] = max(shot.latest_ns, latest.get(shot.host, 0))
        new = {} if was_late else {(row.peer, row.path): row for row in rows}
        yield shot.t_ns, list(_settled(waiting.get(shot.host, {}), new))
        waiting[shot.host] = new
    for host, last in waiting.items():
        yield record.snapshots.times_ns(host)[-1], list(last.values())


def _settled(before: Mapping[_Place, PathCount], new: dict[_Place, PathCount]) -> Iterator[PathCount]:
    """The rows of before, as far as `new` says nothing else of them; changes those of `new` that they are a part of."""
    for place, row in before.items():
        later = new.get(place)
        if later is None or not later.lost:
            yield row
        elif not row.lost:
            new[place] = replace(later, begin_ns=row.begin_ns, sent=row.sent + later.sent)
        else:
            excess = max(later.lost - later.sent, 0)
            new[place] = replace(later, lost=later.lost - excess)
            yield _possible(replace(row, lost=row.lost + excess))
    for place, row in new.items():
        new[place] = _possible(row)


def _possible(row: PathCount) -> PathCount:
    """No more can be lost than was sent."""
    return replace(row, sent=row.lost) if row.lost > row.sent else row


def _carrier(record: RunRecord, table: SuspectTable, length_ns: int) -> Iterator[tuple[int, list[Observation]]]:
    """What hosts say of their own ports: all is lost while one is down, and nothing when it is up again."""
    found = [row for (host, plane), changes in _own_ports(record).items() for row in _spells(host, plane, changes)]
    rows = []
    for host, plane, begin_ns, end_ns, down in found:
        link = next(one for one in record.plan.links_of(host) if one.plane == plane)
        route = table.crossed(host, [link.name, link.name])
        for at_ns in range(begin_ns, end_ns or record.end_ns, length_ns) if down else (begin_ns,):
            until_ns = min(at_ns + length_ns, end_ns) if down and end_ns else at_ns + length_ns
            lost = CARRIER_PACKETS if down else 0
            rows.append((until_ns, Observation(route, at_ns, until_ns, CARRIER_PACKETS, lost, host, begin_ns * down)))
    for t_ns, row in sorted(rows, key=lambda each: each[0]):
        yield t_ns, [row]


def _own_ports(record: RunRecord) -> dict[tuple[str, int], list[tuple[int, str]]]:
    found: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for change in record.port_changes:
        if not change.peer and change.host in record.plan.host_by_name:
            found.setdefault((change.host, change.plane), []).append((change.t_ns, change.state))
    return found


def _spells(host: str, plane: int, changes: list[tuple[int, str]]) -> Iterator[tuple[str, int, int, int, bool]]:
    """Host, plane, begin, end (0: it goes on), and whether the port was down."""
    down_ns = 0
    for t_ns, state in changes:
        if state == _DOWN:
            down_ns = down_ns or t_ns
        elif state == _UP and down_ns:
            yield host, plane, down_ns, t_ns, True
            yield host, plane, t_ns, t_ns, False
            down_ns = 0
    if down_ns:
        yield host, plane, down_ns, 0, True
