"""Evidence of endpoints in a run that is over, period by period; and the mapper's words as answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.answers import AnswerState, answers_of_map, read_answers
from mrc_testbed.testbed.checks.fabric_map import fabric_map, map_answers, score_answers, unseen_links
from mrc_testbed.testbed.checks.map_spells import map_spells
from mrc_testbed.testbed.checks.path_evidence import evidence
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange
from mrc_testbed.testbed.mapper.suspects import Direction, SuspectTable
from tests.unit.checks.test_folder import LINK, PLAN, RunFolder, at, ev

S = 10**9
PERIOD_NS = S // 5
TABLE = SuspectTable(PLAN)
PORT = "h0:p1-t0-0"


def told_run(*ended: int, lost_at: Sequence[int] = (), retired: bool = True) -> RunFolder:
    """h0 and h2 send each other ten packets a period and path from the start; h0 loses eight on p0/u1 in some."""
    folder = RunFolder()
    folder.events = []
    for number in range(1, ended[0] + 1):
        t_s = number / 5
        for host, peer in (("h0", "h2"), ("h2", "h0")):
            lossy = host == "h0" and number in lost_at
            more: dict[str, Any] = {"sent_by_path": {peer: [10] * 4}, "lost_by_path": {}}
            if lossy:
                more["lost_by_path"] = {peer: {"0/1": 8}}
            folder.events.append({"event": "snapshot", "t_ns": at(t_s), "host": host, "counters": {}, **more})
    if retired and lost_at:
        first_s = lost_at[0] / 5
        folder.events.append(ev("h0", "h2", 0, 1, first_s - 0.01, "GOOD", "ASSUMED_BAD", lost=first_s - 0.15))
    return folder


def record_of(tmp_path: Path, folder: RunFolder) -> RunRecord:
    return load_record(folder.write(tmp_path))


def test_the_same_losses_accuse_nobody_where_queues_are_full(tmp_path: Path) -> None:
    """h0 loses one of ten on a path for a second: more than chance, but less than what queues cut."""

    def changes(cut: int) -> Sequence[MapChange]:
        folder = told_run(40, lost_at=range(18, 28), retired=False)
        for number, event in enumerate(event for event in folder.events if event["host"] == "h0"):
            event["lost_by_path"] = {"h2": {"0/1": 1}} if event["lost_by_path"] else {}
            event["counters"] = {"data_sent": 40 * number, "lost_trimmed": cut * number}
        (tmp_path / str(cut)).mkdir()
        return fabric_map(record_of(tmp_path / str(cut), folder)).changes

    assert [change.action for change in changes(0)][:1] == [MapAction.ACCUSE]
    assert changes(8) == ()


# --- period by period ---


def test_every_packet_is_evidence_once_and_after_it_left(tmp_path: Path) -> None:
    record = record_of(tmp_path, told_run(20, lost_at=[8]))
    turns = [*evidence(record, TABLE)]
    rows = [(end_ns, row) for end_ns, found in turns for row in found]
    assert sum(row.sent for _, row in rows) == 2 * 4 * 10 * 20
    assert sum(row.lost for _, row in rows) == 8
    assert all(row.begin_ns <= row.end_ns <= end_ns for end_ns, row in rows)
    ends = [end_ns for end_ns, _ in turns]
    assert ends == sorted(set(ends))
    (lossy,) = (row for _, row in rows if row.lost)
    assert lossy.first_lost_ns == at(8 / 5 - 0.15)
    assert lossy.begin_ns == at(6 / 5), "with the clean row before it"


def test_without_events_there_is_no_evidence(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.events = []
    record = record_of(tmp_path, folder)
    assert [*evidence(record, TABLE)] == []
    assert map_answers(record)[0].state is AnswerState.UNSURE
    assert len(unseen_links(record)) == len(PLAN.links)


def test_ways_are_remembered_with_their_times(tmp_path: Path) -> None:
    found = fabric_map(record_of(tmp_path, told_run(20))).routes
    assert len(found) == 8
    assert len(found.at(at(2))) == 8
    assert found.at(at(-1)) == []


# --- the mapper on it ---


def test_a_path_that_loses_is_mapped_and_scored(tmp_path: Path) -> None:
    """h0 loses 8 of 10 on one path while the other way and the other paths are clean: links of that T1, upwards."""
    folder = told_run(40, lost_at=range(18, 23))
    folder.scenario = folder.scenario.replace("at: 3500ms", "at: 3450ms")
    record = record_of(tmp_path, folder)
    (spell,) = map_spells(fabric_map(record).changes)
    assert spell.said.name == LINK
    assert spell.said.direction == "up"
    assert spell.said.loss == pytest.approx(0.8, abs=0.1)
    assert spell.said.alike == ("p0-t0-1:p0-t1-1",), "the only other link of which h2's packets do not speak"
    assert spell.said.seers == ("h0",)
    assert spell.cleared_ns is not None
    found = score_answers(record, map_answers(record))
    assert (found.precision, found.recall) == (1, 1)


def test_a_clean_run_accuses_nobody(tmp_path: Path) -> None:
    record = record_of(tmp_path, told_run(40))
    assert fabric_map(record).changes == ()
    assert [answer.state for answer in map_answers(record)] == [AnswerState.HEALTHY]


# --- its words ---


def said(t_s: float, action: MapAction, name: str = LINK, direction: Direction | None = None) -> MapChange:
    t_ns = round(t_s * S)
    return MapChange(
        t_ns, action, name, direction, 0.2, 30.0, t_ns - S, t_ns - S // 2, (), 0.99, (Witness.ENDPOINTS,), ()
    )


def test_answers_hold_what_stands() -> None:
    changes = [
        said(5, MapAction.ACCUSE),
        said(6, MapAction.ACCUSE, PORT, "up"),
        said(7, MapAction.OVER, "h1"),
        said(8, MapAction.CLEAR),
        said(9, MapAction.CLEAR, PORT, "up"),
    ]
    found = answers_of_map(changes, 2 * S)
    assert [(one.t_s, sorted(one.places)) for one in found] == [
        (0, []),
        (3, [LINK]),
        (4, [PORT, LINK]),
        (6, [PORT]),
        (7, []),
    ]
    assert found[1].places[LINK].since_s == 2
    lines = [one.model_dump_json() for one in found]
    assert read_answers("map", lines, {LINK, PORT}, ()) == found


def test_both_directions_of_a_link_are_one_place() -> None:
    found = answers_of_map([said(5, MapAction.ACCUSE, direction=way) for way in ("up", "down")], 0)
    assert [len(one.incidents) for one in found] == [0, 1]


def test_spells_join_what_was_said_and_taken_back() -> None:
    first, other, over, back = map_spells(
        [
            said(5, MapAction.ACCUSE),
            said(6, MapAction.ACCUSE, PORT, "up"),
            said(7, MapAction.OVER, "h1"),
            said(8, MapAction.CLEAR),
            said(9, MapAction.ACCUSE),
        ]
    )
    assert (first.cleared_ns, first.last_ns, first.over) == (8 * S, round(7.5 * S), False)
    assert (other.cleared_ns, other.is_dead) == (None, False)
    assert (over.cleared_ns, over.over) == (7 * S, True)
    assert back.cleared_ns is None
