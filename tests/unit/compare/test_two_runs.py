"""Two runs of one scenario and one seed: what the seed decides, and which events changed places."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.compare.determinism import DeterminismCheck, _done, determinism_checks
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.sequence import _crossed, _differ, _moved, repeats, sequence_diff
from mrc_testbed.testbed.compare.story import StoryEvent, chapters
from tests.unit.checks.test_folder import SCENARIO, RunFolder, at, ev, fault
from tests.unit.compare.drawn import Doctor, healed_never, loaded, one_run


def checks(one: ComparedRun, other: ComparedRun) -> dict[str, DeterminismCheck]:
    return {check.what: check for check in determinism_checks(one, other)}


def twice(run: RunFolder) -> None:
    later = [("inject", "invoke", 6.0), ("inject", "ok", 6.0), ("heal", "invoke", 6.1), ("heal", "ok", 6.1)]
    run.history[6:6] = [fault(op, kind, seconds, cycle=1) for op, kind, seconds in later]


def test_what_was_done_in_one_run_alone_is_told(tmp_path: Path) -> None:
    one, two = loaded(tmp_path / "a", twice), loaded(tmp_path / "b", healed_never)
    found = checks(one, two)["injections and heals"]
    assert (found.same, found.said) == (
        False,
        "first run: heal cut, occurrence 0: invoke, heal cut, occurrence 0: ok, inject cut, occurrence 1: invoke,"
        " inject cut, occurrence 1: ok and 2 more; second run: nothing",
    )

    def failed(run: RunFolder) -> None:
        for place in (2, 5):
            run.history[place]["type"] = "fail"

    found = checks(loaded(tmp_path / "c"), loaded(tmp_path / "d", failed))["injections and heals"]
    assert found.said == (
        "first run: inject cut, occurrence 0: invoke; second run: inject cut, occurrence 0: fail, and 1 more"
    )


@pytest.mark.parametrize(("late_ns", "same"), [(100_000_000, True), (-100_000_000, True), (100_000_001, False)])
def test_an_injection_may_come_a_tenth_of_a_second_late(tmp_path: Path, late_ns: int, same: bool) -> None:
    def late(run: RunFolder) -> None:
        run.history[3]["t_ns"] += late_ns
        run.history[2]["t_ns"] -= 10**9

    found = checks(loaded(tmp_path / "a"), loaded(tmp_path / "b", late))["times of injections and heals"]
    said = "at most 100 ms apart"
    assert (found.same, found.said) == (same, said if same else f"{said} (inject cut, occurrence 0)")


def test_nothing_done_is_no_difference(tmp_path: Path) -> None:
    def calm(run: RunFolder) -> None:
        run.history = [line for line in run.history if line["op"] not in ("inject", "heal")]

    found = checks(loaded(tmp_path / "a", calm), loaded(tmp_path / "b", calm))
    times = found["times of injections and heals"]
    assert (times.same, times.said) == (True, "none")
    assert found["injections and heals"].said == "the same 0 steps in the same order"
    assert (found["schedule of faults"].same, found["work"].same) == (True, True)


PATHS = {"h1": {"0/0": 3, "0/1": 2}}


def carrying(paths: Any) -> Doctor:
    def doctor(run: RunFolder) -> None:
        assert run.counters is not None
        run.counters["hosts"]["h0"]["paths"] = paths

    return doctor


@pytest.mark.parametrize(
    ("first", "second", "evs", "same", "said"),
    [
        (PATHS, PATHS, 3, True, "the same 2"),
        (PATHS, {}, 3, True, "not known: a run has no final counters"),
        ({}, PATHS, 3, True, "not known: a run has no final counters"),
        (PATHS, {"h1": {"0/0": 3, "1/1": 2}}, 4, False, "2 in one run only: h0->h1 p0/1, h0->h1 p1/1"),
        (
            *(PATHS, {"h1": {"0/0": 3, "0/1": 0}}, 3, True),
            "1 in one run only: h0->h1 p0/1 (by chance: there are spare ones)",
        ),
    ],
)
def test_paths_are_decided_where_all_are_in_use(
    tmp_path: Path, first: Any, second: Any, evs: int, same: bool, said: str
) -> None:
    scenario = SCENARIO.replace("workload:", f"endpoint: {{ev_active: {evs}}}\nworkload:")
    runs = [
        loaded(tmp_path / name, carrying(paths), scenario=scenario) for name, paths in (("a", first), ("b", second))
    ]
    found = checks(*runs)["paths that carried data"]
    assert (found.same, found.said) == (same, said)


def event(what: str, seconds: float, healed: bool = False) -> StoryEvent:
    return StoryEvent(what, round(seconds * 1e9), healed)


@pytest.mark.parametrize(
    ("second", "differs"), [(1.05, False), (1.0501, False), (1.34, True), (0.94, False), (0.7, True)]
)
def test_times_differ_beyond_the_bound_and_a_quarter_of_the_longer(second: float, differs: bool) -> None:
    assert _differ(event("a", 1.0), event("a", second), 50_000_000) is differs
    assert not _differ(event("a", 0.0), event("a", 0.05), 50_000_000)
    assert _differ(event("a", 0.0), event("a", 0.0501), 50_000_000)
    assert not _differ(event("a", 0.75), event("a", 1.0), 50_000_000)


@pytest.mark.parametrize(
    ("times", "crossed"),
    [
        (((1.0, 2.0), (1.1, 1.8)), True),
        (((1.0, 1.8), (1.1, 2.0)), False),
        (((1.0, 2.0), (1.05, 1.8)), False),
        (((1.0, 2.0), (1.1, 1.95)), False),
        (((2.0, 1.0), (1.8, 1.1)), True),
        (((1.0, 1.0), (1.0, 1.0)), False),
    ],
)
def test_events_cross_by_more_than_the_bound_in_both_runs(times: Sequence[tuple[float, float]], crossed: bool) -> None:
    pairs = [(event(name, first), event(name, second)) for name, (first, second) in zip("ab", times, strict=True)]
    assert _crossed(pairs, 50_000_000) == ({"a", "b"} if crossed else set())
    apart = [(one, event("c", other.t_ns / 1e9, healed=True)) for one, other in pairs]
    healed = [apart[0], (event("b", times[1][0], healed=True), apart[1][1])]
    assert not _crossed(healed, 50_000_000), "times since an injection and since a heal are not compared"


def test_a_port_that_a_library_leaves_is_in_the_story(tmp_path: Path) -> None:
    def moved(run: RunFolder) -> None:
        left = {"event": "failover", "host": "h0", "peer": "h2", "qp": "a", "plane": 0, "carrier": 1}
        run.events += [
            {**left, "t_ns": at(3.7), "state": "LEFT"},
            {**left, "t_ns": at(4.6), "state": "OK"},
        ]

    (cut,) = chapters(loaded(tmp_path / "a", moved).record)
    told = {one.what: (one.t_ns, one.after_heal) for one in cut.events if "QP" in one.what}
    assert told == {
        "h0 QP to h2: port p0 is LEFT, port p1 has its part": (199_000_000, False),
        "h0 QP to h2: port p0 is OK": (1_099_000_000, False),
    }


def test_a_path_that_comes_back_unasked_belongs_to_no_fault(tmp_path: Path) -> None:
    def odd(run: RunFolder) -> None:
        run.events = [ev("h0", "h2", 1, 0, 4.0, "ASSUMED_BAD", "GOOD"), ev("h0", "h2", 1, 1, 1.0, "GOOD", "SKIP")]

    cut, other = chapters(loaded(tmp_path / "a", odd).record)
    assert (cut.events, cut.key) == ((), ("cut", 0))
    assert [(one.what, one.t_ns, one.after_heal) for one in other.events] == [("h0->h2 p1/0 back", 4 * 10**9, True)]


def test_a_return_before_any_heal_counts_from_the_injection(tmp_path: Path) -> None:
    def early(run: RunFolder) -> None:
        healed_never(run)
        run.events = run.events[:4]

    (cut,) = chapters(loaded(tmp_path / "a", early).record)
    assert [one.t_ns for one in cut.events] == [99_000_000, 149_000_000, 1_199_000_000, 1_299_000_000]
    assert [one.after_heal for one in cut.events] == [False, False, True, True]


def test_only_two_runs_of_one_seed_and_one_scenario_repeat_each_other() -> None:
    one = one_run({"k": "1"}, 1, {})
    assert repeats([one, one])
    assert not repeats([one])
    assert not repeats([one] * 3)
    assert not repeats([one, one_run({"k": "2"}, 1, {})])
    assert not repeats([one, one_run({"k": "1"}, 2, {})])


def test_the_longer_round_trip_is_the_bound(tmp_path: Path) -> None:
    def slow(run: RunFolder) -> None:
        run.environment["base_rtt_ns"] = 30_000_000

    def unknown(run: RunFolder) -> None:
        del run.environment["base_rtt_ns"]

    runs = [loaded(tmp_path / name, doctor) for name, doctor in (("a", slow), ("b", unknown), ("c", unknown))]
    assert sequence_diff(runs[0], runs[1]).bound_ns == sequence_diff(runs[1], runs[0]).bound_ns == 60_000_000
    assert sequence_diff(runs[1], runs[2]).bound_ns == 40_000_000, "as the scenario has it"


def test_equal_events_of_hundreds_are_no_noise() -> None:
    first = ["a", "b"] * 150
    assert len(_moved(first, [*first[2:], "b", "a"])) <= 2

    def record(ops: Sequence[str]) -> Any:
        lines = [SimpleNamespace(op=op, fault="cut", number=0, type="invoke") for op in ops]
        return SimpleNamespace(history=lines)

    ops = ["inject", "heal"] * 150
    found = _done(record(ops), record(["heal", *ops]))
    assert found.said == "first run: nothing; second run: heal cut, occurrence 0: invoke"


def test_a_run_that_never_began_has_times_of_the_clock(tmp_path: Path) -> None:
    def never(run: RunFolder) -> None:
        run.history = [line for line in run.history if line["op"] == "phase"]
        run.completions = []
        run.events = [ev("h0", "h2", 1, 0, 7.0, "ASSUMED_BAD", "GOOD")]

    (only,) = chapters(loaded(tmp_path / "a", never).record)
    assert [one.t_ns for one in only.events] == [at(7.0)]


def test_times_are_since_the_start_of_each_run(tmp_path: Path) -> None:
    def later(run: RunFolder) -> None:
        for line in (*run.history, *run.events):
            line["t_ns"] += 5 * 10**9
        for row in run.completions:
            row[2:4] = [row[2] + 5 * 10**9, row[3] + 5 * 10**9]

    found = checks(loaded(tmp_path / "a"), loaded(tmp_path / "b", later))["times of injections and heals"]
    assert (found.same, found.said) == (True, "at most 0 ms apart")
