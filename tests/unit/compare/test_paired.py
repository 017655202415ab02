"""Groups that share seeds are compared seed by seed: what a seed does to both of them is no chance between them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import exp, log
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.result import Fidelity, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.comparison import ComparisonCell, compare
from mrc_testbed.testbed.compare.figures import RunFigures
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.spread import spreads
from mrc_testbed.testbed.compare.statistics import ALIKE, Estimate
from mrc_testbed.testbed.compare.words import caveat
from mrc_testbed.testbed.scenario.model.transports import WorldKind

KEY = "step_time.median clean"
TRUTH = 1.1
TRIALS = 200


def one(group: str, seed: int, value: float, machine: str = "") -> ComparedRun:
    verdict = Verdict(Status.PASS, "small", (), Fidelity(()))
    figures = RunFigures({KEY: value}, {})
    made = ComparedRun(Path(f"{group}{seed}"), "small", seed, WorldKind.VIRTUAL, "MRC", verdict, {"k": group}, figures)
    return replace(made, machine=machine)


def cell_of(of: dict[int, float], base: dict[int, float]) -> ComparisonCell:
    runs = [*(one("1", seed, value) for seed, value in base.items()), *(one("2", *each) for each in of.items())]
    return next(row for row in compare(runs).rows if row.figure.key == KEY).cells[1]


def estimate_of(of: dict[int, float], base: dict[int, float]) -> Estimate:
    found = cell_of(of, base).estimate
    assert found is not None
    return found


@cache
def intervals(count: int, of_seed: float, noise: float) -> tuple[Estimate, ...]:
    """Of simulated runs whose seeds spread both groups alike."""
    draw = random.Random(f"{count} {of_seed} {noise}")

    def trial() -> Estimate:
        hashed = {seed: draw.gauss(0, of_seed) for seed in range(count)}
        base = {seed: exp(each + draw.gauss(0, noise)) for seed, each in hashed.items()}
        return estimate_of({seed: exp(log(TRUTH) + each + draw.gauss(0, noise)) for seed, each in hashed.items()}, base)

    return tuple(trial() for _ in range(TRIALS))


@pytest.mark.parametrize(("count", "of_seed", "noise"), [(3, 0.3, 0.02), (8, 0.3, 0.02), (8, 0.0, 0.1)])
def test_of_paired_runs_95_percent_of_the_intervals_hold_the_truth(count: int, of_seed: float, noise: float) -> None:
    missed = sum(found.clear_of(TRUTH) for found in intervals(count, of_seed, noise))
    # Of 200 intervals 10 miss; fewer than 2 or more than 20 are the ends, of about one in 1000 each.
    assert 2 <= missed <= 20


def test_what_a_seed_does_to_both_groups_makes_no_interval_wider() -> None:
    widths = [log((found.high or 0) / (found.low or 1)) for found in intervals(8, 0.3, 0.02)]
    assert max(widths) < 0.15, "without pairs they are 0.6 wide"


@pytest.mark.parametrize("shift", [0, 1])
def test_seeds_that_few_runs_share_are_no_pairs(shift: int) -> None:
    """Six seeds each, and one or none of them in both: as many values as there are."""
    base = {seed: 1.0 + 0.01 * seed for seed in range(6)}
    found = estimate_of({seed + 6 - shift: 2 * value for seed, value in base.items()}, base)
    assert found.low is not None
    assert found.value == pytest.approx(2)


def test_a_seed_that_one_group_lacks_leaves_the_other_pairs() -> None:
    hashed = {0: 1.0, 1: 5.0, 2: 2.0, 3: 9.0}
    found = estimate_of({seed: 1.1 * value * (1 + 0.001 * seed) for seed, value in hashed.items() if seed}, hashed)
    assert found.low is not None
    assert 1.09 < found.low < found.value < 1.12


def test_the_caveat_says_what_the_intervals_are_of() -> None:
    def said(seed: Callable[[int], int]) -> str:
        base, of = ([one(name, turn, 1 + 0.01 * turn * len(name)) for turn in range(3)] for name in ("1", "22"))
        return caveat(compare([*base, *(replace(run, seed=seed(run.seed)) for run in of)]))

    assert "pairs with the same seed" in said(lambda seed: seed)
    assert "Welch" in said(lambda seed: seed + 10)


def test_spreads_of_groups_that_share_seeds_are_compared_seed_by_seed() -> None:
    """A transport that doubles what the seed does, exactly: there is no chance in it."""
    draw = random.Random(1)
    hashed = [exp(draw.gauss(0, 0.1)) for _ in range(8)]
    runs = [one(name, seed, value**power) for name, power in (("1", 1), ("2", 2)) for seed, value in enumerate(hashed)]
    ((_, twice),) = [found.groups for found in spreads(compare(runs))]
    assert twice.reads == "more"


@pytest.mark.parametrize("factor", [3, 1.1])
def test_repeats_that_are_alike_in_each_pair_have_no_interval_however_floats_round(factor: float) -> None:
    base = {0: 2.0, 1: 2.0, 2: 0.7, 3: 4.4, 4: 9.9}
    found = cell_of({seed: factor * value for seed, value in base.items()}, base)
    assert found.estimate is not None
    assert (found.estimate.low, found.estimate.why, found.reads) == (None, ALIKE, "")
