"""Variants, waits and spreads where a bound is met exactly, or where something is not there."""

from __future__ import annotations

from math import inf, sqrt
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.checks.result import CheckResult, Fidelity, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.bounds import Room, bounds_of
from mrc_testbed.testbed.compare.comparison import NEGLIGIBLE, compare
from mrc_testbed.testbed.compare.copies import _first_other
from mrc_testbed.testbed.compare.crossing import _MEASURES, _calm_ns, _Felt, _steps_ns, _wins, _words, crossed
from mrc_testbed.testbed.compare.figures import FIGURES, _known
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.settings import _unread_groups
from mrc_testbed.testbed.compare.spread import _reads
from mrc_testbed.testbed.compare.statistics import t_quantile
from mrc_testbed.testbed.compare.transports import (
    MOST_READ,
    StoodStill,
    fault_outages,
    has_records,
    side_by_side,
    stood_still,
    waited_for_the_heal,
)
from mrc_testbed.testbed.compare.waits import _own_timers, waits_of
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.checks.test_folder import LINK, SCENARIO, RunFolder, fault
from tests.unit.checks.test_judge import break_off
from tests.unit.checks.test_outage import stall, watched
from tests.unit.compare.drawn import STEP, Doctor, healed_never, loaded, one_run

CALM = SCENARIO[: SCENARIO.index("faults:")] + SCENARIO[SCENARIO.index("expect:") :]


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


def test_two_transports_stand_side_by_side_and_cells_without_records_do_not(tmp_path: Path) -> None:
    mrc, tcp = loaded(tmp_path / "a"), loaded(tmp_path / "b", scenario=f"transport: tcp\njudge: [mrc]\n{SCENARIO}")
    assert side_by_side(compare([mrc, tcp]))
    assert not side_by_side(compare([mrc, loaded(tmp_path / "c")]))
    assert not side_by_side(compare([mrc, one_run({"k": "1"}, 1, {STEP: 1.0})]))
    for runs, read in ((MOST_READ, True), (MOST_READ + 1, False)):
        many: Any = SimpleNamespace(runs=[mrc] * runs)
        assert has_records(many) is read


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


def test_hosts_that_are_as_fast_as_their_ports_have_shorter_timers() -> None:
    fast = CALM.replace("25mbit", "10gbit").replace("rtt: 20ms", "rtt: 100us")
    assert _own_timers(load_scenario_text(f"world: virtual\n{fast}  []\n")) == []


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


def test_steps_are_known_where_one_job_has_some() -> None:
    jobs = [SimpleNamespace(entry=SimpleNamespace(has_steps=steps)) for steps in (False, True)]
    for programs, known in (([], [True, False, True, False]), (["train.py"], [True, False, True, True])):
        job = SimpleNamespace(jobs=jobs, programs=programs, flows=[])
        record: Any = SimpleNamespace(scenario=SimpleNamespace(job=job))
        keys = ("step_time.p100", "flow_goodput.min", "stall.p100", "programs_failed")
        assert [_known(next(one for one in FIGURES if one.key == key), record) for key in keys] == known
    flows: Any = SimpleNamespace(scenario=SimpleNamespace(job=SimpleNamespace(jobs=[], programs=[], flows=["a"])))
    assert [_known(one, flows) for one in FIGURES if one.key in ("step_time.p100", "flow_goodput.min")] == [False, True]


def test_what_is_calm_ends_with_the_first_fault_or_the_first_flows_beside_the_job(tmp_path: Path) -> None:
    later = SCENARIO.replace("expect:", f'  - {{at: 5s, link-down: "{LINK}", for: 1s, name: again}}\nexpect:')
    flows = later.replace("faults:", "  - write: {from: h0, to: h2, start: 2s, for: 1s}\nfaults:")
    assert _calm_ns(loaded(tmp_path / "a", scenario=later).record) == 3_500_000_000
    assert _calm_ns(loaded(tmp_path / "b", scenario=flows).record) == 2_000_000_000
    assert _calm_ns(loaded(tmp_path / "c", scenario=CALM).record) == inf


def as_in(other: RunFolder) -> Doctor:
    """All as in another one."""

    def doctor(run: RunFolder) -> None:
        vars(run).update(vars(other))

    return doctor


def test_a_measure_that_no_run_knows_has_no_table(tmp_path: Path) -> None:
    def grid(blind: set[str]) -> list[str]:
        runs = []
        for name in ("a-x", "a-y", "b-x", "b-y"):
            keys = f"variant: {name[0]}\ncase: {name[2]}\nendpoint: {{ev_active: {'ab'.index(name[0]) + 1}}}\n"
            seen = RunFolder() if name in blind else watched()
            seen.scenario = keys + SCENARIO.replace("compute: 100", f"compute: 10{'xy'.index(name[2])}")
            own = tmp_path / f"{len(blind)}-{name}"
            runs.append(loaded(own, as_in(seen)))
        return [table.title for table in crossed(compare(runs))]

    assert grid(set()) == grid({"a-x"}) == ["worst step", "longest standstill", "goodput kept"]
    assert grid({"a-x", "a-y", "b-x", "b-y"}) == ["worst step", "goodput kept"]


def test_a_row_is_counted_from_1() -> None:
    assert _first_other([1, 2], [1, 3]) == 2
    assert _first_other([1], [1, 3]) == 2
    assert _first_other([], [3]) == 1
    assert _first_other([1], [1]) is None


def test_a_job_that_died_in_one_of_two_occurrences_died_in_the_fault(tmp_path: Path) -> None:
    def dies(run: RunFolder) -> None:
        later = [("inject", "invoke", 6.0), ("inject", "ok", 6.0), ("heal", "invoke", 6.1), ("heal", "ok", 6.1)]
        vars(run).update(vars(watched(stall("h0", "h1", 3.6, 4.0))))
        run.history[6:6] = [fault(op, kind, seconds, cycle=1) for op, kind, seconds in later]
        break_off(run)

    comparison = compare([loaded(tmp_path / "a", dies), one_side(tmp_path)])
    assert [stood_still(column, "cut").died for column in comparison.columns] == [True, False]
