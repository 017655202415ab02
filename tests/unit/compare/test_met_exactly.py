"""Two runs, variants and waits where a bound is met exactly, or where something is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.checks.result import CheckResult, Fidelity, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.bounds import Room, bounds_of
from mrc_testbed.testbed.compare.comparison import NEGLIGIBLE, compare
from mrc_testbed.testbed.compare.crossing import _MEASURES, _Felt, _steps_ns, _wins, _words
from mrc_testbed.testbed.compare.determinism import DeterminismCheck, _done, determinism_checks
from mrc_testbed.testbed.compare.runs import ComparedRun, load_run
from mrc_testbed.testbed.compare.sequence import _crossed, _differ, _moved, repeats, sequence_diff
from mrc_testbed.testbed.compare.settings import _unread_groups
from mrc_testbed.testbed.compare.spread import _reads
from mrc_testbed.testbed.compare.statistics import t_quantile
from mrc_testbed.testbed.compare.story import StoryEvent, chapters
from mrc_testbed.testbed.compare.transports import (
    MOST_READ,
    StoodStill,
    fault_outages,
    has_records,
    side_by_side,
    waited_for_the_heal,
)
from mrc_testbed.testbed.compare.waits import _own_timers, waits_of
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.checks.test_folder import LINK, SCENARIO, RunFolder, at, ev, fault
from tests.unit.checks.test_outage import stall, watched
from tests.unit.compare.drawn import STEP, one_run

Doctor = Callable[[RunFolder], None]


def loaded(folder: Path, doctor: Doctor = lambda _: None, **about: Any) -> ComparedRun:
    """A run whose verdict is not asked."""
    run = RunFolder(**about)
    doctor(run)
    folder.mkdir()
    run.write(folder)
    return load_run(folder)


def felt(value: float | None, dead: int = 0, runs: int = 1, died: str = "") -> _Felt:
    """A job with one value for every measure."""
    stall = StoodStill(value, 20_000_000, 40_000_000)
    return _Felt(value, None, value, stall, dead, runs, died)


@pytest.mark.parametrize(
    ("own", "first", "less", "more"),
    [
        (felt(98.0), felt(100.0), False, False),
        (felt(97.9), felt(100.0), True, False),
        (felt(102.0), felt(100.0), False, False),
        (felt(102.1), felt(100.0), False, True),
        (felt(None), felt(100.0), False, False),
        (felt(100.0), felt(None), False, False),
        (felt(500.0), felt(None, dead=1), True, True),
        (felt(500.0), felt(None, runs=0), False, False),
        (felt(1.0, dead=1), felt(100.0), False, False),
        (felt(1.0, dead=1), felt(None, dead=1), False, False),
    ],
)
def test_a_rival_wins_by_more_than_2_percent_or_by_being_alive(
    own: _Felt, first: _Felt, less: bool, more: bool
) -> None:
    step, _, kept = _MEASURES
    assert (_wins(step, own, first), _wins(kept, own, first)) == (less, more)


def test_stalls_that_are_too_short_to_be_told_apart_do_not_win() -> None:
    still = _MEASURES[1]
    assert not _wins(still, felt(0.0), felt(40e6))
    assert _wins(still, felt(0.0), felt(41e6))
    assert _wins(still, felt(40e6), felt(41e6))
    assert _words(still, felt(None)) == "?"
    assert _words(still, felt(None, dead=1, died="4 s")) == "died 4 s"
    assert _words(still, felt(None, dead=2, runs=3)) == "2 of 3 died"


def checks(one: ComparedRun, other: ComparedRun) -> dict[str, DeterminismCheck]:
    return {check.what: check for check in determinism_checks(one, other)}


def healed_never(run: RunFolder) -> None:
    run.history = [line for line in run.history if line["op"] != "heal"]


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


def test_two_transports_stand_side_by_side_and_cells_without_records_do_not(tmp_path: Path) -> None:
    mrc, tcp = loaded(tmp_path / "a"), loaded(tmp_path / "b", scenario=f"transport: tcp\njudge: [mrc]\n{SCENARIO}")
    assert side_by_side(compare([mrc, tcp]))
    assert not side_by_side(compare([mrc, loaded(tmp_path / "c")]))
    assert not side_by_side(compare([mrc, one_run({"k": "1"}, 1, {STEP: 1.0})]))
    assert has_records(compare([mrc] * MOST_READ))
    assert not has_records(compare([mrc] * (MOST_READ + 1)))


@pytest.mark.parametrize(
    ("keys", "rtt", "said"),
    [
        ("", "20ms", []),
        ("", "2500us", []),
        ("", "2499us", ["MRC's least timeout of 10 ms"]),
        ("endpoint: {timeout: 15ms}\n", "2ms", ["endpoint.timeout of 15 ms"]),
        ("endpoint: {reorder_time: 3ms}\n", "20ms", ["endpoint.reorder_time of 3 ms"]),
    ],
)
def test_timers_of_mrc_that_are_set_in_seconds(keys: str, rtt: str, said: list[str]) -> None:
    text = f"{keys}{SCENARIO.replace('rtt: 20ms', f'rtt: {rtt}')}  []\n"
    assert _own_timers(load_scenario_text(text)) == said


def test_a_figure_over_nothing_says_so(tmp_path: Path) -> None:
    def idle(run: RunFolder) -> None:
        for row in run.completions:
            row[4] = 0

    found = loaded(tmp_path / "a", idle).figures
    assert found.lacking["goodput during faults / clean"] == "goodput clean is 0"
    assert found.values["goodput during faults"] == 0


def test_a_step_that_ends_as_the_fault_begins_is_a_usual_one(tmp_path: Path) -> None:
    record = loaded(tmp_path / "a", durations=[1.0, 0.8, 1.0, 0.7, 2.0, 1.0, 1.0, 0.8]).record
    assert _steps_ns(record, True) == [800_000_000, 1_000_000_000, 700_000_000]


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


def test_one_occurrence_says_what_broke(tmp_path: Path) -> None:
    def calm(run: RunFolder) -> None:
        run.history = [line for line in run.history if line["op"] not in ("inject", "heal")]

    runs = [
        loaded(tmp_path / name, doctor, scenario=f"variant: {name}\n{SCENARIO}")
        for name, doctor in (("a", calm), ("b", lambda _: None))
    ]
    (cut,) = fault_outages(compare(runs))
    assert (cut.what, cut.lasted_ns) == (f"link-down {LINK}", 1_001_000_000)


def test_a_fault_that_never_healed_ended_no_stall(tmp_path: Path) -> None:
    run = watched(stall("h0", "h1", 3.5, 5.5))
    healed_never(run)
    one = loaded(tmp_path / "a", lambda it: vars(it).update(vars(run)))
    assert not waited_for_the_heal(one.record, 2e9)
    assert not waited_for_the_heal(one.record, 2e9, "cut")
    assert not waited_for_the_heal(loaded(tmp_path / "b", lambda it: vars(it).update(vars(watched()))).record, 2e9)
    (told,) = fault_outages(compare([one, one_side(tmp_path)]))
    assert (told.lasted, told.lasted_ns) == ("never healed", None)


def one_side(folder: Path) -> ComparedRun:
    def never(run: RunFolder) -> None:
        vars(run).update(vars(watched()))
        healed_never(run)
        run.scenario = f"transport: tcp\njudge: [mrc]\n{SCENARIO}"

    return loaded(folder / "side", never)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("small", "other"), ["MRC (small)", "MRC (other)"]),
        (("small, few", "small, many"), ["MRC (few)", "MRC (many)"]),
        (("small, few", "other, few"), ["MRC (small, few)", "MRC (other, few)"]),
    ],
)
def test_waits_of_one_transport_are_named_by_what_differs(
    tmp_path: Path, names: tuple[str, str], said: list[str]
) -> None:
    def stalled(run: RunFolder) -> None:
        vars(run).update({**vars(watched(stall("h0", "h1", 3.6, 3.9))), "scenario": run.scenario})

    runs = []
    for number, each in enumerate(names):
        name, _, variant = each.partition(", ")
        keys = f"variant: {variant}\n" if variant else ""
        text = f"{keys}endpoint: {{ev_active: {number + 1}}}\n{SCENARIO}".replace("name: small", f"name: {name}")
        runs.append(loaded(tmp_path / str(number), stalled, scenario=text))
    assert [one.name for one in waits_of(runs) if one.what == "stall"] == said


def test_a_plugin_that_is_not_chosen_is_no_setting(tmp_path: Path) -> None:
    text = f"endpoint: {{}}\n{SCENARIO}  []\n"
    scenario = load_scenario_text(text)
    endpoint = SimpleNamespace(plugins=("mine", "other"), chosen=("mine", "random"))
    offered = SimpleNamespace(named=lambda _: {})
    asked: Any = SimpleNamespace(endpoint=endpoint, offered=offered, transport=scenario.transport)
    found = set(_unread_groups(asked))
    assert "endpoint.other" in found
    assert "endpoint.mine" not in found
    assert not found & {"endpoint", scenario.transport.group}


def test_a_bound_that_is_the_place_itself_is_enough() -> None:
    values = [98.0, 100.5, 101.0, 99.0, 102.0, 100.25]
    place = fmean(values) + t_quantile(5, 0.998) * (stdev(values) * sqrt(1 + 1 / 6))
    for limit, room in ((place, Room.ENOUGH), (place * (1 - 1e-15), Room.TIGHT)):
        checks = [
            CheckResult("a", Status.PASS, seen, f"<= {limit}", "ms", limit=limit, place="mine.yaml:9")
            for seen in values
        ]
        verdicts = [Verdict(Status.PASS, "small", (check,), Fidelity(())) for check in checks]
        assert bounds_of("small", verdicts).bounds[0].room is room


def test_a_spread_that_is_a_hundredth_more_is_more() -> None:
    ours = {seed: NEGLIGIBLE + (2**-10 if seed % 2 else -(2**-10)) for seed in range(100)}
    theirs = {seed + 200: 0.0 for seed in range(100)}
    assert fmean(ours.values()) == NEGLIGIBLE
    assert (_reads(ours, theirs), _reads(theirs, ours)) == ("more", "less")
    assert _reads({seed: one - 0.0001 for seed, one in ours.items()}, theirs) == ""
