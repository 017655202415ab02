"""What endpoints have seen as evidence: ways, ports without carrier, periods; and the mapper's words as answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.answers import AnswerState, answers_of_map, read_answers
from mrc_testbed.testbed.checks.events import PortChange
from mrc_testbed.testbed.checks.fabric_map import fabric_map, map_answers, score_answers, unseen_links
from mrc_testbed.testbed.checks.late_packets import LatePackets
from mrc_testbed.testbed.checks.map_spells import map_spells
from mrc_testbed.testbed.checks.path_evidence import (
    CARRIER_PACKETS,
    MOST_CONGESTED,
    Carriers,
    PathRoutesSeen,
    SettlingCounts,
    evidence,
)
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.snapshots import Snapshot
from mrc_testbed.testbed.checks.told_paths import PathCount
from mrc_testbed.testbed.mapper.evidence import Observation, Witness
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange
from mrc_testbed.testbed.mapper.suspects import Direction, SuspectTable
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.topos.usid import PathId
from tests.unit.checks.test_folder import LINK, PLAN, RunFolder, at, ev

S = 10**9
PERIOD_NS = S // 5
TABLE = SuspectTable(PLAN)
PORT = "h0:p1-t0-0"
HEAD = """\
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
workload:
  - train: {steps: 8, compute: 100ms, allreduce: 2MiB}
"""


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
    """Of four packets one was lost, on any way: three speak for what all ways share."""
    row = observed(f"{HEAD}transport: mrc-hashed\nendpoint: {{entropies: 8}}\n", PathId(0, 1))
    assert (row.sent, row.lost, row.first_lost_ns) == (3, 0, 0)


# --- congestion ---


def counted(number: int, host: str = "h0", **counters: int) -> Snapshot:
    return Snapshot(at(number / 5), host, counters)


def count(sent: int, lost: int = 0, peer: str = "h2") -> PathCount:
    return PathCount("h0", peer, PathId(0, 0), at(1), at(2), sent, lost)


def test_the_share_of_packets_that_were_cut_needs_no_other_cause() -> None:
    """Of 100 packets 4 were cut, then of 50 one more."""
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
    """Of 40 packets to h2 two arrived twice; nobody else is concerned, and it is forgotten after 0.6 s."""
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
