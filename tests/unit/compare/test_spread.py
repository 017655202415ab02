"""How far runs with other seeds lie apart: which groups are shown it, what it comes to, and how sure it is."""

from __future__ import annotations

import json
import random
from math import exp, expm1, log, pi, sqrt
from pathlib import Path
from statistics import fmean

import pytest

from mrc_testbed.testbed.app.comparison import PAGE_FILE, compare_folders
from mrc_testbed.testbed.compare.spread import (
    FigureSpread,
    GroupSpread,
    apart_words,
    mean_difference,
    pseudo_values,
    spreads,
)
from mrc_testbed.testbed.compare.statistics import ALIKE, difference, mean_estimate
from mrc_testbed.testbed.rundir.results import COMPARE_FILE
from tests.unit.compare.test_compare import EVS, compared, made, text_of

pytestmark = pytest.mark.slow

FEW, EVEN, WIDE = (1.0, 1.01, 1.02, 1.03), (1.0, 1.001, 1.002, 1.003, 1.004), (1.0, 1.6, 1.1, 2.0, 1.3)


def seeded(folder: Path, factors: tuple[float, ...], evs: int, first: int = 1) -> list[Path]:
    """A run a seed, with step times multiplied by its factor."""
    change = EVS[evs]
    return [
        made(folder, "small", (change[0], f"seed: {seed}\n{change[1]}"), factor)
        for seed, factor in enumerate(factors, first)
    ]


def step_median(found: tuple[FigureSpread, ...]) -> tuple[GroupSpread, ...]:
    return next(one.groups for one in found if one.figure.key == "step_time.median clean")


def test_groups_of_five_seeds_say_how_far_their_runs_liemean_difference(tmp_path: Path) -> None:
    even, wide = step_median(spreads(compared([*seeded(tmp_path, EVEN, 1), *seeded(tmp_path, WIDE, 2)])))
    assert (even.label, wide.label) == ("ev_active=1", "ev_active=2")
    assert [round(value / wide.values[0], 3) for value in wide.values] == [1.0, 1.1, 1.3, 1.6, 2.0]
    assert wide.median / wide.values[0] == pytest.approx(1.3)
    pairs = [abs(log(one) - log(other)) for one in WIDE for other in WIDE if one is not other]
    assert wide.apart.value == pytest.approx(expm1(fmean(pairs)))
    assert not wide.apart.clear_of(wide.apart.value)
    assert wide.apart.clear_of(0.0)
    assert (even.reads, wide.reads) == ("", "more")
    assert even.apart.value == pytest.approx(0.002, abs=1e-4)


def test_the_one_with_less_reads_less(tmp_path: Path) -> None:
    runs = [*seeded(tmp_path, WIDE, 1), *seeded(tmp_path, EVEN, 2)]
    assert [group.reads for group in step_median(spreads(compared(runs)))] == ["", "less"]


def test_fewer_than_five_seeds_in_a_group_tell_nothing(tmp_path: Path) -> None:
    found = compared([*seeded(tmp_path, FEW, 1), *seeded(tmp_path, WIDE, 2)])
    assert spreads(found) == ()
    assert "spread between seeds" not in text_of(found)


def test_runs_of_one_seed_are_one_value(tmp_path: Path) -> None:
    """On the kernel a seed can be run twice; what they differ in is not of the seed."""
    again = [*seeded(tmp_path, WIDE, 1), *seeded(tmp_path, (1.21,), 1)]
    (group,) = step_median(spreads(compared(again)))
    assert group.label == "all runs"
    assert len(group.values) == 5
    assert min(group.values) / max(group.values) == pytest.approx(1.1 / 2.0)
    assert spreads(compared([*seeded(tmp_path, FEW, 2), *seeded(tmp_path, FEW, 2)])) == ()


def test_a_figure_that_no_seed_changes_is_not_there(tmp_path: Path) -> None:
    runs = [*seeded(tmp_path, EVEN, 1), *seeded(tmp_path, EVEN, 2)]
    assert "step_time.median clean" not in {one.figure.key for one in spreads(compared(runs))}


def test_terminal_page_and_json_have_it(tmp_path: Path) -> None:
    runs = [*seeded(tmp_path, EVEN, 1), *seeded(tmp_path, WIDE, 2)]
    found = compared(runs)
    wide = step_median(spreads(found))[1]
    assert "spread between seeds" in text_of(found)
    assert apart_words(wide) in text_of(found)
    done = compare_folders(runs, tmp_path / "out")
    assert f'<td class="n">{apart_words(wide)}</td>' in (done.folder / PAGE_FILE).read_text()
    document = json.loads((done.folder / COMPARE_FILE).read_text())
    told = next(one for one in document["spreads"] if one["key"] == "step_time.median clean")
    assert told["groups"][1]["values"] == list(wide.values)
    assert told["groups"][1]["median"] == wide.median
    assert told["groups"][1]["apart"]["low"] == wide.apart.low


def test_seeds_that_are_all_alike_have_no_interval() -> None:
    found = mean_difference(pseudo_values([3.0] * 5))
    assert (found.value, found.low, found.why) == (0.0, None, ALIKE)
    assert apart_words(GroupSpread("x", (3.0,) * 5, found)) == "0 %"


def test_a_mean_has_students_interval() -> None:
    found = mean_estimate([1.0, 2.0, 3.0])
    assert found.value == 2.0
    assert found.high == pytest.approx(2 + 4.303 / sqrt(3), rel=1e-3)
    assert mean_estimate([1.0]).low is None


TRIALS = 1500
NORMAL = 0.1
HASHED = (0.73, 0.74, 0.84, 0.85, 0.86, 0.86, 0.97, 0.98, 0.98, 0.98, 1.1, 1.11, 1.11, 1.11, 1.12, 1.34)
"""Usual steps of the story eight-seeds with 4 QPs, s."""


def drawn(draw: random.Random, hashed: bool) -> list[float]:
    return [draw.choice(HASHED) if hashed else exp(draw.gauss(0, NORMAL)) for _ in range(8)]


@pytest.mark.parametrize(("hashed", "least"), [(False, 0.90), (True, 0.92)])
def test_its_interval_holds_the_truth_as_often_as_the_docs_say(hashed: bool, least: float) -> None:
    draw = random.Random(5)
    pairs = [abs(log(one) - log(other)) for one in HASHED for other in HASHED]
    truth = expm1(fmean(pairs) if hashed else 2 * NORMAL / sqrt(pi))
    found = [mean_difference(pseudo_values(drawn(draw, hashed))) for _ in range(TRIALS)]
    held = sum(one.low is not None and not one.clear_of(truth) for one in found) / TRIALS
    assert least <= held <= 0.97


def test_groups_with_one_spread_seldom_read_otherwise() -> None:
    draw = random.Random(6)
    pairs = [(pseudo_values(drawn(draw, True)), pseudo_values(drawn(draw, True))) for _ in range(TRIALS)]
    assert sum(difference(*pair).clear_of(0.0) for pair in pairs) / TRIALS <= 0.06
