"""Paths of a run that is over: told by its hosts, or reckoned from what they sent and lost in all."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.recorded_paths import reckoned, tells_paths, told
from mrc_testbed.testbed.evidence.told_paths import PathCount
from mrc_testbed.topos.usid import PathId
from tests.unit.checks.test_folder import RunFolder, at, ev

FIRST, SECOND = PathId(0, 0), PathId(0, 1)


def record_of(tmp_path: Path, folder: RunFolder) -> RunRecord:
    return load_record(folder.write(tmp_path))


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
