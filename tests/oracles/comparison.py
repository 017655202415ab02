"""compare.json computed a second time, from the cells themselves: groups, means, intervals and what they read."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss

from tests.oracles.cells import CAUSE, KNOWN, PRINTED, Drawn, Known
from tests.oracles.raw import Row

SURE = 0.95
MOST_FREEDOM = 200
NODES, WEIGHTS = leggauss(200)
Told = dict[str, Any]
Block = tuple[str, int]


class Group(NamedTuple):
    """Cells with the same settings, by number; `place`: their values in the keys in which groups differ."""

    label: str
    place: tuple[str, ...]
    cells: list[int]
    counted: list[int]


@cache
def quantile(freedom: float, sure: float = SURE) -> float:
    """Student's, two-sided: where the integral of its density is as large as it must be."""
    freedom = min(freedom, MOST_FREEDOM)
    scale = np.exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / np.sqrt(freedom * np.pi)

    def inside(end: float) -> float:
        angles = np.arctan(end) * (NODES + 1) / 2
        density = scale * (1 + np.tan(angles) ** 2 / freedom) ** (-(freedom + 1) / 2) / np.cos(angles) ** 2
        return float(2 * (WEIGHTS * density).sum() * np.arctan(end) / 2)

    low, high = 0.0, 2000.0
    while high - low > 1e-10 * high:
        low, high = (low, (low + high) / 2) if inside((low + high) / 2) > sure else ((low + high) / 2, high)
    return low


def value_of(cell: Row, key: str) -> float | None:
    """A figure of a cell."""
    found: float | None = cell["figures"].get(key)
    return found


def groups_of(drawn: Drawn) -> tuple[list[Group], list[str], list[str]]:
    """Groups in the order of columns, the keys in which they differ, and all keys in which settings do."""
    cells = drawn.cells
    alike: dict[frozenset[tuple[str, str]], list[int]] = {}
    for number, cell in enumerate(cells):
        alike.setdefault(frozenset(cell["settings"].items()), []).append(number)
    keys = list(dict.fromkeys(key for members in alike.values() for key in cells[members[0]]["settings"]))
    moved = [key for key in keys if len({cell["settings"].get(key) for cell in cells}) > 1]
    shown = ["variant"] if "variant" in moved else moved if len(moved) <= 3 else []
    parts = [(tuple(cells[some[0]]["settings"].get(key, "-") for key in shown), some) for some in alike.values()]
    ranks = [_ranks([place[at] for place, _ in parts]) for at in range(len(shown))]
    parts.sort(key=lambda part: [rank[value] for rank, value in zip(ranks, part[0], strict=True)])
    names = [cells[some[0]]["scenario"] for _, some in parts]
    found = []
    for number, (place, some) in enumerate(parts):
        again = f" ({names[: number + 1].count(names[number])})" if names.count(names[number]) > 1 else ""
        words = [
            value if key == "variant" else f"{key.split('.')[-1]}={value}"
            for key, value in zip(shown, place, strict=True)
        ]
        label = ", ".join(words) if words else f"{names[number]}{again}"
        found.append(Group(label, place, some, [at for at in some if counts(drawn, at)]))
    if len(found) == 1:
        seeds = len({cell["seed"] for cell in cells}) > 1
        labels = [f"run {at + 1}" + f", seed {cell['seed']}" * seeds for at, cell in enumerate(cells)]
        found = [Group(label, (), [at], [at] if counts(drawn, at) else []) for at, label in enumerate(labels)]
    return found, shown, moved


def _ranks(values: list[str]) -> dict[str, int]:
    """Numbers with one unit go by size, others as they come."""
    found = list(dict.fromkeys(values))
    units = {value.lstrip("0123456789.") for value in found}
    if len(units) == 1 and all(value[0].isdigit() for value in found):
        found.sort(key=lambda value: float(value.removesuffix(next(iter(units)))))
    return {value: rank for rank, value in enumerate(found)}


def counts(drawn: Drawn, number: int) -> bool:
    """Whether the figures of a cell do."""
    cell = drawn.cells[number]
    return drawn.everything or (cell["verdict"] != "inconclusive" and cell["fidelity"]["ok"])


class Compared:
    """All that can be said of what was drawn."""

    def __init__(self, drawn: Drawn) -> None:
        """Computes nothing yet."""
        self.drawn = drawn
        self.groups, self.axes, self.moved = groups_of(drawn)
        self.alike = len({frozenset(cell["settings"].items()) for cell in drawn.cells}) == 1
        self.base = next(at for at, group in enumerate(self.groups) if 0 in group.cells)

    def values(self, group: Group, key: str) -> list[float]:
        """By block, those that came first before others."""
        return [value for some in self.blocks(group, key).values() for value in some]

    def blocks(self, group: Group, key: str) -> dict[Block, list[float]]:
        """By machine and seed."""
        found: dict[Block, list[float]] = {}
        for at in group.counted:
            value = value_of(self.drawn.cells[at], key)
            if value is not None:
                machine = self.drawn.machines[at] if self.drawn.cells[at]["world"] == "kernel" else ""
                found.setdefault((machine, self.drawn.cells[at]["seed"]), []).append(value)
        return found

    def kind(self, key: str) -> str:
        """`ratio` or `difference`; empty where nobody has it."""
        least = 10 if key in KNOWN and KNOWN[key].counts else 0
        found = [value for group in self.groups for value in self.values(group, key)]
        return "" if not found else "ratio" if min(found) > 0 and min(found) >= least else "difference"

    def whole(self, key: str, group: Group) -> bool:
        """Whether each run of a group that counts has a figure."""
        return len(self.values(group, key)) == len(group.counted)

    def zero(self, key: str) -> bool:
        """Whether it is 0 wherever it counts."""
        return all(self.whole(key, group) and not any(self.values(group, key)) for group in self.groups)

    def figures(self) -> dict[str, Known]:
        """All that some run has that counts, in order."""
        known = {PRINTED: Known("rate, median", "", "", True, False, 100), **KNOWN}
        return {key: one for key, one in known.items() if self.kind(key)}

    def cell(self, key: str, number: int) -> Told:
        """A figure of a column."""
        group, base = self.groups[number], self.groups[self.base]
        values = self.values(group, key)
        if not values:
            return {"values": [], "mean": None, "estimate": None, "reads": ""}
        ratio = self.kind(key) == "ratio"
        mean = float(np.exp(np.mean(np.log(values))) if ratio else np.mean(values))
        found = {"values": values, "mean": mean, "estimate": None, "reads": ""}
        if number == self.base or not self.values(base, key):
            return found
        value, reach, why = self.apart(self.blocks(group, key), self.blocks(base, key), ratio)
        if not (self.whole(key, group) and self.whole(key, base)):
            reach, why = None, "not every run that counts has the figure"
        ends = [None, None] if reach is None else [value - reach, value + reach]
        shown = [None if end is None else float(np.exp(end) if ratio else end) for end in (value, *ends)]
        found["estimate"] = {"value": shown[0], "low": shown[1], "high": shown[2], "why": why}
        found["reads"] = self.reads(key, value, reach, ratio)
        return found

    def reads(self, key: str, value: float, reach: float | None, ratio: bool) -> str:
        """Beyond chance, and ratios by a hundredth."""
        if reach is None or abs(value) <= reach or (ratio and abs(np.exp(value) - 1) < 0.01):
            return ""
        better = KNOWN[key].better if key in KNOWN else ""
        more = value > 0
        return {"": "more" if more else "less", "more": "better" if more else "worse"}.get(
            better, "worse" if more else "better"
        )

    def apart(
        self, ours: dict[Block, list[float]], theirs: dict[Block, list[float]], ratio: bool
    ) -> tuple[float, float | None, str]:
        """On logarithms or as they are: the difference, half of its interval, and why there is none."""
        both = [{at: np.log(some) if ratio else np.array(some) for at, some in each.items()} for each in (ours, theirs)]
        common = ours.keys() & theirs.keys()
        if not (len(common) >= 2 and len(common) >= 0.5 * len(ours.keys() | theirs.keys())):
            both = [_by_machine(each) for each in both]
        if len(both[0].keys() | both[1].keys()) > 1 and both[0].keys() & both[1].keys():
            return fitted(*both)
        return welch(*(np.concatenate(list(each.values())) for each in both))

    def paired(self) -> bool:
        """Whether each group shares seeds with the base."""
        have = [
            {
                (
                    self.drawn.machines[at] if self.drawn.cells[at]["world"] == "kernel" else "",
                    self.drawn.cells[at]["seed"],
                )
                for at in group.counted
            }
            for group in self.groups
        ]
        base = have[self.base]
        return all(len(one & base) >= 2 and 2 * len(one & base) >= len(one | base) for one in have)


def _by_machine(blocks: dict[Any, Any]) -> dict[Any, Any]:
    names = dict.fromkeys(machine for machine, _ in blocks)
    return {name: np.concatenate([some for (own, _), some in blocks.items() if own == name]) for name in names}


def welch(of: Any, base: Any) -> tuple[float, float | None, str]:
    """Two groups whose variances may differ."""
    value = float(of.mean() - base.mean())
    if len(of) < 2 or len(base) < 2:
        return value, None, "a single run gives no interval"
    parts = of.var(ddof=1) / len(of), base.var(ddof=1) / len(base)
    if sum(parts) <= 1e-20 * float((of**2).max() + (base**2).max()):
        return value, None, "repeats alike"
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(of) - 1) + parts[1] ** 2 / (len(base) - 1))
    return value, quantile(round(float(freedom), 3)) * float(np.sqrt(sum(parts))), ""


def fitted(of: dict[Any, Any], base: dict[Any, Any]) -> tuple[float, float | None, str]:
    """Least squares: a value is that of its block, and the difference where it is of the other group."""
    common = [at for at in of if at in base]
    rows, seen = [], []
    for number, at in enumerate(common):
        for values, group in ((of[at], 1.0), (base[at], 0.0)):
            for value in values:
                rows.append([group, *(float(other == number) for other in range(len(common)))])
                seen.append(value)
    design, given = np.array(rows), np.array(seen)
    middle = given.mean()
    found, *_ = np.linalg.lstsq(design, given - middle, rcond=None)
    freedom = len(seen) - len(common) - 1
    if freedom < 1:
        return float(found[0]), None, "a single run gives no interval"
    left = ((given - middle - design @ found) ** 2).sum()
    if left <= 1e-20 * (given**2).max():
        return float(found[0]), None, "repeats alike"
    error = np.sqrt(left / freedom * np.linalg.inv(design.T @ design)[0, 0])
    return float(found[0]), quantile(float(freedom)) * float(error), ""


def spread_of(values: list[float]) -> tuple[float, list[float]]:
    """By how much two differ on logarithms, in the mean over all pairs, and the jackknife's part of each."""

    def mean(some: Any) -> float:
        return float(np.mean([abs(one - other) for one, other in combinations(some, 2)]))

    logs = list(np.log(values))
    whole, size = mean(logs), len(logs)
    return whole, [size * whole - (size - 1) * mean(logs[:at] + logs[at + 1 :]) for at in range(size)]


def reasons(cell: Row) -> Told:
    """Whether the machine kept time, and the figure nearest to its limit."""
    told = [one for one in cell["fidelity"]["figures"] if one["observed"] is not None and one["limit"]]
    nearest = max(told, key=lambda one: one["observed"] / one["limit"])
    return {
        "kept_time": cell["fidelity"]["ok"],
        "why": "" if cell["fidelity"]["ok"] else CAUSE,
        "virtual": cell["world"] == "virtual",
        "nearest": nearest["name"],
        "share": round(nearest["observed"] / nearest["limit"], 3),
    }
