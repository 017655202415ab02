"""Paths in snapshots, as counts between two moments: by known answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mrc_testbed.testbed.evidence.snapshots import Snapshot
from mrc_testbed.testbed.evidence.told_paths import PathCount, ToldPaths, first_lost, paths_between
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.topos.usid import PathId
from tests.unit.checks.test_folder import PLAN, SCENARIO, at

LOADED = load_scenario_text(SCENARIO.partition("expect:")[0])


def shot(
    seconds: float, sent: Mapping[str, Sequence[int]], lost: Mapping[str, Mapping[str, int]] | None = None
) -> Snapshot:
    return Snapshot(at(seconds), "h0", {}, None, None, sent, lost or {})


def test_paths_come_in_the_order_in_which_hosts_tell_of_them() -> None:
    assert [*paths_between(LOADED, PLAN, "h0", "h2")] == [PathId(0, 0), PathId(0, 1), PathId(1, 0), PathId(1, 1)]
    assert [*paths_between(LOADED, PLAN, "h0", "h1")] == [PathId(0, 0), PathId(1, 0)], "below one T0"
    assert not paths_between(LOADED, PLAN, "h0", "h0")
    assert not paths_between(LOADED, PLAN, "h0", "nobody")


def test_counts_go_from_one_snapshot_to_the_next() -> None:
    read = ToldPaths(LOADED, PLAN)
    read.take(shot(1.0, {"h2": [1, 0, 0, 0]}))
    assert read.take(shot(1.2, {"h2": [5, 0, 7, 3]}, {"h2": {"1/0": 2, "0/1": 4}})) == [
        PathCount("h0", "h2", PathId(0, 0), at(1.0), at(1.2), 5, 0),
        PathCount("h0", "h2", PathId(0, 1), at(1.0), at(1.2), 0, 4),
        PathCount("h0", "h2", PathId(1, 0), at(1.0), at(1.2), 7, 2),
        PathCount("h0", "h2", PathId(1, 1), at(1.0), at(1.2), 3, 0),
    ]


def test_a_peer_that_is_told_of_for_the_first_time_counts_from_the_snapshot_before() -> None:
    read = ToldPaths(LOADED, PLAN)
    read.take(shot(1.0, {}))
    (row,) = read.take(shot(1.2, {"h2": [5]}))
    assert (row.begin_ns, row.end_ns) == (at(1.0), at(1.2))


def test_the_first_lost_packet_is_that_of_the_retirement_in_this_time() -> None:
    read = ToldPaths(LOADED, PLAN)
    read.take(shot(1.0, {"h2": [1]}))
    read.retire(("h0", "h2", 0, 0), at(1.15), at(1.1))
    (row,) = read.take(shot(1.2, {"h2": [5]}, {"h2": {"0/0": 3}}))
    assert row.first_lost_ns == at(1.1)
    (row,) = read.take(shot(1.4, {}, {"h2": {"0/0": 1}}))
    assert row.first_lost_ns == 0, "nothing was retired since"


def test_of_two_retirements_the_first_in_the_time_counts() -> None:
    known = {("h0", "h2", 0, 0): ([10, 20, 30], [8, 17, 0])}
    assert first_lost(known, ("h0", "h2", 0, 0), 5, 25) == 8
    assert first_lost(known, ("h0", "h2", 0, 0), 10, 25) == 17, "one at the begin belongs to the time before"
    assert first_lost(known, ("h0", "h2", 0, 0), 20, 30) == 0, "known as unknown"
    assert first_lost(known, ("h0", "h2", 0, 0), 30, 99) == 0
    assert first_lost(known, ("h0", "h2", 1, 0), 5, 25) == 0
