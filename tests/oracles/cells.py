"""Comparisons that are drawn from a seed: what cells of a sweep write into cell.json, and on which machine each ran."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mrc_testbed.testbed.compare.runs import ComparedRun
from tests.oracles.raw import Row


class Known(NamedTuple):
    """A figure as the docs have it. `size`: about what it comes to, 0 for what is mostly 0."""

    title: str
    unit: str
    better: str
    main: bool
    counts: bool
    size: float


KNOWN = {
    "step_time.median clean": Known("step, clean median", "ns", "less", True, False, 1e9),
    "step_time.median": Known("step, median", "ns", "less", False, False, 4e6),
    "step_time.p100 during faults / clean": Known("step, P100 in faults / clean", "", "less", True, False, 1.4),
    "goodput clean": Known("goodput, clean", "B/s", "more", False, False, 3e7),
    "fair_share.min": Known("least fair share", "", "more", True, False, 0.8),
    "wasted": Known("wasted", "", "less", False, False, 0.01),
    "uplink_share.min": Known("least loaded uplink / mean", "", "more", False, False, 0.9),
    "link_load.max": Known("most loaded link", "", "", False, False, 0.9),
    "recovery.p100": Known("recovery, P100", "ns", "less", True, False, 9e7),
    "recovery.p100 in rtt": Known("recovery, P100, in RTT", "rtt", "less", True, False, 5),
    "goodput_back.p100": Known("goodput back, P100", "ns", "less", False, False, 2e5),
    "evs_retired": Known("EVs retired", "", "", False, True, 12),
    "packets_lost": Known("packets taken for lost", "", "less", True, True, 400),
    "trims": Known("trims", "", "", True, True, 3),
    "timeouts": Known("timeouts", "", "less", False, True, 0),
    "qp_errors": Known("QP errors", "", "less", False, True, 0),
    "died_at": Known("died after", "ns", "more", False, False, 4e9),
}
"""In the order in which comparisons have them."""
PRINTED = "program.rate.median"
KEYS = {
    "fabric.planes": ["4", "1", "2"],
    "fabric.rtt": ["20ms", "5ms", "10ms"],
    "endpoint.ev_active": ["16", "4", "128"],
    "endpoint.mpr": ["64", "8 at most", "-"],
    "workload.0.train.compute": ["100ms", "1s", "300ms"],
    "workload.0.train.qps": ["4", "1", "2"],
}
STATUSES = ("pass", "pass", "pass", "fail", "measured", "died")
CAUSE = "timers late (p99): observed 90 ms, expected <= 20 ms"


class Drawn(NamedTuple):
    """Runs of a comparison, and which inconclusive ones count."""

    cells: list[Row]
    machines: list[str]
    everything: bool


def runs_of(drawn: Drawn, folder: Path) -> list[ComparedRun]:
    """As a sweep reads them, from the text of a file."""
    read = (json.loads(json.dumps(cell)) for cell in drawn.cells)
    return [
        ComparedRun.from_cell(cell, folder / f"{number}", machine)
        for number, (cell, machine) in enumerate(zip(read, drawn.machines, strict=True))
    ]


def drawn(seed: int) -> Drawn:
    """Groups, repeats, seeds, machines and figures: anything that the docs speak of."""
    dice = random.Random(seed)
    kernel = dice.random() < 0.5
    machines = dice.sample(["oak", "elm", "ash"], dice.choice([1, 2, 3])) if kernel and dice.random() < 0.6 else [""]
    places = list(_places(dice))
    noises = dice.choice([[0.0], [0.004], [0.05], [0.3], [0.003, 0.4]])
    of_figure = {key: dice.choice([0, 1, 1, 2]) for key in KNOWN}
    cells, names = [], []
    first = dice.choice([0, 0, 3, 40])
    for number, place in enumerate(places):
        noise = dice.choice(noises)
        for turn in range(dice.choice([1, 2, 3, 5, 5, 6])):
            run_seed = turn + first * number
            machine = dice.choice(machines)
            for _ in range(dice.choice([1, 1, 1, 2]) if kernel else 1):
                cells.append(_cell(dice, place, run_seed, kernel))
                cells[-1]["figures"], cells[-1]["lacking"] = _figures(dice, place, run_seed, machine, noise, of_figure)
                names.append(machine)
    if len(cells) < 2:
        return drawn(seed + 10**6)
    order = list(range(len(cells)))
    dice.shuffle(order)
    return Drawn([cells[at] for at in order], [names[at] for at in order], dice.random() < 0.2)


def _places(dice: random.Random) -> Iterator[dict[str, str]]:
    """The settings of each group."""
    if dice.random() < 0.2:
        several = {f"endpoint.{key}": ["1", "2"] for key in ("a", "b", "c")}
        for number in range(2):
            yield {"variant": f"form-{number}", **{key: values[number] for key, values in several.items()}}
        return
    keys = dice.sample(list(KEYS), dice.choice([0, 1, 1, 1, 2, 2, 3, 4, 5]))
    values = [dice.sample(KEYS[key], dice.choice([1, 2, 2, 3])) for key in keys]
    usual = {"fabric.t1": "4", "world": "kernel"}
    crossings = [dict(zip(keys, place, strict=True)) for place in _product(values)]
    if len(crossings) > 8 or (len(crossings) > 1 and dice.random() < 0.3):
        crossings = dice.sample(crossings, min(len(crossings) - 1, 7))
    for crossing in crossings:
        yield {**usual, **{key: value for key, value in crossing.items() if value != "-"}}


def _product(values: list[list[str]]) -> list[list[str]]:
    if not values:
        return [[]]
    return [[one, *rest] for one in values[0] for rest in _product(values[1:])]


def _cell(dice: random.Random, place: dict[str, str], seed: int, kernel: bool) -> Row:
    """All but the figures."""
    lost = dice.random() < 0.1
    figures: list[dict[str, Any]] = [
        {
            "name": name,
            "observed": observed,
            "limit": limit,
            "unit": "ms",
            **{"why": "", "who": "machine", "next_step": ""},
            "ok": name != "timers late (p99)" or not lost,
        }
        for name, observed, limit in (
            ("timers late (p99)", 90.0 if lost else dice.uniform(0.5, 12), 20.0),
            ("CPU pressure", dice.choice([None, 0.5, 3.0]), 10.0),
            ("packets nobody sent", 0.0, 0.0),
            ("measured", 8.5, None),
        )
    ]
    return {
        "scenario": "forms" if "variant" in place else dice.choice(["small", "small", "other"]),
        "seed": seed,
        "world": "kernel" if kernel else "virtual",
        "spoken": "MRC",
        "settings": place,
        "environment": {"kernel": dice.choice(["6.1", "6.1", "6.1", "6.12"]), "cpus": 2} if kernel else {},
        "headline": f"run {seed}",
        "verdict": "inconclusive" if lost else dice.choice(STATUSES),
        "checks": [],
        "fidelity": {"ok": not lost, "figures": figures, "measured_s": 8.5, "caveat": "", "virtual": not kernel},
        "death": "",
        "judged": True,
    }


def _figures(
    dice: random.Random, place: dict[str, str], seed: int, machine: str, noise: float, of_figure: dict[str, int]
) -> tuple[dict[str, float], dict[str, str]]:
    """A figure moves with its group, its machine and its seed, and by chance."""
    found, lacking = {}, {}
    for key, known in KNOWN.items():
        group = random.Random(f"{key} {sorted(place.items())}").choice([1.0, 1.004, 1.1, 2.0])
        hashed = 1 + 0.1 * random.Random(f"{key} {seed}").random()
        slow = 1 + 0.2 * random.Random(f"{key} {machine}").random()
        value = known.size * group * (hashed * slow) ** of_figure[key] * 2.718 ** dice.gauss(0, noise)
        if dice.random() < (0.04 if of_figure[key] == 2 else 0.002):
            lacking[key] = dice.choice(["no fault healed", "no final counters"])
        elif of_figure[key] or known.size:
            found[key] = round(value) if known.counts else value
        else:
            found[key] = 0
    if place.get("fabric.planes") == "4" or "variant" in place:
        found[PRINTED] = 100 * 2.718 ** dice.gauss(0, noise)
    return found, lacking
