"""Snapshots are found by host and time without being parsed, and read when they are asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.evidence.events import PathKey, read_events
from mrc_testbed.testbed.evidence.snapshots import Snapshots
from mrc_testbed.testbed.rundir.files import RecordError, read_lines
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotReader


def line(fields: dict[str, Any]) -> str:
    """As the recorder writes it."""
    return json.dumps(fields, separators=(",", ":")) + "\n"


def snapshot(host: str, t_ns: int, **counters: Any) -> str:
    return line({"host": host, "event": "snapshot", "t_ns": t_ns, "counters": counters, "lost": {}, "stalled": {}})


def state(t_ns: int, old: str, new: str) -> str:
    fields = {"host": "h0", "event": "ev_state", "t_ns": t_ns, "peer": "h1", "plane": 2, "uplink": 3}
    return line({**fields, "from": old, "to": new, "trigger": "ecn", "first_lost_tx_ns": 0, "last_tx_ns": 5})


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(lines))
    return path


def shots(tmp_path: Path) -> Snapshots:
    turns = (snapshot(host, t_ns, data_sent=10 * t_ns) for t_ns in range(8) for host in ("h0", "h1"))
    return read_events(written(tmp_path, *turns))[1]


def test_each_host_has_its_own(tmp_path: Path) -> None:
    found = shots(tmp_path)
    assert (len(found), list(found.times_ns("h1")), found.last_ns) == (16, list(range(8)), 7)
    assert found.at("h1", 3).counters == {"data_sent": 30}
    assert {host: shot.t_ns for host, shot in found.last().items()} == {"h0": 7, "h1": 7}


def test_thinned_ones_keep_the_first_and_the_last(tmp_path: Path) -> None:
    assert [(one.t_ns, one.host) for one in shots(tmp_path).thinned(3)][::2] == [
        (0, "h0"),
        (3, "h0"),
        (6, "h0"),
        (7, "h0"),
    ]


def test_a_snapshot_in_another_spelling_counts(tmp_path: Path) -> None:
    text = snapshot("h0", 1, data_sent=2).replace(",", ", ")
    assert read_events(written(tmp_path, text))[1].at("h0", 0).counters == {"data_sent": 2}


@pytest.mark.parametrize("count", [0.5, 1 << 63, "7", None])
def test_a_counter_that_is_no_count_is_told_when_it_is_read(tmp_path: Path, count: Any) -> None:
    found = read_events(written(tmp_path, snapshot("h0", 1, data_sent=count)))[1]
    with pytest.raises(RecordError, match="a snapshot cannot be read"):
        found.at("h0", 0)


def test_rests_are_kept_apart_from_other_changes(tmp_path: Path) -> None:
    lines = state(1, "GOOD", "SKIP"), state(2, "SKIP", "GOOD").replace(":", ": "), state(3, "GOOD", "ASSUMED_BAD")
    events, _ = read_events(written(tmp_path, *lines))
    rests = events.rests[PathKey("h0", "h1", 2, 3)]
    assert (list(rests.times_ns), rests.states) == ([1, 2], b"SG")
    assert [(change.old, change.new) for change in events.ev_changes] == [("GOOD", "ASSUMED_BAD")]


def test_a_torn_rest_at_the_end_is_left_out(tmp_path: Path) -> None:
    events, _ = read_events(written(tmp_path, state(1, "GOOD", "SKIP"), state(2, "SKIP", "GOOD")[:-9]))
    assert list(events.rests[PathKey("h0", "h1", 2, 3)].times_ns) == [1]


@pytest.mark.parametrize("torn", [state(2, "SKIP", "GOOD")[:-9], snapshot("h0", 1, a=1)[:-9]])
def test_a_torn_line_with_others_behind_it_is_told(tmp_path: Path, torn: str) -> None:
    with pytest.raises(RecordError, match="line 1 is not JSON"):
        read_events(written(tmp_path, f"{torn}\n", snapshot("h0", 3, a=1)))


def test_the_last_snapshot_is_that_of_the_file(tmp_path: Path) -> None:
    """Another host may have told one of a later time before."""
    assert read_events(written(tmp_path, snapshot("h1", 9, a=1), snapshot("h0", 8, a=1)))[1].last_ns == 8
    assert Snapshots(tmp_path).last_ns is None


# --- lines that leave out what is 0 ---

COUNTED = ({"a": 0, "b": 1, "c": 0}, {"a": 0, "b": 1, "c": 0}, {"a": 2, "b": 5, "c": 0}, {"a": 2, "b": 5, "c": 0})
GROWN = ({"a": 2, "b": 5, "c": 0, "new": 0}, {"a": 2, "b": 5, "c": 1, "new": 0})


def recorded(tmp_path: Path) -> Path:
    """As the recorder writes them: two hosts, with a counter that is new on the way."""
    recorder = Recorder(tmp_path)
    for t_ns, counters in enumerate((*COUNTED, *GROWN)):
        for host in ("h0", "h1"):
            recorder.event(host, {"event": "snapshot", "t_ns": t_ns, "counters": counters, "lost": {}})
    recorder.close()
    return tmp_path / "events.jsonl"


def test_a_snapshot_names_all_counters_when_names_are_new_and_then_those_that_are_not_0(tmp_path: Path) -> None:
    of_one = [row for row in map(json.loads, recorded(tmp_path).read_text().splitlines()) if row["host"] == "h1"]
    assert [row.get("counters") for row in of_one] == [COUNTED[0], None, None, None, GROWN[0], None]
    later = {"a": 2, "b": 5}
    assert [row.get("nonzero") for row in of_one] == [None, {"b": 1}, later, later, None, {**later, "c": 1}]


@pytest.mark.parametrize("spelling", [",", ", "])
@pytest.mark.parametrize("backwards", [False, True])
def test_what_was_left_out_is_there_again_whatever_is_read_first(
    tmp_path: Path, spelling: str, backwards: bool
) -> None:
    path = recorded(tmp_path)
    path.write_text(path.read_text().replace(",", spelling))
    found = read_events(path)[1]
    turns = sorted(range(6), reverse=backwards)
    read = {turn: list(found.at("h1", turn).counters.items()) for turn in turns}
    assert [read[turn] for turn in range(6)] == [list(counters.items()) for counters in (*COUNTED, *GROWN)]
    assert [one.counters for one in found.thinned(3) if one.host == "h0"] == [COUNTED[0], COUNTED[3], GROWN[1]]
    assert found.last()["h0"].counters == GROWN[1]


def test_a_killed_run_reads_as_far_as_it_came(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    content = path.read_bytes()
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        found = read_events(path)[1]
        assert len(found) == content[: end + 1].count(b"\n")
        for host, shot in found.last().items():
            assert shot.counters == (*COUNTED, *GROWN)[len(found.times_ns(host)) - 1]


def test_rows_in_their_order_are_whole_again(tmp_path: Path) -> None:
    rows = map(SnapshotReader().whole, read_lines(recorded(tmp_path)))
    assert [row["counters"] for row in rows if row["host"] == "h0"] == [*COUNTED, *GROWN]


@pytest.mark.parametrize("spelling", [",", ", "])
def test_a_snapshot_without_one_that_names_counters_is_told(tmp_path: Path, spelling: str) -> None:
    text = snapshot("h0", 1, b=1) + snapshot("h1", 1, b=1).replace("counters", "nonzero")
    found = read_events(written(tmp_path, text.replace(",", spelling)))[1]
    assert found.at("h0", 0).counters == {"b": 1}
    with pytest.raises(RecordError, match="no line before it names the counters of its host"):
        found.at("h1", 0)


def test_a_torn_snapshot_at_the_end_is_left_out(tmp_path: Path) -> None:
    assert len(read_events(written(tmp_path, snapshot("h0", 1, a=1), snapshot("h0", 2, a=1)[:-9]))[1]) == 1
