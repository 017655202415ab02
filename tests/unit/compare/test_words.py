"""Words of comparisons at their bounds: ratios, differences, caveats, copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.compare.comparison import DIFFERENCE, RATIO, ComparisonRow, compare
from mrc_testbed.testbed.compare.copies import unlike_copies
from mrc_testbed.testbed.compare.document import machine
from mrc_testbed.testbed.compare.figures import FIGURES, ComparedFigure, figures_among
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.spread import spreads
from mrc_testbed.testbed.compare.statistics import Estimate
from mrc_testbed.testbed.compare.words import TIMES, caveat, estimate_words, findings, title
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from tests.unit.compare.drawn import BACK, LOST, STEP, one_run


def figure(key: str) -> ComparedFigure:
    return next(one for one in FIGURES if one.key == key)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((10.0, "10"), (9.994, "9.99"), (0.1, "0.10"), (0.0999, "0.0999"), (123.4, "123")),
        *((1.0499, "1.050"), (1.05, "1.05"), (0.9501, "0.950"), (0.95, "0.95"), (1.0, "1.000")),
    ],
)
def test_a_ratio_has_as_many_digits_as_it_needs(value: float, said: str) -> None:
    assert estimate_words(ComparisonRow(figure(STEP), RATIO, ()), Estimate(value)) == (f"{TIMES}{said}", "")


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (Estimate(5e8, -2e8, 1.2e9), ("+0.5 s", "-0.2 s to +1.2 s")),
        (Estimate(-5e8, -9e8, -1e8), ("-500 ms", "-900 ms to -100 ms")),
        (Estimate(-5e8, -3e9, 0.0), ("-0.5 s", "-3 s to 0 s")),
        (Estimate(0.0, why="repeats alike"), ("0 ms", "repeats alike")),
    ],
)
def test_a_difference_and_its_ends_have_one_unit(estimate: Estimate, said: tuple[str, str]) -> None:
    told = estimate_words(ComparisonRow(figure(BACK), DIFFERENCE, ()), estimate)
    assert tuple(text.replace("\N{MINUS SIGN}", "-") for text in told) == said


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        (1, "Of 1 interval, hardly any would"),
        (19, "Of 19 intervals, hardly any would"),
        (20, "Of 20 intervals, about 1 would"),
        (50, "Of 50 intervals, about 2 would"),
        (70, "Of 70 intervals, about 4 would"),
    ],
)
def test_one_in_twenty_is_beyond_chance_by_chance(intervals: int, said: str) -> None:
    known: Any = SimpleNamespace(unlike=(), alike=False, intervals=intervals, machines=frozenset(), paired=False)
    assert said in caveat(known)


def test_three_findings_are_told_and_the_others_counted() -> None:
    for keys, more in ((3, ""), (5, "; and 2 more")):
        some = [one.key for one in FIGURES if one.dimension.name == "TIME" and not one.in_rtt][:keys]
        runs = [
            one_run({"k": group}, turn, dict.fromkeys(some, int(group) * 1e9 + turn * 1e6))
            for group in "12"
            for turn in range(3)
        ]
        (line,) = findings(compare(runs))
        assert line.count(", worse") == 3
        assert line.endswith(f"worse{more}")


def test_more_groups_than_five_are_no_sentences() -> None:
    for groups, lines in ((5, 4), (6, 0)):
        runs = [
            one_run({"k": str(group)}, turn, {STEP: group + turn / 100})
            for group in range(1, groups + 1)
            for turn in (1, 2)
        ]
        assert len(list(findings(compare(runs)))) == lines


def virtual(number: int, seed: int = 1, **about: Any) -> ComparedRun:
    """A cell of a sweep in virtual time."""
    run = one_run({"k": "1"}, seed, {LOST: 5.0})
    return replace(run, **{"folder": Path(f"sweep/{number}"), "world": WorldKind.VIRTUAL, **about})


OTHER = one_run({}, 1, {LOST: 6.0}).figures


@pytest.mark.parametrize(
    ("runs", "lines"),
    [
        ([virtual(1), virtual(2)], 0),
        ([virtual(1), virtual(2, figures=OTHER)], 1),
        ([virtual(1), virtual(2, figures=OTHER), virtual(3, figures=OTHER), virtual(4)], 2),
        ([virtual(1), virtual(2, seed=2, figures=OTHER)], 0),
        ([virtual(1), virtual(2, figures=OTHER, world=WorldKind.KERNEL)], 0),
        ([virtual(1), virtual(2, figures=OTHER, environment={"version": "2"})], 0),
        ([virtual(1), virtual(2, figures=OTHER, settings={"k": "2"})], 0),
    ],
)
def test_cells_that_had_to_be_copies_and_are_not_are_told(runs: list[ComparedRun], lines: int) -> None:
    found = list(unlike_copies(runs))
    assert len(found) == lines
    for line in found:
        assert line.startswith("sweep/1 and sweep/")
        assert "differ in the figure packets_lost; no plugin is in it, so this is a defect of the testbed" in line


def test_a_plugin_is_the_first_to_be_asked() -> None:
    settings = {"plugins.0": "mine.py 12345678", "k": "1"}
    (line,) = unlike_copies([virtual(1, settings=settings), virtual(2, settings=settings, figures=OTHER)])
    assert "a plugin is asked for the same twice" in line


def test_a_machine_of_which_nothing_is_known_is_near_to_no_limit() -> None:
    assert machine(one_run({}, 1, {})) == {
        **{"kept_time": True, "why": "", "virtual": False, "nearest": "", "share": None},
    }
    late = machine(one_run({}, 1, {}, Status.INCONCLUSIVE))
    assert (late["kept_time"], late["why"]) == (False, "late")


MAIN = """
programs_failed, program_time.p100, step_time.median clean, step_time.p100, step_time.p100 during faults / clean,
goodput during faults / clean, flow_goodput.min, fair_share.min, message_time.p99, latency.median, latency.p99,
slowdown.p99, flow_time.p99, stall.p100, recovery.p50, recovery.p100, recovery.p100 in rtt, packets_lost,
retransmissions, trims, ecn_skips, located.p100, map_recall, falsely_accused
"""
MORE = """
goodput clean, goodput during faults, goodput during faults / clean, flow_goodput.min, fair_share.min, balance,
uplink_share.min, died_at, map_precision, map_recall
"""
NEITHER = "link_load.max, evs_retired, out_of_order, marks, trims, ecn_skips, nacks, route_updates"


def test_a_terminal_has_room_for_some_and_more_is_better_of_some() -> None:
    assert [one.key for one in FIGURES if one.main] == " ".join(MAIN.split()).split(", ")
    assert [one.key for one in FIGURES if one.better == "more"] == " ".join(MORE.split()).split(", ")
    assert [one.key for one in FIGURES if not one.better] == NEITHER.split(", ")
    assert [one.key for one in FIGURES if one.of_programs] == ["programs_failed", "program_time.p100"]
    shares = ("fair_share.min", "balance", "wasted", "uplink_share.max", "slowdown.p99", "out_of_order")
    assert not any(figure(key).counts for key in (*shares, "link_load.max", "recovery.p100 in rtt", STEP))
    assert all(figure(key).counts for key in (LOST, "bytes_wrong", "timeouts"))


@pytest.mark.parametrize(
    ("low", "high", "clear"), [(1.0, 3.0, False), (0.5, 1.0, False), (1.01, 3.0, True), (0.1, 0.99, True)]
)
def test_an_interval_holds_its_ends(low: float, high: float, clear: bool) -> None:
    assert Estimate(2.0, low, high).clear_of(1.0) is clear
    assert not Estimate(2.0, None, high).clear_of(1.0)
    assert not Estimate(2.0, low, None).clear_of(1.0)


def test_a_title_has_all_scenarios() -> None:
    runs = [replace(one_run({"k": name, "l": name, "m": name, "n": name}, 1, {}), scenario=name) for name in "abc"]
    assert [title(compare(runs[:count])) for count in (2, 3)] == ["a and b", "a, b and c"]


def test_a_variant_that_some_runs_lack_is_no_axis() -> None:
    runs = [one_run({"variant": "a", "k": "1"}, 1, {}), one_run({"k": "2"}, 1, {}), one_run({"k": "1"}, 2, {})]
    found = compare(runs)
    assert ([axis.key for axis in found.axes], [len(column.runs) for column in found.columns]) == (["k"], [2, 1])
    named = compare([one_run({"variant": name, "case": "x"}, 1, {}) for name in "ab"])
    assert [axis.key for axis in named.axes] == ["variant"]


def test_a_run_of_a_late_machine_is_not_believed_whatever_its_verdict() -> None:
    late = one_run({}, 1, {}, Status.INCONCLUSIVE)
    failed = replace(late, verdict=replace(late.verdict, status=Status.FAIL))
    open_ = replace(late, verdict=replace(one_run({}, 1, {}).verdict, status=Status.INCONCLUSIVE))
    assert [run.believed for run in (late, failed, open_, one_run({}, 1, {}))] == [False, False, False, True]


def test_a_run_on_the_kernel_hides_no_copies_behind_it() -> None:
    runs = [virtual(0, world=WorldKind.KERNEL), virtual(1), virtual(2, figures=OTHER)]
    assert len(list(unlike_copies(runs))) == 1


def test_what_programs_print_is_of_programs_and_its_middle_is_shown() -> None:
    keys = [f"program.rate.{stat}" for stat in ("median", "min", "max")]
    printed = figures_among(keys)[:3]
    assert [(one.main, one.of_programs) for one in printed] == [(True, True), (True, True), (False, True)]


def test_three_keys_of_work_are_named_whole() -> None:
    keys = [f"workload.0.train.{key}" for key in ("compute", "steps", "allreduce")]
    found = compare([one_run(dict.fromkeys(keys, value), 1, {}) for value in "12"])
    assert found.notes == (f"the workload differs ({', '.join(keys)}): times and counts are of different work",)


def test_a_group_that_lacks_a_figure_is_compared_by_the_others() -> None:
    base = [one_run({"k": "1"}, turn, {STEP: 1e9 + turn * 1e6, BACK: 1e8}) for turn in range(3)]
    (line,) = findings(compare([*base, *(one_run({"k": "2"}, turn, {STEP: 1e9 + turn * 9e5}) for turn in range(3))]))
    assert line == "k=2 against k=1: no difference beyond chance"


def test_each_group_has_five_seeds_before_spreads_are_told() -> None:
    for seeds, told in ((4, 0), (5, 1)):
        sizes = (("1", 5), ("2", seeds))
        runs = [one_run({"k": group}, seed, {STEP: 1e9 + seed * 1e8}) for group, size in sizes for seed in range(size)]
        assert len(spreads(compare(runs))) == told
