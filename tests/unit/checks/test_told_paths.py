"""What snapshots say of paths, as counts between two moments: by known answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mrc_testbed.testbed.checks.path_evidence import SettlingCounts
from mrc_testbed.testbed.checks.reckoned_paths import reckoned
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.snapshots import Snapshot
from mrc_testbed.testbed.checks.told_paths import PathCount, ToldPaths, first_lost, paths_between, tells_paths, told
from mrc_testbed.topos.usid import PathId
from tests.unit.checks.test_folder import RunFolder, at, ev

FIRST, SECOND = PathId(0, 0), PathId(0, 1)
RTT_NS = 20_000_000


def shot(
    seconds: float,
    sent: Mapping[str, Sequence[int]],
    lost: Mapping[str, Mapping[str, int]] | None = None,
    host: str = "h0",
    latest_ns: int = 0,
) -> Snapshot:
    return Snapshot(at(seconds), host, {}, None, None, sent, lost or {}, latest_ns)


def record_of(tmp_path: Path, folder: RunFolder | None = None) -> RunRecord:
    return load_record((folder or RunFolder()).write(tmp_path))


def reader(tmp_path: Path) -> ToldPaths:
    record = record_of(tmp_path)
    return ToldPaths(record.scenario, record.plan)


def test_paths_come_in_the_order_in_which_hosts_tell_of_them(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    assert [*paths_between(record, "h0", "h2")] == [PathId(0, 0), PathId(0, 1), PathId(1, 0), PathId(1, 1)]
    assert [*paths_between(record, "h0", "h1")] == [PathId(0, 0), PathId(1, 0)], "below one T0"
    assert not paths_between(record, "h0", "h0")
    assert not paths_between(record, "h0", "nobody")


def test_counts_go_from_one_snapshot_to_the_next(tmp_path: Path) -> None:
    read = reader(tmp_path)
    read.take(shot(1.0, {"h2": [1, 0, 0, 0]}))
    assert read.take(shot(1.2, {"h2": [5, 0, 7, 3]}, {"h2": {"1/0": 2, "0/1": 4}})) == [
        PathCount("h0", "h2", PathId(0, 0), at(1.0), at(1.2), 5, 0),
        PathCount("h0", "h2", PathId(0, 1), at(1.0), at(1.2), 0, 4),
        PathCount("h0", "h2", PathId(1, 0), at(1.0), at(1.2), 7, 2),
        PathCount("h0", "h2", PathId(1, 1), at(1.0), at(1.2), 3, 0),
    ]


def test_a_peer_that_is_told_of_for_the_first_time_counts_from_the_snapshot_before(tmp_path: Path) -> None:
    read = reader(tmp_path)
    read.take(shot(1.0, {}))
    (row,) = read.take(shot(1.2, {"h2": [5]}))
    assert (row.begin_ns, row.end_ns) == (at(1.0), at(1.2))


def test_the_first_lost_packet_is_that_of_the_retirement_in_this_time(tmp_path: Path) -> None:
    read = reader(tmp_path)
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


def test_a_run_tells_of_paths_if_its_last_snapshots_do(tmp_path: Path) -> None:
    folder = RunFolder()
    (tmp_path / "old").mkdir()
    assert not tells_paths(record_of(tmp_path / "old", folder))
    for event in folder.events:
        if event["event"] == "snapshot":
            event |= {"sent_by_path": {"h2": [4, 0, 0, 0]} if event["host"] == "h0" else {}, "lost_by_path": {}}
    record = record_of(tmp_path, folder)
    assert tells_paths(record)
    rows = [row for _, rows in told(record) for row in rows]
    assert [(row.key, row.sent) for row in rows] == [(("h0", "h2", 0, 0), 4)] * 4


# --- counts that wait for the next snapshot ---


def settled(*shots: tuple[Snapshot, Sequence[PathCount]]) -> list[PathCount]:
    counts = SettlingCounts(RTT_NS)
    found = [row for each, rows in shots for row in counts.take(each, rows)]
    return [*found, *counts.rest()]


def row(begin: float, end: float, sent: int, lost: int = 0, path: PathId = FIRST) -> PathCount:
    return PathCount("h0", "h2", path, at(begin), at(end), sent, lost)


def test_a_clean_row_before_a_lossy_one_is_taken_together_with_it() -> None:
    """The loss may be of packets that left in either time."""
    first, second = row(1.0, 1.2, 10), row(1.2, 1.4, 6, 2)
    assert settled((shot(1.2, {}), [first]), (shot(1.4, {}), [second])) == [row(1.0, 1.4, 16, 2)]


def test_clean_rows_stay_as_they_are() -> None:
    rows = [row(1.0, 1.2, 10), row(1.2, 1.4, 6)]
    assert settled((shot(1.2, {}), rows[:1]), (shot(1.4, {}), rows[1:])) == rows


def test_losses_beyond_what_was_sent_belong_to_the_time_before() -> None:
    first, second = row(1.0, 1.2, 10, 3), row(1.2, 1.4, 1, 5)
    assert settled((shot(1.2, {}), [first]), (shot(1.4, {}), [second])) == [row(1.0, 1.2, 10, 7), row(1.2, 1.4, 1, 1)]


def test_no_more_is_lost_than_was_sent() -> None:
    assert settled((shot(1.2, {}), [row(1.0, 1.2, 2, 3)])) == [row(1.0, 1.2, 3, 3)]


def test_paths_wait_each_for_itself() -> None:
    clean, lossy = row(1.0, 1.2, 10), row(1.2, 1.4, 6, 2, SECOND)
    assert settled((shot(1.2, {}), [clean]), (shot(1.4, {}), [lossy])) == [clean, lossy]


def test_a_host_that_was_late_says_nothing_of_that_time() -> None:
    late = shot(1.4, {}, latest_ns=RTT_NS + 1)
    after = shot(1.6, {}, latest_ns=RTT_NS + 1)
    first, third = row(1.0, 1.2, 10), row(1.4, 1.6, 5)
    assert settled((shot(1.2, {}), [first]), (late, [row(1.2, 1.4, 9, 9)]), (after, [third])) == [first, third]


# --- runs whose hosts told of no paths ---


def counters(seconds: float, sent: int, lost: int) -> dict[str, object]:
    counts = {"data_sent": sent, "lost_timeout": lost}
    return {"event": "snapshot", "t_ns": at(seconds), "host": "h0", "counters": counts}


def old_run(tmp_path: Path, *events: dict[str, object]) -> list[PathCount]:
    """Counts of h0, which sent on two paths to h2, three times as much on the second."""
    folder = RunFolder()
    folder.events = [*events]
    assert folder.counters is not None
    folder.counters["hosts"]["h0"]["paths"] = {"h2": {"0/0": 100, "0/1": 300}}
    rows = [row for _, rows in reckoned(record_of(tmp_path, folder)) for row in rows]
    return sorted(rows, key=lambda row: (row.begin_ns, row.path.plane, row.path.uplink))


def test_what_a_host_sent_is_divided_as_in_the_whole_run(tmp_path: Path) -> None:
    rows = old_run(tmp_path, counters(1, 0, 0), counters(2, 40, 0))
    assert [(row.path, row.sent, row.lost) for row in rows] == [(FIRST, 10, 0), (SECOND, 30, 0)]


def test_parts_of_packets_are_kept_for_the_next_time(tmp_path: Path) -> None:
    rows = old_run(tmp_path, counters(1, 0, 0), counters(2, 2, 0), counters(3, 4, 0), counters(4, 8, 0))
    assert sum(row.sent for row in rows if row.path == FIRST) == 2
    assert sum(row.sent for row in rows if row.path == SECOND) == 6


def test_what_vanished_is_put_down_to_the_path_that_was_retired(tmp_path: Path) -> None:
    retired = ev("h0", "h2", 0, 1, 2.5, "GOOD", "ASSUMED_BAD", lost=2.25)
    rows = old_run(tmp_path, counters(1, 0, 0), counters(2, 40, 0), retired, counters(3, 68, 5), counters(4, 96, 6))
    lossy = [row for row in rows if row.lost]
    assert [(row.path, row.begin_ns, row.lost) for row in lossy] == [(SECOND, at(2), 5), (SECOND, at(3), 1)]
    assert [row.first_lost_ns for row in lossy] == [at(2.25), 0]
    # It was in use for half of the second, so it has three fifths of 28 packets then, and none of the next 28.
    assert [(row.path, row.sent) for row in rows if row.begin_ns == at(2)] == [(FIRST, 11), (SECOND, 16)]
    assert [(row.path, row.sent) for row in rows if row.begin_ns == at(3)] == [(FIRST, 28), (SECOND, 0)]


def test_losses_that_retired_no_path_are_of_nobody(tmp_path: Path) -> None:
    rows = old_run(tmp_path, counters(1, 0, 0), counters(2, 40, 7))
    assert sum(row.lost for row in rows) == 0
