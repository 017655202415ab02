"""Evidence of endpoints: ways, counts that wait for the next snapshot, ports without carrier."""

from __future__ import annotations

from collections.abc import Sequence

from mrc_testbed.testbed.evidence.endpoints import (
    CARRIER_PACKETS,
    MOST_CONGESTED,
    Carriers,
    PathRoutesSeen,
    SettlingCounts,
)
from mrc_testbed.testbed.evidence.events import PortChange
from mrc_testbed.testbed.evidence.late_packets import LatePackets
from mrc_testbed.testbed.evidence.snapshots import Snapshot
from mrc_testbed.testbed.evidence.told_paths import PathCount
from mrc_testbed.testbed.mapper.evidence import Observation, Witness
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.topos.usid import PathId
from tests.unit.checks.test_folder import PLAN, at

S = 10**9
PERIOD_NS = S // 5
TABLE = SuspectTable(PLAN)
PORT = "h0:p1-t0-0"
FIRST, SECOND = PathId(0, 0), PathId(0, 1)
RTT_NS = 20_000_000
HEAD = """\
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
workload:
  - train: {steps: 8, compute: 100ms, allreduce: 2MiB}
"""


# --- ways ---


def observed(scenario: str, path: PathId) -> Observation:
    loaded = load_scenario_text(scenario)
    seen = PathRoutesSeen(loaded, loaded.plan(), TABLE)
    return seen.observed(PathCount("h0", "h2", path, 5, 9, 4, 1, 7))


def test_a_named_path_is_known_link_by_link() -> None:
    links = ("h0:p0-t0-0", "p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1", "h2:p0-t0-1")
    route = TABLE.crossed("h0", links)
    assert observed(HEAD, PathId(0, 1)) == Observation(route, 5, 9, 4, 1, "h0", 7, Witness.ENDPOINTS)


def test_of_hashed_packets_what_all_ways_share_is_known() -> None:
    hashed = f"{HEAD}transport: mrc-hashed\nendpoint: {{entropies: 8}}\n"
    found = {one.name for one in TABLE.all if one.elements <= set(observed(hashed, PathId(0, 1)).route)}
    assert found == {"h0", "h0:p0-t0-0", "p0-t0-0", "p0-t0-1", "h2:p0-t0-1", "h2"}, "not the T1"


def test_a_hashed_packet_that_was_lost_accuses_nobody() -> None:
    """One of four packets was lost, on any way: three speak for what all ways share."""
    row = observed(f"{HEAD}transport: mrc-hashed\nendpoint: {{entropies: 8}}\n", PathId(0, 1))
    assert (row.sent, row.lost, row.first_lost_ns) == (3, 0, 0)


# --- congestion ---


def counted(number: int, host: str = "h0", **counters: int) -> Snapshot:
    return Snapshot(at(number / 5), host, counters)


def count(sent: int, lost: int = 0, peer: str = "h2") -> PathCount:
    return PathCount("h0", peer, PathId(0, 0), at(1), at(2), sent, lost)


def test_the_share_of_packets_that_were_cut_needs_no_other_cause() -> None:
    """4 of 100 packets were cut, then one of 50."""
    settling = SettlingCounts(S)
    shares = []
    for number, (sent, cut) in enumerate([(0, 0), (100, 4), (150, 5), (150, 5), (200, 5)]):
        found = settling.take(counted(number, data_sent=sent, lost_trimmed=cut), [count(1)])
        shares += [row.congested for row in found]
    shares += [row.congested for row in settling.rest()]
    assert shares == [0, 0.04, 0.04, 0.02, 0], "this time, or the one before"


def test_more_than_half_is_never_put_down_to_queues() -> None:
    settling = SettlingCounts(S)
    for number, cut in enumerate([0, 90]):
        shot = counted(number, data_sent=100 * number, lost_trimmed=cut)
        assert all(row.congested == 0 for row in settling.take(shot, [count(1)]))
    assert [row.congested for row in settling.rest()] == [MOST_CONGESTED]


def test_what_arrives_twice_was_late() -> None:
    """Two of 40 packets to h2 arrived twice; nobody else is concerned, and it is forgotten after 0.6 s."""
    late = LatePackets(3 * PERIOD_NS)
    late.take(counted(1, "h2", duplicates=5), [])
    late.take(counted(2, "h0"), [count(30), count(10), count(99, peer="h3")])
    assert late.share("h2") == 0, "it had counted these before"
    late.take(counted(2, "h2", duplicates=7), [])
    assert late.share("h2") == 2 / 40
    assert late.share("h3") == 0
    late.take(counted(5, "h0"), [count(10)])
    late.take(counted(5, "h2", duplicates=7), [])
    assert late.share("h2") == 0


# --- counts that wait for the next snapshot ---


def shot(seconds: float, latest_ns: int = 0) -> Snapshot:
    return Snapshot(at(seconds), "h0", {}, latest_ns=latest_ns)


def settled(*shots: tuple[Snapshot, Sequence[PathCount]]) -> list[PathCount]:
    counts = SettlingCounts(RTT_NS)
    found = [row for each, rows in shots for row in counts.take(each, rows)]
    return [*found, *counts.rest()]


def row(begin: float, end: float, sent: int, lost: int = 0, path: PathId = FIRST) -> PathCount:
    return PathCount("h0", "h2", path, at(begin), at(end), sent, lost)


def test_a_clean_row_before_a_lossy_one_is_taken_together_with_it() -> None:
    """The loss may be of packets that left in either time."""
    first, second = row(1.0, 1.2, 10), row(1.2, 1.4, 6, 2)
    assert settled((shot(1.2), [first]), (shot(1.4), [second])) == [row(1.0, 1.4, 16, 2)]


def test_clean_rows_stay_as_they_are() -> None:
    rows = [row(1.0, 1.2, 10), row(1.2, 1.4, 6)]
    assert settled((shot(1.2), rows[:1]), (shot(1.4), rows[1:])) == rows


def test_losses_beyond_what_was_sent_belong_to_the_time_before() -> None:
    first, second = row(1.0, 1.2, 10, 3), row(1.2, 1.4, 1, 5)
    assert settled((shot(1.2), [first]), (shot(1.4), [second])) == [row(1.0, 1.2, 10, 7), row(1.2, 1.4, 1, 1)]


def test_no_more_is_lost_than_was_sent() -> None:
    assert settled((shot(1.2), [row(1.0, 1.2, 2, 3)])) == [row(1.0, 1.2, 3, 3)]


def test_paths_wait_each_for_itself() -> None:
    clean, lossy = row(1.0, 1.2, 10), row(1.2, 1.4, 6, 2, SECOND)
    assert settled((shot(1.2), [clean]), (shot(1.4), [lossy])) == [clean, lossy]


def test_a_host_that_was_late_says_nothing_of_that_time() -> None:
    late = shot(1.4, latest_ns=RTT_NS + 1)
    after = shot(1.6, latest_ns=RTT_NS + 1)
    first, third = row(1.0, 1.2, 10), row(1.4, 1.6, 5)
    assert settled((shot(1.2), [first]), (late, [row(1.2, 1.4, 9, 9)]), (after, [third])) == [first, third]


# --- ports without carrier ---


def change(t_ns: int, state: str, host: str = "h0", peer: str = "") -> PortChange:
    return PortChange(t_ns, host, peer, 1, state)


def test_a_port_that_is_down_loses_all_in_each_period_until_it_is_up() -> None:
    carriers = Carriers(PLAN, TABLE, 100)
    assert [*carriers.take(change(30, "DOWN"))] == []
    rows = [*carriers.turn(100), *carriers.turn(200), *carriers.take(change(240, "UP")), *carriers.turn(300)]
    assert [(row.begin_ns, row.end_ns, row.lost, row.first_lost_ns) for row in rows] == [
        (30, 100, CARRIER_PACKETS, 30),
        (100, 200, CARRIER_PACKETS, 30),
        (200, 240, CARRIER_PACKETS, 30),
        (240, 340, 0, 0),
    ]
    assert {row.route for row in rows} == {TABLE.crossed("h0", [PORT, PORT])}


def test_what_others_say_of_a_port_is_no_evidence() -> None:
    carriers = Carriers(PLAN, TABLE, 100)
    assert not [*carriers.take(change(30, "DOWN", peer="h2")), *carriers.take(change(30, "DOWN", host="nobody"))]
    assert not [*carriers.turn(100)]
    assert not [*carriers.take(change(50, "UP"))], "it was never down"


def test_to_be_told_twice_that_a_port_is_down_changes_nothing() -> None:
    carriers = Carriers(PLAN, TABLE, 100)
    for t_ns in (30, 60):
        assert not [*carriers.take(change(t_ns, "DOWN"))]
    (row,) = carriers.turn(100)
    assert row.begin_ns == 30
