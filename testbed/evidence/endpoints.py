"""Evidence for the mapper from endpoints: packets by path, ports without carrier, probes. Pure.

The same code reads a run that goes on and one that is over: snapshot by snapshot, period by period. Where the network
chooses the path of a packet, what it may have crossed is known in part: the links that all ways have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from mrc_testbed.testbed.evidence.events import PortChange
from mrc_testbed.testbed.evidence.late_packets import LatePackets
from mrc_testbed.testbed.evidence.probes import ProbeEvidence
from mrc_testbed.testbed.evidence.snapshots import Snapshot
from mrc_testbed.testbed.evidence.told_paths import PathCount
from mrc_testbed.testbed.mapper.evidence import Observation, Witness
from mrc_testbed.testbed.mapper.suspects import Elements, SuspectTable, in_common
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.usid import PathId

PERIOD_NS = 200_000_000
"""Hosts tell five times a second."""
SETTLE = 2
"""Periods until all that endpoints sent after a loss has been told: the `settle` of `PathMapper`."""
CARRIER_PACKETS = 20
"""Weight of a port's state: this number of packets that were all lost, or all arrived, in each period."""
MOST_CONGESTED = 0.5
"""The most that is put down to full queues: the share of packets that they cut, or that are late by them."""
_TRIMMED = ("lost_trimmed", "lost_trimmed_lasthop")
_LATE_PERIODS = 3
"""For which a packet that was taken for lost may still arrive: that of its loss, the next one, and one more."""
_DOWN, _UP = "DOWN", "UP"
_Place = tuple[str, PathId]


def period_of(scenario: Scenario, probe_period_ns: int | None) -> int:
    """The period of the mapper in a run of it: that of the probes, if it hears some, but no shorter than snapshots are
    apart, if it hears endpoints."""
    if probe_period_ns and not hears_endpoints(scenario):
        return probe_period_ns
    return max(_snapshots_apart_ns(scenario), probe_period_ns or 0)


def hears_endpoints(scenario: Scenario) -> bool:
    """True if what endpoints tell is to be heard: unless the scenario has a mapper that shall not."""
    return scenario.mapper is None or Witness.ENDPOINTS in scenario.mapper.evidence


def _snapshots_apart_ns(scenario: Scenario) -> int:
    return PERIOD_NS // scenario.shape().speed


class RunEvidence:
    """All that is heard in a run. `probes`: None where its hosts send none."""

    def __init__(self, scenario: Scenario, plan: Plan, table: SuspectTable) -> None:
        self.endpoints = EndpointEvidence(scenario, plan, table)
        probed = scenario.mapper is not None and scenario.mapper.probes and scenario.transport.names_paths
        self.probes = ProbeEvidence(scenario, plan, table) if probed else None

    def end(self) -> None:
        """Nothing is told any more."""
        self.endpoints.end()

    def turn(self, end_ns: int) -> list[Observation]:
        """A period is over: what became known in it."""
        probed = self.probes.turn() if self.probes is not None else []
        return [*self.endpoints.turn(end_ns), *probed]


class EndpointEvidence:
    """Takes what endpoints of a run tell, each host in order of time, and gives what became known period by period."""

    def __init__(self, scenario: Scenario, plan: Plan, table: SuspectTable) -> None:
        self._routes = PathRoutesSeen(scenario, plan, table)
        self._settling = SettlingCounts(scenario.shape().rtt_ns)
        self._late = LatePackets(_LATE_PERIODS * _snapshots_apart_ns(scenario))
        self._carriers = Carriers(plan, table, _snapshots_apart_ns(scenario))
        self._found: list[Observation] = []

    def counted(self, shot: Snapshot, rows: Iterable[PathCount]) -> None:
        """A host's snapshot, and what it tells of its paths."""
        counts = list(rows)
        self._late.take(shot, counts)
        self._found += map(self._observed, self._settling.take(shot, counts))

    def _observed(self, row: PathCount) -> Observation:
        congested = min(row.congested + self._late.share(row.peer), MOST_CONGESTED)
        return self._routes.observed(replace(row, congested=congested))

    def port(self, change: PortChange) -> None:
        """A port changed its state, as a host saw it."""
        self._found += self._carriers.take(change)

    def end(self) -> None:
        """No snapshot comes any more: what waited for the next one counts as it is."""
        self._found += map(self._observed, self._settling.rest())

    def turn(self, end_ns: int) -> list[Observation]:
        """A period is over: what became known in it."""
        found = [*self._found, *self._carriers.turn(end_ns)]
        self._found = []
        return found


class PathRoutesSeen:
    """The links that packets on each path of each host cross, as far as hosts can know."""

    def __init__(self, scenario: Scenario, plan: Plan, table: SuspectTable) -> None:
        self._scenario, self._plan, self._table = scenario, plan, table
        self._known: dict[tuple[str, str, PathId], tuple[Elements, bool]] = {}

    def observed(self, row: PathCount) -> Observation:
        """A count as evidence. Where packets may have gone several ways, those that arrived speak for what all ways
        share; the lost ones say nothing, as they may have been lost on any."""
        key = row.host, row.peer, row.path
        if key not in self._known:
            self._known[key] = self._route(*key)
        route, certain = self._known[key]
        times = row.begin_ns, row.end_ns
        if not certain:
            return Observation(route, *times, row.sent - row.lost, 0, row.host)
        counts = row.sent, row.lost
        return Observation(route, *times, *counts, row.host, row.first_lost_ns, congested=row.congested)

    def _route(self, host: str, peer: str, path: PathId) -> tuple[Elements, bool]:
        """The links that are crossed for certain, and whether these are all."""
        plan, names_paths = self._plan, self._scenario.transport.names_paths
        src, dst = plan.host_by_name[host], plan.host_by_name[peer]
        ids = [path] if names_paths else [one.id for one in plan.paths(src, dst) if one.id.plane == path.plane]
        ways = [self._table.crossed(host, plan.links_on_path(src, dst, each)) for each in ids]
        return in_common(ways), len(set(ways)) == 1


class SettlingCounts:
    """Holds counts back for a snapshot. A loss is noticed some round trips after the packet left, so each row waits for
    the next one, which may tell of more. A host that was late by more than T says nothing of that time.

    A packet that a full queue cut may be taken for lost before its NACK is there. So of a host whose packets were cut,
    now or in the time before, as many losses need no other cause.
    """

    def __init__(self, rtt_ns: int) -> None:
        self._rtt_ns = rtt_ns
        self._cut: dict[str, tuple[int, int, float]] = {}
        """By host: packets that were cut, and sent, until its last snapshot; the share since the one before."""
        self._waiting: dict[str, dict[_Place, PathCount]] = {}
        self._latest: dict[str, int] = {}

    def take(self, shot: Snapshot, rows: Iterable[PathCount]) -> Iterator[PathCount]:
        """Counts of a host's paths until the snapshot before this one."""
        was_late = shot.latest_ns > max(self._latest.get(shot.host, 0), self._rtt_ns)
        self._latest[shot.host] = max(shot.latest_ns, self._latest.get(shot.host, 0))
        share = self._congestion(shot)
        new = {} if was_late else {(row.peer, row.path): replace(row, congested=share) for row in rows}
        yield from _settled(self._waiting.get(shot.host, {}), new)
        self._waiting[shot.host] = new

    def _congestion(self, shot: Snapshot) -> float:
        cut, sent = sum(shot.counters.get(name, 0) for name in _TRIMMED), shot.counters.get("data_sent", 0)
        cut_before, sent_before, share_before = self._cut.get(shot.host, (cut, sent, 0.0))
        share = (cut - cut_before) / (sent - sent_before) if sent > sent_before else 0.0
        self._cut[shot.host] = cut, sent, min(max(share, 0.0), MOST_CONGESTED)
        return max(self._cut[shot.host][2], share_before)

    def rest(self) -> Iterator[PathCount]:
        """The counts that still wait."""
        for rows in self._waiting.values():
            yield from rows.values()
        self._waiting.clear()


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


class Carriers:
    """Hosts speak of their own ports: all is lost while one is down, and nothing when it is up again."""

    def __init__(self, plan: Plan, table: SuspectTable, length_ns: int) -> None:
        self._plan, self._table, self._length_ns = plan, table, length_ns
        self._down: dict[tuple[str, int], tuple[int, int]] = {}
        """By host and plane of the ports that are down: since when, and until when that has been told."""

    def take(self, change: PortChange) -> Iterator[Observation]:
        """A port changed its state, as a host saw it."""
        port = change.host, change.plane
        if change.peer or change.host not in self._plan.host_by_name:
            return
        if change.state == _DOWN:
            self._down.setdefault(port, (change.t_ns, change.t_ns))
        elif change.state == _UP and port in self._down:
            since_ns, told_ns = self._down.pop(port)
            if change.t_ns > told_ns:
                yield self._row(port, told_ns, change.t_ns, since_ns)
            yield self._row(port, change.t_ns, change.t_ns + self._length_ns, 0)

    def turn(self, end_ns: int) -> Iterator[Observation]:
        """A period is over: of each port that is down."""
        for port, (since_ns, told_ns) in self._down.items():
            if end_ns > told_ns:
                self._down[port] = since_ns, end_ns
                yield self._row(port, told_ns, end_ns, since_ns)

    def _row(self, port: tuple[str, int], begin_ns: int, end_ns: int, down_ns: int) -> Observation:
        host, plane = port
        link = next(one for one in self._plan.links_of(host) if one.plane == plane)
        route = self._table.crossed(host, [link.name, link.name])
        lost = CARRIER_PACKETS if down_ns else 0
        return Observation(route, begin_ns, end_ns, CARRIER_PACKETS, lost, host, down_ns)
