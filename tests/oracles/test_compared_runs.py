"""Tables of variants, cases and waits against a second computation, of run folders drawn from seeds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from math import inf
from pathlib import Path
from statistics import fmean, median
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pytest

from mrc_testbed.testbed.compare.comparison import Comparison, compare
from mrc_testbed.testbed.compare.crossing import crossed
from mrc_testbed.testbed.compare.runs import ComparedRun, load_run
from mrc_testbed.testbed.compare.transports import StoodStill, fault_outages, variant_rows
from mrc_testbed.testbed.compare.waits import waits_of
from mrc_testbed.testbed.planner.arithmetic.bridge import FaultWait, MeasuredWaits
from tests.oracles.comparison_words import _amount
from tests.oracles.felt import Felt
from tests.oracles.figures import steps
from tests.unit.checks.test_folder import HOSTS, LINK, SCENARIO, RunFolder, at, ev, fault

SEEDS = pytest.mark.parametrize("seed", range(24))
KEEP = pytest.mark.nightly(keep=6)
VARIANTS = {"mrc": "", "tcp": "transport: tcp\n", "roce": "transport: roce\nroce: {timeout: 16}\n"}
SAID = {"mrc": ("MRC", "SRv6"), "tcp": ("TCP, cubic", "ECMP"), "roce": ("RoCE, lossy", "ECMP")}
T_NS, LEAST_NS = 20_000_000, 40_000_000
CALM_NS = {"calm": inf, "cut": 3.5e9}
WITHOUT = SCENARIO[: SCENARIO.index("faults:")] + SCENARIO[SCENARIO.index("expect:") :]


class Grid(NamedTuple):
    """Runs by variant and case, and what a comparison makes of them."""

    felt: dict[tuple[str, str], list[Felt]]
    runs: list[ComparedRun]
    comparison: Comparison


@cache
def grid(seed: int) -> Grid:
    """One or two runs of each variant in each case."""
    dice = random.Random(seed)
    folder = Path(mkdtemp())
    felt: dict[tuple[str, str], list[Felt]] = {}
    runs: list[ComparedRun] = []
    for variant in dice.sample(list(VARIANTS), dice.choice([2, 3])):
        for case in CALM_NS:
            for _ in range(dice.choice([1, 1, 2])):
                own = folder / f"{len(runs)}-{variant}-{case}"
                own.mkdir()
                _drawn(dice, variant, case).write(own)
                runs.append(load_run(own))
                assert runs[-1].believed, runs[-1].verdict.reason
                felt.setdefault((variant, case), []).append(Felt(own, CALM_NS[case]))
    return Grid(felt, runs, compare(runs))


def _drawn(dice: random.Random, variant: str, case: str) -> RunFolder:
    """Steps of any length, stalls anywhere, and sometimes a QP that fails."""
    sizes = [dice.random() ** 2 for _ in range(8)]
    keys = f"variant: {variant}\ncase: {case}\njudge: [mrc]\n{VARIANTS[variant]}"
    run = RunFolder(
        scenario=keys + (WITHOUT if case == "calm" else SCENARIO),
        durations=[round(0.7 + 2.7 * one / sum(sizes), 3) for one in sizes],
    )
    run.without_port_program()
    cut = case == "cut"
    if not cut:
        run.history = [line for line in run.history if line["op"] not in ("inject", "heal")]
    elif dice.random() < 0.4:
        later = [("inject", "invoke", 6.0), ("inject", "ok", 6.0), ("heal", "invoke", 6.1), ("heal", "ok", 6.1)]
        run.history[6:6] = [fault(op, kind, seconds, cycle=1) for op, kind, seconds in later]
    run.events = [line for line in run.events if line["event"] == "snapshot"]
    for line in run.events:
        line["stalled"] = {}
    _count(dice, run)
    for _ in range(dice.choice([0, 1, 2, 3])):
        begin = dice.choice([dice.uniform(0.1, 3), dice.uniform(3.4, 4.6), dice.uniform(4.9, 6)])
        end = begin + dice.choice([0.05, 0.12, 0.9009, 1.3])
        number = dice.randrange(4)
        ends = {"host": HOSTS[number], "qp": "a", "peer": HOSTS[(number + 1) % 4]}
        times = {"t_ns": at(end), "begin_ns": at(begin), "end_ns": at(end)}
        run.events.append({"event": "stall", **ends, **times})
    if cut and variant == "mrc":
        for host, peer in dice.sample([("h0", "h2"), ("h0", "h3"), ("h1", "h2"), ("h3", "h1")], dice.choice([0, 1, 3])):
            lost, back = dice.uniform(3.51, 4), dice.uniform(4.5, 5)
            run.events.append(ev(host, peer, 0, 1, lost + dice.uniform(0.05, 0.3), "GOOD", "ASSUMED_BAD", lost))
            run.events.append(ev(host, peer, 0, 1, back, "ASSUMED_BAD", "GOOD"))
    if variant != "mrc" and dice.random() < 0.2:
        _die(dice, run)
    run.events.sort(key=lambda line: int(line["t_ns"]))
    return run


def _count(dice: random.Random, run: RunFolder) -> None:
    assert run.counters is not None
    for number, host in enumerate(HOSTS):
        counted = run.counters["hosts"][host]
        counted["qps"] = {"a": {"peer": HOSTS[(number + 1) % 4], "sent": 9, "lost": 0}}
        counted["counters"] |= {"bytes_sent": 10_000 + dice.randrange(2500), "bytes_delivered": 10_000}


def _die(dice: random.Random, run: RunFolder) -> None:
    """A QP fails in a step, and the job with it."""
    died = dice.uniform(3.6, 8)
    run.completions = [row for row in run.completions if row[3] < at(died)]
    run.history = [line for line in run.history if line.get("op") != "workload" or line["type"] != "ok"]
    run.events.append({"event": "qp_error", "t_ns": at(died), "host": "h0", "peer": "h1", "reason": "retries"})
    run.events = [line for line in run.events if line["event"] != "stall" or line["end_ns"] < at(died)]


def words(ns: float) -> str:
    return _amount("ns", ns, ns)


def most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def mean(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return fmean(found) if found else None


@SEEDS
@KEEP
def test_variants_in_cases_are_what_the_raw_files_say(seed: int) -> None:
    felt, _, comparison = grid(seed)
    step, still, kept = crossed(comparison)
    names = list(dict.fromkeys(variant for variant, _ in felt))
    for table in (step, still, kept):
        assert table.cases == ("calm", "cut")
        assert [variant for variant, _ in table.rows] == names
    for number, (table, less) in enumerate(((step, True), (still, True), (kept, False))):
        for variant, cells in table.rows:
            for case, cell in zip(table.cases, cells, strict=True):
                values = {name: measures(felt[name, case])[number] for name in (variant, names[0])}
                assert cell.text == values[variant][1], (table.title, variant, case)
                assert cell.wins is (variant != names[0] and wins(felt, case, values, names[0], variant, less)), cell


def measures(runs: list[Felt]) -> list[tuple[float | None, str]]:
    """The value and the words of each measure, of runs of one variant in one case."""
    dead = [one for one in runs if one.died_ns is not None]
    if dead:
        died = f"died {words(dead[0].died_ns or 0)}" if len(runs) == 1 else f"{len(dead)} of {len(runs)} died"
        return [(None, died)] * 3
    worst, times, kept = (
        most([one.worst_ns for one in runs]),
        most([one.times for one in runs]),
        mean([one.kept for one in runs]),
    )
    stalled = max(one.stalled_ns() for one in runs)
    said = f"{words(worst or 0)} \u00d7{times:.2f}" if times else words(worst or 0)
    still = words(stalled) if stalled else f"under {words(LEAST_NS)}"
    return [(worst, said), (max(stalled, LEAST_NS), still), (kept, f"{100 * (kept or 0):.0f}%")]


def wins(
    felt: dict[tuple[str, str], list[Felt]],
    case: str,
    values: dict[str, tuple[float | None, str]],
    first: str,
    variant: str,
    less: bool,
) -> bool:
    """By more than 2 %, or where the first one died."""
    dies = {name: any(one.died_ns is not None for one in felt[name, case]) for name in (first, variant)}
    if dies[first] or dies[variant]:
        return dies[first] and not dies[variant]
    mine, theirs = values[variant][0], values[first][0]
    if mine is None or theirs is None:
        return False
    return mine < 0.98 * theirs if less else mine > 1.02 * theirs


@SEEDS
@KEEP
def test_rows_of_variants_are_what_the_raw_files_say(seed: int) -> None:
    felt, _, comparison = grid(seed)
    for row, (variant, case) in zip(variant_rows(comparison), felt, strict=True):
        runs = felt[variant, case]
        assert (row.label, row.transport, row.routing) == (f"{variant}, {case}", *SAID[variant])
        assert row.wasted == percent(fmean(one.wasted for one in runs))
        dead = [one for one in runs if one.died_ns is not None]
        assert row.job.startswith(job(runs, dead))
        if not dead:
            assert row.stall == stood(variant, runs, "")
            if case == "cut":
                assert row.worst == words(max(worst_in_faults(one) for one in runs))
            assert row.first == words(fmean(median(clean_steps(one)) for one in runs))


def worst_in_faults(one: Felt) -> int:
    """The longest step that a fault, or what is felt of it, overlaps."""
    rows = [row for row in steps(one.raw, "") if any(out.meets(row["begin_ns"], row["end_ns"]) for out in one.outages)]
    return max(row["end_ns"] - row["begin_ns"] for row in rows)


def clean_steps(one: Felt) -> list[int]:
    """Durations of steps outside of faults and what they left."""
    return [
        row["end_ns"] - row["begin_ns"]
        for row in steps(one.raw, "")
        if one.clean().counts(row["begin_ns"], row["end_ns"])
    ]


def job(runs: list[Felt], dead: list[Felt]) -> str:
    if not dead:
        return "lives"
    return f"died at {words(dead[0].died_ns or 0)}" if len(runs) == 1 else f"{len(dead)} of {len(runs)} died"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if abs(share) >= 0.1 else f"{100 * share:.1f} %"


def stood(variant: str, runs: list[Felt], fault: str) -> StoodStill:
    """The longest stall of some runs."""
    longest = max(runs, key=lambda one: one.stalled_ns(fault))
    ns = longest.stalled_ns(fault)
    shown = ns or LEAST_NS
    by_t = variant == "mrc" and not longest.waited(ns, fault)
    far = shown / T_NS * 13_000
    elsewhere = (f"{far / 1e3:.3g} us" if far < 1e6 else words(far)) if by_t else words(shown)
    under = "" if ns else "under "
    return StoodStill(ns, T_NS, LEAST_NS, under + elsewhere, known=len(runs), runs=len(runs))


@SEEDS
@KEEP
def test_stalls_in_a_fault_are_what_the_raw_files_say(seed: int) -> None:
    felt, _, comparison = grid(seed)
    (cut,) = fault_outages(comparison)
    lasted = [one.lasted for runs in felt.values() for run in runs for one in run.outages]
    assert (cut.name, cut.what, cut.lasted_ns, cut.shortest_ns) == (
        "cut",
        f"link-down {LINK}",
        max(lasted),
        min(lasted),
    )
    alike = min(lasted) >= 0.9 * max(lasted)
    assert cut.lasted == (words(max(lasted)) if alike else f"{words(min(lasted))} to {words(max(lasted))}")
    for (variant, case), (label, told) in zip(felt, cut.groups, strict=True):
        runs = felt[variant, case]
        assert label == f"{variant} / {case}"
        if case == "cut" and not any(one.died_ns for one in runs):
            wanted = stood(variant, runs, "cut")
            assert told == wanted
            t = (wanted.ns or LEAST_NS) / T_NS
            assert told.in_rtts == f"{'' if wanted.ns else 'under '}{_amount('', t, t)} T"


@SEEDS
@KEEP
def test_waits_are_what_the_raw_files_say(seed: int) -> None:
    felt, runs, _ = grid(seed)
    cut = {variant: some for (variant, case), some in felt.items() if case == "cut"}
    alive = [variant for variant, some in cut.items() if not any(one.died_ns for one in some)]
    for variant in alive:
        folders = [one.raw.folder for one in cut[variant]]
        found: dict[str, MeasuredWaits] = {
            one.what: one for one in waits_of([run for run in runs if run.folder in folders])
        }
        wanted = {
            "recovery": [wait for one in cut[variant] for wait in one.recoveries()] if variant == "mrc" else [],
            "stall": [wait for one in cut[variant] for wait in one.waits()],
        }
        assert list(found) == [what for what, waits in wanted.items() if waits]
        for what, told in found.items():
            assert told.waits == tuple(FaultWait(*wait, 0.025) for wait in wanted[what])
            assert told.occurrences == sum(len(one.outages) for one in cut[variant])
            assert (told.name, told.figure, told.runs) == (
                SAID[variant][0],
                f"{what}.p100",
                tuple(folder.name for folder in folders),
            )
            healed = variant != "mrc" or (what == "stall" and any(one.waited_in_some(0.9) for one in cut[variant]))
            waiting = [one for one in cut[variant] if list(one.recoveries() if what == "recovery" else one.waits())]
            lasted = [one.lasted for run in waiting for one in run.outages]
            ends = list(dict.fromkeys(words(ns) for ns in (min(lasted), max(lasted))))
            said = f"how long faults last, {' to '.join(ends)} here" if healed else ""
            assert told.in_seconds.endswith(said)
            assert bool(told.in_seconds) is healed
    names = {one.name for one in waits_of(runs)}
    assert names <= {f"{SAID[variant][0]} ({variant}, {case})" for variant, case in felt}


def test_what_is_drawn_has_all_that_the_docs_speak_of() -> None:
    tables = [table for seed in range(6) for table in crossed(grid(seed).comparison)]
    cells: list[Any] = [cell for table in tables for _, some in table.rows for cell in some]
    assert {cell.wins for cell in cells} == {True, False}
    assert any(cell.text.startswith("died") for cell in cells)
    assert any(waits for seed in range(6) for waits in waits_of(grid(seed).runs) if waits.what == "recovery")
