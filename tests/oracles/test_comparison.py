"""compare.json against a second computation, of comparisons drawn from seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrc_testbed.testbed.compare.comparison import compare
from mrc_testbed.testbed.compare.document import comparison_document
from tests.oracles import comparison_words as words
from tests.oracles.cells import KNOWN, Drawn, Known, drawn, runs_of
from tests.oracles.comparison import Compared, fitted, quantile, reasons, spread_of, welch

BY_DAY = 60
SEEDS = pytest.mark.parametrize("seed", range(200))
KEEP = pytest.mark.nightly(keep=BY_DAY)


@cache
def both(seed: int) -> tuple[Compared, dict[str, Any]]:
    """Figures that were computed here, and those of a comparison."""
    given = drawn(seed)
    found = compare(runs_of(given, Path("sweep")), given.everything)
    assert found.grid == (len(found.axes) == 2 and len(found.columns) == product(len(one.values) for one in found.axes))
    return Compared(given), comparison_document(found, None)


def product(numbers: Iterator[int]) -> int:
    """The product of few numbers."""
    return int(np.prod(list(numbers)))


def near(told: Any, wanted: Any, share: float = 1e-7) -> bool:
    """The same, but for what floats round."""
    if isinstance(wanted, Mapping):
        return told.keys() == wanted.keys() and all(near(told[key], wanted[key], share) for key in wanted)
    if isinstance(wanted, list):
        return len(told) == len(wanted) and all(near(*pair, share) for pair in zip(told, wanted, strict=True))
    if isinstance(wanted, float) and isinstance(told, float | int):
        return isclose(told, wanted, rel_tol=share, abs_tol=1e-12)
    return bool(told == wanted)


@SEEDS
@KEEP
def test_columns_are_groups_of_cells_with_the_same_settings(seed: int) -> None:
    wanted, told = both(seed)
    cells = wanted.drawn.cells
    order = [at for group in wanted.groups for at in group.cells]
    assert (told["base"], told["alike"]) == (wanted.base, wanted.alike)
    assert [axis["key"] for axis in told["axes"]] == wanted.axes
    for number, (column, group) in enumerate(zip(told["columns"], wanted.groups, strict=True)):
        assert (column["label"], tuple(column["place"].values())) == (group.label, group.place), number
        assert [order[at] for at in column["runs"]] == group.cells
        assert [order[at] for at in column["counted"]] == group.counted
        verdicts = [cells[at]["verdict"] for at in group.cells]
        assert column["verdicts"] == {verdict: verdicts.count(verdict) for verdict in verdicts}
    for run, at in zip(told["runs"], order, strict=True):
        assert (run["seed"], run["verdict"], run["headline"]) == tuple(
            cells[at][key] for key in ("seed", "verdict", "headline")
        )
        assert (run["figures"], run["lacking"]) == (cells[at]["figures"], cells[at]["lacking"])
        assert run["machine"] == reasons(cells[at])


@SEEDS
@KEEP
def test_each_figure_is_what_the_cells_say(seed: int) -> None:
    wanted, told = both(seed)
    figures = wanted.figures()
    assert told["zero"] == [key for key in figures if wanted.zero(key)]
    shown = {key: one for key, one in figures.items() if not wanted.zero(key)}
    assert [row["key"] for row in told["figures"]] == list(shown)
    for row in told["figures"]:
        assert described(row) == described_as(shown[row["key"]])
        assert row["compared_by"] == wanted.kind(row["key"])
        for number, cell in enumerate(row["cells"]):
            mine = wanted.cell(row["key"], number)
            assert near(cell, mine, 2e-5), f"{row['key']} of {wanted.groups[number].label}: {cell}; {mine}"
            assert near(cell["mean"], mine["mean"])


def described(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("title", "unit", "better", "main"))


def described_as(figure: Known) -> tuple[Any, ...]:
    return figure.title, figure.unit, figure.better, figure.main


@SEEDS
@KEEP
def test_words_are_those_of_the_figures(seed: int) -> None:
    wanted, told = both(seed)
    assert (told["title"], told["headline"]) == (words.title(wanted), words.headline(wanted))
    assert told["notes"] == list(words.notes(wanted))
    assert told["caveat"] == words.caveat(wanted)
    assert told["findings"] == list(words.findings(wanted))


@SEEDS
@KEEP
def test_spreads_are_those_of_five_seeds_or_more(seed: int) -> None:
    wanted, told = both(seed)
    found = {key: groups for key in wanted.figures() if (groups := spread_in(wanted, key))}
    assert [one["key"] for one in told["spreads"]] == list(found)
    for one in told["spreads"]:
        assert described(one) == described_as(wanted.figures()[one["key"]])
        assert near(one["groups"], found[one["key"]], 2e-5), one["key"]


def spread_in(wanted: Compared, key: str) -> list[dict[str, Any]]:
    """Spreads of all groups; none where a group has too few seeds or no group spreads."""
    groups = [(group.label, group.counted) for group in wanted.groups]
    if wanted.alike:
        groups = [("all runs", [at for _, some in groups for at in some])]
    if not wanted.figures()[key].main or wanted.kind(key) != "ratio" or wanted.zero(key):
        return []
    parts: list[dict[int, float]] = []
    found: list[dict[str, Any]] = []
    for label, some in groups:
        by_seed = means_of(wanted.drawn, some, key)
        if len(by_seed) < 5 or len({wanted.drawn.cells[at]["seed"] for at in some}) < 5:
            return []
        value, pseudo = spread_of(list(by_seed.values()))
        parts.append(dict(zip(by_seed, pseudo, strict=True)))
        reach = quantile(len(pseudo) - 1) * np.std(pseudo, ddof=1) / np.sqrt(len(pseudo))
        low, high = (float(np.expm1(max(0, value + sign * reach))) for sign in (-1, 1))
        apart = {"value": float(np.expm1(value)), "low": low, "high": high, "why": ""}
        if not reach:
            apart |= {"low": None, "high": None, "why": "repeats alike"}
        values = sorted(by_seed.values())
        found.append(
            {"label": label, "values": values, "apart": apart, "reads": "", "median": float(np.median(values))}
        )
    base = parts[0 if wanted.alike else wanted.base]
    for one, part in zip(found, parts, strict=True):
        one["reads"] = "" if part is base else wider(part, base)
    return found if max(one["apart"]["value"] for one in found) >= 0.01 else []


def means_of(given: Drawn, some: list[int], key: str) -> dict[int, float]:
    """A value a seed."""
    found: dict[int, list[float]] = {}
    for at in some:
        if key in given.cells[at]["figures"]:
            found.setdefault(given.cells[at]["seed"], []).append(np.log(given.cells[at]["figures"][key]))
    return {seed: float(np.exp(np.mean(values))) for seed, values in found.items()}


def wider(part: dict[int, float], base: dict[int, float]) -> str:
    """Whether a group spreads more or less than the base, beyond chance and by a hundredth."""
    common = part.keys() & base.keys()
    if len(common) >= 2 and 2 * len(common) >= len(part.keys() | base.keys()):
        value, reach, _ = fitted(*({seed: np.array([one]) for seed, one in each.items()} for each in (part, base)))
    else:
        value, reach, _ = welch(*(np.array(list(each.values())) for each in (part, base)))
    if reach is None or abs(value) <= reach or abs(value) < 0.01:
        return ""
    return "more" if value > 0 else "less"


def test_what_is_drawn_has_all_that_the_docs_speak_of() -> None:
    told = [both(seed)[1] for seed in range(BY_DAY)]
    cells = [cell for one in told for row in one["figures"] for cell in row["cells"]]
    assert {cell["reads"] for cell in cells} == {"", "better", "worse", "more", "less"}
    assert len({cell["estimate"]["why"] for cell in cells if cell["estimate"]}) == 4
    assert {row["compared_by"] for one in told for row in one["figures"]} == {"ratio", "difference"}
    assert {row["key"] for one in told for row in one["figures"]} >= KNOWN.keys() - {"timeouts", "qp_errors"}
    assert {group["reads"] for one in told for row in one["spreads"] for group in row["groups"]} >= {"", "less"}
    assert len({one["caveat"].partition("(")[2].partition(")")[0] for one in told}) >= 5
