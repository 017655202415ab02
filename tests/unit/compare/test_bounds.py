"""`mrc-testbed bounds`: which expectations a right program would miss now and then."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Any

import pytest

from mrc_testbed.testbed.checks.result import CheckResult, Fidelity, FidelityFigure, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.bounds import OF_THE_BOUND, BoundRow, Room, bounds_of, gravest
from mrc_testbed.testbed.compare.statistics import t_quantile
from mrc_testbed.testbed.expect.vocabulary import Severity
from tests.unit.calls import Call
from tests.unit.checks.test_folder import RunFolder
from tests.unit.recorded import record_run

KEPT_TIME = Fidelity(())
LATE = Fidelity((FidelityFigure("timers late", 9.0, 5.0, "ms", False),))
OPS = {
    "<=": lambda seen, limit: seen <= limit,
    ">=": lambda seen, limit: seen >= limit,
    "==": lambda seen, limit: seen == limit,
}


def verdict(op: str, limit: float, seen: float, fidelity: Fidelity = KEPT_TIME) -> Verdict:
    status = Status.PASS if OPS[op](seen, limit) else Status.FAIL
    check = CheckResult("figure", status, seen, f"{op} {limit:g}", "ms", limit=limit, place="mine.yaml:9")
    return Verdict(status, "small", (check,), fidelity)


def row_of(op: str, limit: float, values: list[float], chance: float = 0.001) -> BoundRow:
    (row,) = bounds_of("small", [verdict(op, limit, seen) for seen in values], chance).bounds
    return row


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 318.31), (4, 7.173), (9, 4.297), (19, 3.579), (59, 3.234)])
def test_quantiles_for_one_in_1000_are_those_of_the_tables(freedom: float, quantile: float) -> None:
    assert t_quantile(freedom, 0.998) == pytest.approx(quantile, rel=2e-4)


@pytest.mark.parametrize("chance", [0.05, 0.001])
@pytest.mark.parametrize(("op", "runs"), [("<=", 8), (">=", 20), ("<=", 5)])
def test_a_further_run_crosses_the_bound_that_is_told_as_rarely_as_asked(op: str, runs: int, chance: float) -> None:
    """How often, is known of each bound: the mean over many is that of a further run."""
    dice, right, crossings = random.Random(5), NormalDist(), []
    for _ in range(1000):
        needed = row_of(op, 0.0, [dice.gauss(right.mean, right.stdev) for _ in range(runs)], chance).needed
        assert needed is not None
        below = right.cdf(needed)
        crossings.append(1 - below if op == "<=" else below)
    assert 0.75 * chance < fmean(crossings) < chance + 3 * stdev(crossings) / len(crossings) ** 0.5


def test_a_bound_behind_that_place_has_room_enough() -> None:
    values = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0]
    needed = row_of("<=", 200, values).needed
    assert needed is not None
    assert [row_of("<=", limit, values).room for limit in (needed - 1.5, needed)] == [Room.TIGHT, Room.ENOUGH]
    lower = row_of(">=", 50, values).needed
    assert lower is not None
    assert [row_of(">=", limit, values).room for limit in (lower + 1.5, lower)] == [Room.TIGHT, Room.ENOUGH]
    assert lower == pytest.approx(200 - needed, abs=1.5), "the values lie evenly around 100, and it is told outward"


def test_a_bound_that_a_run_missed_is_tight_however_far_the_others_are() -> None:
    row = row_of("<=", 5, [0.0] * 199 + [6.0])
    assert (row.room, row.missed) == (Room.TIGHT, 1)


def test_counts_are_told_as_whole_numbers() -> None:
    needed = row_of("<=", 40, [3.0, 7.0, 5.0, 4.0, 6.0]).needed
    assert needed == int(needed or 0.5)


def test_a_bound_that_moves_with_clean_figures_is_judged_as_shares_of_it() -> None:
    seen = [(1.02, 1.5), (2.1, 3.0), (1.0, 1.5), (2.04, 3.0), (1.05, 1.5)]
    (row,) = bounds_of("small", [verdict("<=", limit, value) for value, limit in seen]).bounds
    assert (row.unit, row.bound, row.room) == (OF_THE_BOUND, 1.0, Room.ENOUGH)
    assert row.observed == pytest.approx([0.68, 0.70, 2 / 3, 0.68, 0.70])


@pytest.mark.parametrize(
    ("op", "values", "room"),
    [
        ("<=", [1.0, 2.0, 3.0, 2.0], Room.TOO_FEW),
        ("<=", [1.0], Room.TOO_FEW),
        ("<=", [0.0] * 4, Room.TOO_FEW),
        ("<=", [1.0, 6.0], Room.TIGHT),
        ("<=", [0.0] * 9, Room.ALIKE),
        ("==", [5.0] * 9, Room.EXACT),
        ("==", [5.0] * 4, Room.TOO_FEW),
        ("==", [5.0] * 8 + [6.0], Room.TIGHT),
        ("<=", [9.0] * 9, Room.TIGHT),
    ],
)
def test_what_no_spread_can_tell(op: str, values: list[float], room: Room) -> None:
    row = row_of(op, 5, values)
    assert (row.room, row.needed, row.deviations) == (room, None, None)


def test_runs_of_a_late_machine_do_not_count() -> None:
    found = bounds_of("small", [verdict("<=", 5, 1), verdict("<=", 5, 900, LATE)])
    assert (found.runs, found.left_out, found.bounds[0].observed) == (1, 1, (1,))


def test_a_scenario_of_which_no_run_counts_leaves_the_whole_unknown() -> None:
    values = [1.0, 2.0, 1.5, 1.2, 1.8]
    enough = bounds_of("good", [verdict("<=", 50, seen) for seen in values])
    spoiled = bounds_of("late", [verdict("<=", 50, seen, LATE) for seen in values])
    assert gravest([enough]) is Room.ENOUGH
    assert gravest([enough, spoiled]) is Room.TOO_FEW


FEW = [1.0, 2.0, 1.5, 1.2, 1.8]


def changed(one: Verdict, **words: Any) -> Verdict:
    return replace(one, checks=tuple(replace(check, **words) for check in one.checks))


def test_an_expectation_that_some_run_left_open_is_not_known() -> None:
    told = [verdict("<=", 50, seen) for seen in FEW]
    lacking = {"status": Status.INCONCLUSIVE, "observed": None, "limit": None, "expected": "", "place": "mine.yaml:9"}
    open_ = changed(told[0], **lacking)
    found = bounds_of("small", [*told, open_])
    assert (found.bounds[0].room, found.bounds[0].open, gravest([found])) == (Room.OPEN, 1, Room.OPEN)
    never = bounds_of("small", [open_] * 6)
    assert (never.bounds[0].room, never.bounds[0].bound, never.bounds[0].open) == (Room.OPEN, None, 6)
    missed = bounds_of("small", [*told, open_, verdict("<=", 50, 51)])
    assert missed.bounds[0].room is Room.TIGHT, "what is known to be missed is graver"


def test_a_line_that_stands_twice_is_one_expectation() -> None:
    twice = [replace(one, checks=one.checks * 2) for one in (verdict("<=", 50, seen) for seen in FEW[:3])]
    (row,) = bounds_of("small", twice).bounds
    assert (len(row.observed), row.room) == (3, Room.TOO_FEW)


def test_warnings_and_baselines_have_no_say() -> None:
    fine = [verdict("<=", 50, seen) for seen in FEW]
    bad = [verdict("<=", 1, seen) for seen in FEW]
    warnings = [changed(one, level=Severity.WARNING) for one in bad]
    baselines = [replace(one, judged=False) for one in bad]
    for without in (warnings, baselines):
        found = bounds_of("small", without)
        assert (found.bounds[0].room, found.bounds[0].decides) == (Room.TIGHT, False)
        assert gravest([bounds_of("fine", fine), found]) is Room.ENOUGH


def test_a_bound_in_round_trips_keeps_its_unit() -> None:
    seen, rtts = [1.0, 1.1, 1.2, 1.05, 1.15], [0.0213, 0.0217, 0.0219, 0.0214, 0.0211]
    runs = [changed(verdict("<=", 3.6, one), limit=3.6 * rtt / rtt) for one, rtt in zip(seen, rtts, strict=True)]
    assert len({run.checks[0].limit for run in runs}) > 1
    (row,) = bounds_of("small", runs).bounds
    assert (row.unit, row.room) == ("ms", Room.ENOUGH)


def test_checks_without_a_bound_of_their_own_are_left_out() -> None:
    one = verdict("<=", 5, 1)
    checks = tuple(replace(check, limit=None) for check in one.checks)
    found = bounds_of("small", [replace(one, checks=checks)])
    assert (found.bounds, gravest([found])) == ((), Room.TOO_FEW)


def recorded(folder: Path, number: int, factor: float, bound: str) -> str:
    durations = [factor * one for one in (1.0, 1.0, 1.0, 1.2, 1.1, 1.0, 1.0, 1.0)]
    name = f"20260101T00000{number}Z-small"
    return str(record_run(folder / name, RunFolder(expect=[f"step_time.p100 <= {bound}"], durations=durations)))


@pytest.mark.parametrize(("bound", "status", "said"), [("2s", 0, "1 enough"), ("1.22s", 1, "1 tight")])
def test_the_command_tells_bounds_and_room(tmp_path: Path, call: Call, bound: str, status: int, said: str) -> None:
    runs = [recorded(tmp_path, number, 1 + number / 500, bound) for number in range(6)]
    ended = call("bounds", *runs, "--json", str(tmp_path / "bounds.json"))
    assert (ended.status, ended.err) == (status, "")
    assert "small: 6 runs" in ended.out
    assert f"1 bound: {said}" in ended.out
    (scenario,) = json.loads((tmp_path / "bounds.json").read_text())["scenarios"]
    (told,) = scenario["bounds"]
    assert (told["room"], len(told["observed"])) == (said.partition(" ")[2], 6)
    assert call("bounds", *runs[:4]).status == 3, "too few"


def test_runs_with_other_settings_are_no_repeats(tmp_path: Path, call: Call) -> None:
    one = recorded(tmp_path, 0, 1.0, "2s")
    other = Path(recorded(tmp_path, 1, 1.0, "2s"))
    scenario = other / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("workload:", "endpoint: {ev_active: 3}\nworkload:"))
    ended = call("bounds", one, str(other))
    assert ended.out.count(": 1 run\n") == 2
    assert "ev_active" in ended.out


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("verdict.json", lambda text: "[" * 100_000, "verdict.json"),
        ("verdict.json", lambda text: text.replace('"observed": 1.2', '"observed": "1.2"'), "observed '1.2"),
        ("verdict.json", lambda text: text.replace('"observed": 1.2', '"observed": Infinity, "x": 1.2'), "small"),
        ("verdict.json", lambda text: re.sub('"expected": "<= 2[^"]*"', '"expected": null', text), "None"),
        ("scenario.yaml", lambda text: "name: [", "scenario.yaml"),
    ],
)
def test_a_run_that_cannot_be_read_is_told(
    tmp_path: Path, call: Call, file: str, text: Callable[[str], str], says: str
) -> None:
    run = recorded(tmp_path, 0, 1.0, "2s")
    path = Path(run) / file
    before = path.read_text()
    path.write_text(text(before))
    assert path.read_text() != before
    ended = call("bounds", run)
    assert ended.status == 2
    assert says in ended.err
    assert "internal error" not in ended.err


def test_a_run_given_twice_is_no_repeat_of_itself(tmp_path: Path, call: Call) -> None:
    run = recorded(tmp_path, 0, 1.0, "2s")
    ended = call("bounds", run, run)
    assert (ended.status, "duplicate run" in ended.err) == (2, True)


def test_a_chance_that_is_no_number_is_refused(tmp_path: Path, call: Call) -> None:
    ended = call("bounds", recorded(tmp_path, 0, 1.0, "2s"), "--chance", "nan")
    assert (ended.status, "'--chance'" in ended.err) == (2, True)


def test_a_seed_is_one_run_in_virtual_time(tmp_path: Path, call: Call) -> None:
    runs = [recorded(tmp_path, number, 1.0, "2s") for number in range(6)]
    for number, run in enumerate(runs):
        scenario = Path(run) / "scenario.yaml"
        text = re.sub("^seed: .*\n", "", scenario.read_text(), flags=re.MULTILINE)
        scenario.write_text(text.replace("workload:", f"world: virtual\nseed: {number // 2}\nworkload:"))
    ended = call("bounds", *runs)
    assert ended.status == 3
    assert "3 runs, 3 more the same again in virtual time" in ended.out
