"""Agreement of both worlds against a second computation, of runs drawn from seeds."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from mrc_testbed.testbed.checks.result import Fidelity, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.figures import RunFigures
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.worlds import Agreement, agreement, worlds_document
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.scenario.model.transports import WorldKind

SEEDS = pytest.mark.parametrize("seed", range(200))
KEEP = pytest.mark.nightly(keep=60)
SCENARIO = """\
name: idea
fabric: {planes: 2, t0_groups: 1, t1: 0, hosts_per_t0: 2}
workload:
  - write: {from: h0, to: h1, bytes: 1MiB}
expect: []
"""


class Within(NamedTuple):
    """A row of docs/worlds.md: a part of the greater value, an amount, a multiple of sqrt(n)."""

    title: str
    share: float = 0.0
    amount: float = 0.0
    roots: float = 0.0
    equal: bool = False


MS = 1e6
TABLE = {
    "step_time.median clean": Within("step, clean median", 0.05, 4 * MS),
    "step_time.median": Within("step, median", 0.05, 4 * MS),
    "step_time.p100": Within("step, P100", 0.15, 20 * MS),
    "goodput clean": Within("goodput, clean", 0.05),
    "goodput during faults": Within("goodput in faults", 0.05),
    "flow_goodput.min": Within("slowest flow", 0.03),
    "fair_share.min": Within("least fair share", 0.03),
    "latency.median": Within("latency, median", 0.05, 0.3 * MS),
    "recovery.p50 in rtt": Within("recovery, P50, in RTT", amount=1),
    "recovery.p100 in rtt": Within("recovery, P100, in RTT", amount=1),
    "evs_retired": Within("EVs retired", 0.1),
    "packets_lost": Within("packets taken for lost", 0.15, roots=3),
    "retransmissions": Within("retransmissions", 0.15, roots=3),
    "marks": Within("marks", 0.5, roots=3),
    "trims": Within("trims", 0.5, roots=3),
    "ecn_skips": Within("EVs rested for ECN", 0.5, roots=3),
    "timeouts": Within("timeouts", roots=3),
    "queue_drops": Within("queue drops", 0.5, roots=3),
    "unrestored_evs": Within("EVs not restored", equal=True),
    "qp_errors": Within("QP errors", equal=True),
    "job_died": Within("jobs that died", equal=True),
    "died_at": Within("died after", 0.1),
    "bytes_wrong": Within("wrong bytes", equal=True),
    "data_on_bad_ev": Within("data on bad EVs", equal=True),
}
"""In the order of comparisons."""
COUNTS = ("evs_retired", "packets_lost", "retransmissions", "marks", "trims", "ecn_skips", "timeouts", "queue_drops")
EQUAL = tuple(key for key, within in TABLE.items() if within.equal)


def drawn(seed: int) -> list[ComparedRun]:
    """Repeats in each world, some of a machine that was late."""
    dice = random.Random(seed)
    middle = {
        key: dice.choice([0.0, 2.0, 40.0, 3000.0]) if key in COUNTS else dice.choice([0.9, 8 * MS, 1e9])
        for key in TABLE
    }
    middle |= {key: dice.choice([0.0, 0.0, 0.0, 3.0]) for key in EQUAL}
    apart = {key: dice.choice([0, 0, 0.02, 0.2, 0.7]) for key in TABLE}
    runs, variant = [], dice.choice(["", "mrc"])
    for world, most in ((WorldKind.KERNEL, 4), (WorldKind.VIRTUAL, 2)):
        for turn in range(dice.choice([0, *range(1, most + 1), *range(1, most + 1)])):
            values = {key: _value(dice, key, middle[key], apart[key]) for key in TABLE if dice.random() < 0.95}
            runs.append(_run(world, turn, {**values, "nacks": 3.0}, dice.random() < 0.1, variant))
    dice.shuffle(runs)
    return runs or drawn(seed + 10**6)


def _value(dice: random.Random, key: str, middle: float, apart: float) -> float:
    """Counts are whole."""
    value = max(0.0, middle * (1 + dice.gauss(0, apart)))
    return float(round(value)) if key in COUNTS or key in EQUAL else value


def _run(world: WorldKind, turn: int, values: dict[str, float], late: bool, variant: str) -> ComparedRun:
    scenario = load_scenario_text(f"variant: {variant}\n{SCENARIO}" if variant else SCENARIO)
    verdict = Verdict(Status.INCONCLUSIVE if late else Status.PASS, "idea", (), Fidelity((), caveat="late" * late))
    settings = {"world": world.value, "turn": str(turn)}
    loaded: Any = SimpleNamespace(scenario=scenario, interrupted=True, missing=())
    folder = Path(f"{world.value}-{turn}")
    return ComparedRun(folder, "idea", 1, world, "MRC", verdict, settings, RunFigures(values), loaded=loaded)


def figures_of(runs: list[ComparedRun]) -> tuple[list[dict[str, Any]], list[str]]:
    """The document's entry of each figure, and titles of those that are 0."""
    sides = [[run for run in runs if run.world.value == world and run.believed] for world in ("kernel", "virtual")]
    found, zero = [], []
    for key, within in TABLE.items():
        values = [[run.figures.values[key] for run in side if key in run.figures.values] for side in sides]
        if not any(values):
            continue
        whole = all(len(some) == len(side) for some, side in zip(values, sides, strict=True))
        if whole and not any(np.concatenate(values)):
            zero.append(within.title)
            continue
        least = 10 if key in COUNTS or key in EQUAL else 0
        ratio = min(map(min, filter(None, values))) >= max(least, 1e-300)
        means = [float(np.exp(np.log(some).mean()) if ratio else np.mean(some)) if some else None for some in values]
        row: dict[str, Any] = {"key": key, "title": within.title, "allowed": None, "reads": "not known"}
        row |= {
            name: {"values": some, "mean": mean}
            for name, some, mean in zip(("kernel", "virtual"), values, means, strict=True)
        }
        kernel, virtual = means
        if kernel is not None and virtual is not None:
            row["allowed"] = allowed(within, np.array(values[0]), virtual)
            agrees = "agrees" if whole else "not known"
            row["reads"] = "differs" if abs(kernel - virtual) > row["allowed"] else agrees
        found.append(row)
    return found, zero


def allowed(within: Within, kernel: Any, virtual: float) -> float:
    """The greatest of all that it may be."""
    parts = [within.share * max(kernel.mean(), virtual), within.amount, within.roots * (kernel.mean() + virtual) ** 0.5]
    if len(kernel) > 2 and not within.equal:
        parts.append(3 * kernel.std(ddof=1))
    return float(max(parts))


def scenario_of(runs: list[ComparedRun]) -> dict[str, Any]:
    """The document's entry of one scenario."""
    sides = {world: [run for run in runs if run.world.value == world] for world in ("kernel", "virtual")}
    open_ = [world for world, side in sides.items() if not any(run.believed for run in side)]
    why = f"{open_[0]}: {sides[open_[0]][-1].verdict.reason if sides[open_[0]] else 'it was not run'}" if open_ else ""
    figures, zero = ([], []) if open_ else figures_of(runs)
    differs = any(row["reads"] == "differs" for row in figures)
    told = {
        world: [
            {"folder": str(run.folder), "verdict": run.verdict.status.value, "counted": run.believed} for run in side
        ]
        for world, side in sides.items()
    }
    reads = "not known" if open_ else "differs" if differs else "agrees"
    variant = runs[0].record.scenario.variant or None
    name = f"idea ({variant})" if variant else "idea"
    about = {"name": name, "scenario": "idea", "variant": variant, "seed": 1, "reads": reads, "why": why}
    return {**about, **told, "figures": figures, "zero": zero}


@SEEDS
@KEEP
def test_each_figure_agrees_within_what_the_docs_say(seed: int) -> None:
    runs = drawn(seed)
    (told,) = worlds_document([agreement(runs)])["scenarios"]
    mine = scenario_of(runs)
    assert {key: told[key] for key in mine if key != "figures"} == {key: mine[key] for key in mine if key != "figures"}
    assert [row["key"] for row in told["figures"]] == [row["key"] for row in mine["figures"]]
    for row, wanted in zip(told["figures"], mine["figures"], strict=True):
        assert (row["title"], row["reads"]) == (wanted["title"], wanted["reads"]), row
        assert row["allowed"] == (wanted["allowed"] and pytest.approx(wanted["allowed"]))
        for world in ("kernel", "virtual"):
            assert row[world]["values"] == wanted[world]["values"]
            assert row[world]["mean"] == (wanted[world]["mean"] and pytest.approx(wanted[world]["mean"]))


@SEEDS
@KEEP
def test_of_all_scenarios_a_difference_comes_first(seed: int) -> None:
    found: list[Agreement] = [agreement(drawn(number)) for number in range(seed, seed + 1 + seed % 3)]
    reads = {one.reads.value for one in found}
    for not_run in ([], ["other"]):
        told = worlds_document(found, not_run)
        order = ["differs", "not known", "agrees"]
        assert told["reads"] == min(reads | ({"not known"} if not_run else set()), key=order.index)
        assert told["not_run"] == not_run
    assert worlds_document([])["reads"] == "not known"


def test_what_is_drawn_has_all_readings() -> None:
    told = [worlds_document([agreement(drawn(seed))])["scenarios"][0] for seed in range(200)]
    assert {one["reads"] for one in told} == {"agrees", "differs", "not known"}
    for reads in ("agrees", "differs"):
        assert {row["key"] for one in told for row in one["figures"] if row["reads"] == reads} >= TABLE.keys() - set(
            EQUAL
        )
