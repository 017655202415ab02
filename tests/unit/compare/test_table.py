"""Comparisons in a terminal, line by line, with what is bold, dim and coloured."""

from __future__ import annotations

from collections.abc import Sequence

from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.compare.comparison import Comparison, compare
from mrc_testbed.testbed.compare.table import WIDTH, render_comparison
from mrc_testbed.testbed.compare.words import TIMES
from tests.unit.compare.drawn import BACK, LOST, QPS, STEP, TRIMS, marked, one_run

WORST, STALL, AGAIN = "step_time.p100", "stall.p100", "retransmissions"


def shown(comparison: Comparison) -> str:
    """All of it, with a letter for the sign of times."""
    return "\n".join(marked(render_comparison(comparison))).replace(TIMES, "x")


def test_two_groups_stand_side_by_side() -> None:
    usual = {BACK: 1e8, TRIMS: 2.0, QPS: 0.0}
    base = [one_run({"k": "1"}, turn, {**usual, STEP: 1e9 + turn * 1e7, LOST: 100.0 + turn}) for turn in range(3)]
    slow = {turn: {STEP: 2e9 + turn * 1e7, LOST: 50.0 + turn, TRIMS: 5.0 + turn, QPS: 0.0} for turn in (11, 12, 14)}
    runs = [
        *base,
        *(one_run({"k": "2"}, turn, {**slow[turn], BACK: 1.2e8}) for turn in (11, 12)),
        one_run({"k": "2"}, 13, {STEP: 9e9, QPS: 0.0}, Status.INCONCLUSIVE),
        one_run({"k": "2"}, 14, slow[14], Status.FAIL, {BACK: "no fault healed"}),
    ]
    assert shown(compare(runs)) == SIDE_BY_SIDE


def test_more_groups_than_five_are_rows_and_their_figures_several_tables() -> None:
    runs = [
        one_run(
            {"k": str(group)},
            turn,
            {
                **{STEP: (1 + group) * 1e9 + turn * 1e6, WORST: 2e9 * group + turn * 1e7, BACK: group * 1e8},
                **{STALL: group * 1e7 + turn * 1e5, LOST: 50.0 * group + turn, AGAIN: 60.0 * group, "wasted": 0.1},
            },
        )
        for group in range(1, 7)
        for turn in range(3)
    ]
    lines = shown(compare(runs)).splitlines()
    assert lines[:2] == ["b<group>   b<seed>   b<verdict>   b<folder>   b<why>", "k=1            3 pass"]
    tables = [number for number, line in enumerate(lines) if line.startswith("b<k>")]
    assert tables == [7, 24]
    assert lines[7:12] == DOWN.splitlines()
    assert lines[24] == "b<k>   b<recovery, P100>   b<packets taken for lost>   b<retransmissions>"
    assert not any("against" in line for line in lines), "the table says it better"


def test_a_single_figure_too_many_makes_no_table_of_its_own() -> None:
    keys = [STEP, WORST, STALL, BACK, LOST]
    for figures, tables in ((keys, 1), ([*keys, AGAIN], 2)):
        runs = [one_run({"k": str(group)}, 1, dict.fromkeys(figures, 20.0 + group)) for group in range(6)]
        assert sum(line.startswith("b<k>") for line in shown(compare(runs)).splitlines()) == tables
    five = [one_run({"k": str(group)}, 1, {STEP: 1.0 + group}) for group in range(5)]
    assert not any(line.startswith("b<k>") for line in shown(compare(five)).splitlines())


def test_two_axes_are_crossed_figure_by_figure() -> None:
    runs = [
        one_run({"a": down, "b": across}, turn, {STEP: (1 + int(down)) * size + turn * 1e6})
        for down in "12"
        for across, size in (("x", 1e9), ("y", 2e9))
        for turn in (1, 2)
    ]
    assert shown(compare(runs)).split("2-y-2\n")[1] == CROSSED


def test_of_many_runs_those_are_listed_that_did_not_pass() -> None:
    done = [Status.PASS, Status.MEASURED]
    statuses: Sequence[Sequence[Status]] = (
        [*done * 3, Status.FAIL],
        [Status.MEASURED, Status.INCONCLUSIVE, Status.DIED, *done],
        [Status.PASS],
        [Status.PASS, Status.FAIL],
    )
    runs = [
        one_run({"k": str(group)}, seed, {STEP: 1e9 + group * seed}, status)
        for group, some in enumerate(statuses, 1)
        for seed, status in enumerate(some, 1)
    ]
    assert shown(compare(runs)).split("y<note")[0] == MANY
    assert "1-4" in shown(compare(runs[3:])), "twelve are listed"


def test_repeats_are_columns_and_their_spread_is_below() -> None:
    runs = [
        one_run({"k": "1"}, seed, {STEP: 1e9 + seed * 1e8, LOST: 20.0 * seed, "wasted": 0.1}) for seed in range(1, 6)
    ]
    assert shown(compare(runs)).split("run 5, seed 5   5      pass      1-5\n")[1] == ALIKE


def test_spreads_of_groups_are_below_their_figure() -> None:
    runs = [
        one_run({"k": group}, seed, {STEP: 1e9 + seed * step})
        for group, step in (("1", 1e8), ("22", 4e8))
        for seed in range(5)
    ]
    lines = shown(compare(runs)).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("b<spread"))
    assert lines[begin + 2 : begin + 4] == SPREADS.splitlines()


def test_without_a_main_figure_all_are_shown() -> None:
    runs = [one_run({"k": group}, turn, {"wasted": 0.1 * int(group)}) for group in "12" for turn in (1, 2)]
    assert "wasted                0.1             0.2" in shown(compare(runs))


def test_brackets_in_values_are_no_markup() -> None:
    values = [f"[p][0-{last}]" for last in range(6)]
    for some in (values[:2], values):
        told = shown(compare([one_run({"links": one}, seed, {STEP: 1e9}) for one in some for seed in (1, 2, 3)]))
        assert all(told.count(value) >= 2 for value in some)


def test_a_terminal_may_be_wider_and_is_never_narrower() -> None:
    runs = [one_run({"k": group}, 1, {STEP: 1e9}) for group in ("1", "2" * 150)]
    assert max(map(len, marked(render_comparison(compare(runs)), width=200))) > WIDTH


SIDE_BY_SIDE = """\
b<group>   b<seed>   b<verdict                  >   b<folder>   b<why                                         >
k=1     0      pass                        1-0
        1      pass                        1-1
        2      pass                        1-2
k=2     11     pass                        2-11
        12     pass                        2-12
        13     inconclusive, not counted   2-13     machine: late
        14     fail                        2-14     scenario: no check says anything of this run
y<note: 1 inconclusive run shown, not counted; --count-inconclusive counts them>
y<note: recovery, P100: not judged, because only known for 2 of 3 runs of k=2 (no fault healed)>
                         b<   k=1>
                         b<(base)>   b<                 k=2>
step, clean median       1.01 s                 2.12 s
                                           r<x2.10 worse>
                                          d<2.06 to 2.15>
recovery, P100           100 ms   120 ms (2 of 3 runs)
                                                 x1.20
packets taken for lost      101                   62.3
                                          g<x0.62 better>
                                          d<0.59 to 0.65>
trims                         2                   17.3
                                            y<+15.3 more>
                                        d<+11.5 to +19.1>
0 in every run that counts: QP errors
Ratios are of geometric means, with 95 % intervals (Welch, on logarithms). Of 3 intervals, hardly
any would be beyond chance by chance alone.
- k=2 against k=1: step, clean median x2.10 (2.06 to 2.15), worse; packets taken for lost x0.62
(0.59 to 0.65), better; trims +15.3 (+11.5 to +19.1), more\
"""
DOWN = """\
b<k>   b<step, clean median>   b<  step, P100>   b<longest stall>
1                  2 s         2.01 s         10.1 ms
2                  3 s         4.01 s         20.1 ms
           r<x1.50 worse>    r<x2.00 worse>     r<x1.99 worse>
          d<1.50 to 1.50>   d<1.98 to 2.01>    d<1.97 to 2.01>
"""
CROSSED = """\
b<step, clean median             >
b<a>   b<         b=x>   b<         b=y>
1            2 s            4 s
                    r<x2.00 worse>
                   d<2.00 to 2.00>
2            3 s            6 s
     r<x1.50 worse>    r<x3.00 worse>
    d<1.50 to 1.50>   d<2.99 to 3.00>
Ratios are of geometric means, with 95 % intervals (of pairs with the same seed, on logarithms). Of
3 intervals, hardly any would be beyond chance by chance alone.
- a=1, b=y against a=1, b=x: step, clean median x2.00 (2.00 to 2.00), worse
- a=2, b=x against a=1, b=x: step, clean median x1.50 (1.50 to 1.50), worse
- a=2, b=y against a=1, b=x: step, clean median x3.00 (2.99 to 3.00), worse\
"""
MANY = """\
b<group>   b<seed>   b<verdict                             >   b<folder>   b<why                                  >
k=1            3 pass, 1 fail, 3 measured
        7      fail                                   1-7      scenario: no check says anything of
                                                               this run
k=2            1 pass, 1 inconclusive, 2 measured,
               1 died
        2      inconclusive, not counted              2-2      machine: late
        3      died                                   2-3      network:
k=3     1      pass                                   3-1
k=4            1 pass, 1 fail
        2      fail                                   4-2      scenario: no check says anything of
                                                               this run
"""
ALIKE = """\
                       b<run 1, seed 1>
                       b<       (base)>   b<run 2, seed 2>   b<run 3, seed 3>   b<run 4, seed 4>   b<run 5, seed 5>
step, clean median             1.1 s           1.2 s           1.3 s           1.4 s           1.5 s
                                               x1.09           x1.18           x1.27           x1.36
packets taken for                 20              40              60              80             100
lost                                           x2.00           x3.00           x4.00           x5.00
b<spread between seeds                                                                     >
                                    b<seeds>   b<least>   b<median>   b< most>   b<               apart>
step, clean median       all runs       5   1.1 s    1.3 s   1.5 s   17 % (3.4 % to 32 %)
packets taken for lost   all runs       5      20       60     100   119 % (0 % to 396 %)
d<Apart: by how much two runs with other seeds differ, in the mean, with a 95 % interval (jackknife). >
d<In virtual time the seed alone decides it, on a kernel the machine, too.>
All runs have the same settings: differences are chance or the machine.\
"""
SPREADS = """\
step, clean median   k=1        5     1 s    1.2 s   1.4 s          18 % (3.6 % to 35 %)
                     k=22       5     1 s    1.8 s   2.6 s   60 % (5.6 % to 144 %), more
"""
