"""No yardstick contains what a fault left behind, on the hand-made run of test_folder.py.

Steps end at 1, 2, 3, 4.2, 5.3, 6.8, 8.3, 9.8 s: those after the fault take 1.5 s. The window of `cut` is 3.5 to 4.752,
ten RTTs are 0.25 s.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.left_behind import missing_routes
from mrc_testbed.testbed.checks.metrics import measure
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.rundir.tables import RouteSample
from tests.unit.checks.test_folder import RunFolder, at, ev

SLOW = [1.0, 1.0, 1.0, 1.2, 1.1, 1.5, 1.5, 1.5]


def clean_median_s(path: Path, *events: dict[str, Any]) -> float:
    folder = RunFolder(durations=SLOW)
    folder.events = [event for event in folder.events if event["event"] == "snapshot"] + list(events)
    return measure(load_record(folder.write(path)), parse_figure("step_time.median clean")) / 1e9


def stall(begin: float, end: float) -> dict[str, Any]:
    return {"event": "stall", "host": "h0", "peer": "h2", "qp": "q", "begin_ns": at(begin), "end_ns": at(end)}


@pytest.mark.parametrize(
    ("events", "median"),
    [
        ([], 1.5),  # steps 1, 2, and 5 to 7
        ([ev("h0", "h2", 0, 1, 5.5, "GOOD", "DENIED")], 1.0),  # by a mapper, for ever: steps 1 and 2
        ([ev("h0", "h2", 0, 1, 2.5, "GOOD", "DENIED")], 1.5),  # before the fault: the usual network
        ([ev("h0", "h2", 0, 1, 4, "GOOD", "ASSUMED_BAD")], 1.0),
        ([ev("h0", "h2", 0, 1, 5.5, "GOOD", "ASSUMED_BAD")], 1.5),  # by no fault
        ([ev("h0", "h2", 0, 1, 5.5, "GOOD", "ASSUMED_BAD", lost=4)], 1.0),  # by a packet of that time
        ([stall(4, 9.7)], 1.0),
        ([stall(5.5, 9.7)], 1.5),
    ],
)
def test_what_a_fault_left_behind_is_not_clean(tmp_path: Path, events: list[dict[str, Any]], median: float) -> None:
    assert clean_median_s(tmp_path, *events) == pytest.approx(median)


def test_a_path_that_is_back_is_clean_ten_round_trips_later(tmp_path: Path) -> None:
    out = ev("h0", "h2", 0, 1, 4, "GOOD", "ASSUMED_BAD")
    for number, (back, steps) in enumerate(((6.5, 4), (6.6, 3))):  # step 6 begins at 6.8 s
        folder = RunFolder(durations=SLOW)
        folder.events += [out, ev("h0", "h2", 0, 1, back, "ASSUMED_BAD", "GOOD")]
        (tmp_path / str(number)).mkdir()
        record = load_record(folder.write(tmp_path / str(number)))
        assert measure(record, parse_figure("steps_done clean")) == steps


def test_a_denial_until_the_end_leaves_no_yardstick_after_a_fault_at_once(tmp_path: Path) -> None:
    folder = RunFolder(expect=["step_time.median <= 2 s clean"])
    folder.history[2:4] = [{**line, "t_ns": at(0.1)} for line in folder.history[2:4]]
    folder.events.append(ev("h0", "h2", 0, 1, 4.6, "GOOD", "DENIED"))
    (check,) = [one for one in folder.judge(tmp_path).checks if one.name == folder.expect[0]]
    assert (check.status, check.why) == (Status.INCONCLUSIVE, "no step was finished outside all faults")


def test_steps_that_are_low_as_often_before_a_fault_tell_nothing_of_one(tmp_path: Path) -> None:
    folder = RunFolder(expect=["goodput_back.p100 <= 100 ms"], durations=[0.4, 0.6, 0.4, 0.6, 0.4, 2, 0.4, 0.4])
    (check,) = [one for one in folder.judge(tmp_path).checks if one.name == folder.expect[0]]
    assert check.status is Status.INCONCLUSIVE
    assert "% of the steps before any fault are below 95 % of their median too" in check.why


def test_routes_are_missing_from_the_first_t0_that_lacks_one_to_the_last(tmp_path: Path) -> None:
    record = load_record(RunFolder().write(tmp_path))
    rows = [(1, "a", 3), (2, "b", 2), (3, "a", 4), (4, "b", 3), (5, "b", 4), (6, "a", 4), (7, "b", 5), (8, "b", 4)]
    told = replace(record, routes=tuple(RouteSample(at(t), node, hops, 4) for t, node, hops in rows))
    assert missing_routes(told) == [Interval(at(1), at(5)), Interval(at(7), at(8))]
    never = replace(record, routes=(RouteSample(at(2), "a", 0, 4),))
    assert missing_routes(never) == [Interval(at(2), inf)]
