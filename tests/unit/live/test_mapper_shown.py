"""Where people see what the mapper says: ticker, frames, summary and report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc_testbed.testbed.checks.map_lines import MapDecision, MapRecord
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.live.accused import Accused
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange
from mrc_testbed.testbed.pages.report.clock import clock_of
from mrc_testbed.testbed.pages.report.mapped import MAPPED, mapped_timelines
from mrc_testbed.testbed.pages.report.timelines import timelines
from mrc_testbed.testbed.report.map_facts import mapper_lines
from mrc_testbed.testbed.runner.events import MapDecided, MapSaid, WorkloadBegins
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.checks.test_mapper_live import LOSSY, run

S = 1_000_000_000
SAID = MapChange(
    *(5 * S, MapAction.ACCUSE, LOSSY, None, 0.051, 30.0, 4 * S, 5 * S),
    *(("h2:p1-t0-1",), 0.99, (Witness.ENDPOINTS,), ("h0", "h1")),
)
LEAVES = "it would leave h0 no path to h1"
CLEARED = replace(SAID, t_ns=9 * S, action=MapAction.CLEAR)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return run(tmp_path_factory.mktemp("shown"))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (MapSaid(SAID), f"{LOSSY}, or h2:p1-t0-1 loses 5% of its packets"),
        (MapSaid(replace(SAID, alike=(), direction="up")), f"{LOSSY} up loses 5% of its packets"),
        (MapSaid(CLEARED), f"{LOSSY} is well again"),
        (MapSaid(replace(SAID, action=MapAction.OVER)), f"{LOSSY} lost packets, and is well again"),
        (MapDecided(S, "deny", LOSSY, ""), f"{LOSSY} is denied"),
        (MapDecided(S, "allow", LOSSY, "held"), f"{LOSSY} is allowed again: held"),
        (
            MapDecided(S, "keep", "h0", LEAVES),
            "h0 stays in use: it would leave h0 no path to h1",
        ),
    ],
)
def test_what_is_said_is_one_line(event: MapSaid | MapDecided, text: str) -> None:
    assert event.text == text


def test_a_frame_has_what_is_accused_and_denied_now() -> None:
    accused = Accused()
    accused.take(MapSaid(SAID))
    assert accused.parts() == {LOSSY: {"loss": 0.051, "denied": False}}
    accused.take(MapDecided(6 * S, "deny", LOSSY, ""))
    accused.take(MapDecided(6 * S, "keep", LOSSY, ""))
    assert accused.parts() == {LOSSY: {"loss": 0.051, "denied": True}}
    accused.take(MapSaid(CLEARED))
    assert accused.parts() == {LOSSY: {"loss": 0.0, "denied": True}}
    accused.take(MapDecided(9 * S, "allow", LOSSY, "cleared"))
    assert accused.parts() == {}


def test_the_ticker_says_it() -> None:
    scenario = load_scenario_text("name: x\nmapper: {}\nworkload: [{permutation: {for: 4s}}]\n")
    model = LiveModel(scenario, scenario.plan())
    model.publish(WorkloadBegins(S))
    model.publish(MapSaid(SAID))
    model.publish(MapDecided(6 * S, "deny", LOSSY, ""))
    frame = model.frame(7 * S)
    assert [(line["kind"], line["t_s"]) for line in frame["ticker"]] == [("map", 4.0), ("map", 5.0)]
    assert frame["accused"] == {LOSSY: {"loss": 0.051, "denied": True}}


def test_the_summary_has_a_line_for_each_fault_and_one_for_all(record: RunRecord) -> None:
    (heading, first), (below, last) = mapper_lines(record)
    assert (heading, below) == ("mapper", "")
    assert first.startswith("located lossy after ")
    assert " rtt; cleared " in first
    assert last.startswith("1 accusation, 0 of what was whole; denied h1:p1-t0-0 ")
    assert "located lossy after" in (record.folder / "summary.txt").read_text()


def test_the_summary_says_what_was_not_located(record: RunRecord) -> None:
    assert [text for _, text in mapper_lines(replace(record, mapped=MapRecord()))] == [
        "did not locate lossy",
        "0 accusations",
    ]


def test_without_a_mapper_there_is_no_line(record: RunRecord) -> None:
    without = replace(record, scenario=record.scenario.model_copy(update={"mapper": None}))
    assert list(mapper_lines(without)) == []


def test_the_report_has_a_row_for_each_part_that_was_accused(record: RunRecord) -> None:
    clock = clock_of(record)
    assert clock is not None
    start_ns = record.start_ns or 0
    said = [replace(one, t_ns=start_ns + at * S) for one, at in ((SAID, 1), (CLEARED, 4))]
    done = [MapDecision(start_ns + at * S, op, LOSSY) for at, op in ((2, "deny"), (3, "allow"))]
    (row,) = mapped_timelines(replace(record, mapped=MapRecord(tuple(said), tuple(done))), clock)
    assert (row.label, row.first, row.states) == (LOSSY, "G", "ADAG")
    assert [*row.times] == [1.0, 2.0, 3.0, 4.0]


def test_the_rows_of_the_mapper_stand_first(record: RunRecord) -> None:
    clock = clock_of(record)
    assert clock is not None
    shown = timelines(record, clock)
    assert shown["groups"][0]["title"] == MAPPED
    assert shown["mapped"] == 1
