"""The room of bounds against a second computation, of verdicts drawn from seeds."""

from __future__ import annotations

import random
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import pytest

from mrc_testbed.testbed.checks.result import CheckResult, Fidelity, FidelityFigure, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.bounds import BoundsOf, Room, bounds_document, bounds_of, gravest
from mrc_testbed.testbed.expect.vocabulary import Severity
from tests.oracles.comparison import quantile

SEEDS = pytest.mark.parametrize("seed", range(200))
KEEP = pytest.mark.nightly(keep=60)
LATE = Fidelity((FidelityFigure("timers late", 90.0, 20.0, "ms", False),))
WORST_FIRST = ("tight", "open in some run", "too few runs", "all alike", "exact", "enough")


def drawn(seed: int) -> list[Verdict]:
    """Repeats of one scenario with a few expectations. Not every run decides all."""
    dice = random.Random(seed)
    names = ["a", "b", "c"][: dice.choice([1, 1, 2, 3])]
    kinds = {name: _kind(dice) for name in names}
    runs = dice.choice([0, 1, 4, 5, 5, 6, 12])
    return [_verdict(dice, kinds, dice.random() < 0.1) for _ in range(runs)]


def _kind(dice: random.Random) -> dict[str, Any]:
    """The spread of an expectation's figure, and how far away its bound is."""
    mean = dice.choice([0.0, 0.004, 3.0, 20.0, 1234.5, 8e6])
    spread = dice.choice([0.0, 0.01, 0.1]) * (mean or 1.0)
    op = dice.choice(["<=", "<", ">=", ">", "==", "!="])
    away = dice.choice([0.1, 2, 4, 5, 6, 8, 20]) * (spread or 1.0)
    return {
        **{"op": op, "mean": mean, "spread": spread, "whole": dice.random() < 0.4},
        "bound": mean - away if op in (">=", ">") else mean + away,
        "moves": dice.random() < 0.2,
        "level": dice.choice([Severity.ERROR, Severity.ERROR, Severity.WARNING]),
        "open": dice.choice([0, 0, 0, 0.2, 1]),
        "told": dice.choice([True, True, True, False]),
        "twice": dice.random() < 0.1,
    }


def _verdict(dice: random.Random, kinds: dict[str, dict[str, Any]], late: bool) -> Verdict:
    checks = [check for name, kind in kinds.items() for check in [_check(dice, name, kind)] * (1 + kind["twice"])]
    of_runs = CheckResult("job finished", Status.INCONCLUSIVE)
    return Verdict(Status.PASS, "small", (*checks, of_runs), LATE if late else Fidelity(()))


def _check(dice: random.Random, name: str, kind: dict[str, Any]) -> CheckResult:
    seen = dice.gauss(kind["mean"], kind["spread"])
    seen = float(round(seen)) if kind["whole"] else seen
    limit = kind["bound"] * (dice.choice([1.0, 2.0]) if kind["moves"] else 1 + dice.choice([0, 3e-12]))
    if dice.random() < kind["open"]:
        return CheckResult(name, Status.INCONCLUSIVE, place="mine.yaml:9", level=kind["level"])
    held = {"<": seen < limit, "<=": seen <= limit, ">": seen > limit, ">=": seen >= limit, "==": True, "!=": True}
    status = Status.PASS if held[kind["op"]] else Status.FAIL
    told = seen if kind["told"] or dice.random() < 0.9 else None
    text = f"{kind['op']} {limit:g} ms"
    return CheckResult(
        name, status, told, text, "ms", limit=limit, place="mine.yaml:9", level=kind["level"], hard=dice.random() < 0.5
    )


def wanted(verdicts: list[Verdict], chance: float) -> list[dict[str, Any]]:
    """A row an expectation."""
    believed = [verdict for verdict in verdicts if verdict.fidelity.ok]
    names = dict.fromkeys(check.name for verdict in believed for check in verdict.checks if check.place)
    found = []
    for name in names:
        each = [next(check for check in verdict.checks if check.name == name) for verdict in believed]
        found.append(_row(name, each, chance))
    return found


def _row(name: str, checks: list[CheckResult], chance: float) -> dict[str, Any]:
    pairs = [
        (check.observed, check.limit) for check in checks if check.observed is not None and check.limit is not None
    ]
    row: dict[str, Any] = {
        **{"name": name, "op": "", "unit": "", "bound": None, "observed": (), "deviations": None, "needed": None},
        "missed": [check.status for check in checks].count(Status.FAIL),
        "open": [check.status for check in checks].count(Status.INCONCLUSIVE),
        "decides": checks[0].level is Severity.ERROR,
    }
    if pairs:
        bounds = np.array([limit for _, limit in pairs])
        row |= {"op": next(check.expected for check in checks if check.limit is not None).split()[0], "unit": "ms"}
        row |= {"bound": pairs[0][1], "observed": tuple(seen for seen, _ in pairs)}
        if np.abs(bounds / bounds[0] - 1).max() > 1e-9:
            row |= {"unit": "of the bound", "bound": 1.0, "observed": tuple(seen / limit for seen, limit in pairs)}
        row |= _spread(row, chance)
    row["room"] = _room(row)
    return row


def _spread(row: dict[str, Any], chance: float) -> dict[str, Any]:
    seen = np.array(row["observed"])
    if len(seen) < 5 or row["op"] in ("==", "!=") or np.ptp(seen) == 0:
        return {}
    of_next = seen.std(ddof=1) * (1 + 1 / len(seen)) ** 0.5
    sign = 1 if row["op"].startswith("<") else -1
    edge = float(seen.mean() + sign * quantile(len(seen) - 1, 1 - 2 * chance) * of_next)
    return {
        "deviations": float(sign * (row["bound"] - seen.mean()) / of_next),
        "needed": _outward(edge, sign, bool((seen == seen.round()).all())),
        "edge": sign * (row["bound"] - edge),
    }


def _outward(edge: float, sign: int, whole: bool) -> float:
    """A whole number, or three digits."""
    way = ROUND_CEILING if sign > 0 else ROUND_FLOOR
    exact = Decimal(edge)
    step = Decimal(1) if whole else Decimal(1).scaleb(exact.adjusted() - 2)
    return float((exact / step).to_integral_value(way) * step)


def _room(row: dict[str, Any]) -> str:
    if row["missed"]:
        return "tight"
    if row["open"] or row["bound"] is None:
        return "open in some run"
    if len(row["observed"]) < 5:
        return "too few runs"
    if row["op"] in ("==", "!="):
        return "exact"
    if row["deviations"] is None:
        return "all alike"
    return "enough" if row["edge"] >= 0 else "tight"


@SEEDS
@KEEP
@pytest.mark.parametrize("chance", [0.001, 0.02])
def test_each_bound_has_the_room_that_the_runs_leave(seed: int, chance: float) -> None:
    verdicts = drawn(seed)
    found = bounds_of("small", verdicts, chance)
    late = sum(not verdict.fidelity.ok for verdict in verdicts)
    assert (found.runs, found.left_out) == (len(verdicts) - late, late)
    rows = wanted(verdicts, chance)
    (told,) = bounds_document([found], chance)["scenarios"]
    assert [row["name"] for row in told["bounds"]] == [row["name"] for row in rows]
    for row, mine in zip(told["bounds"], rows, strict=True):
        mine.pop("edge", None)
        numbers = ("bound", "deviations", "needed")
        assert {key: row[key] for key in row if key not in (*numbers, "observed")} == {
            key: mine[key] for key in mine if key not in (*numbers, "observed")
        }
        assert row["observed"] == pytest.approx(mine["observed"])
        for key in numbers:
            assert row[key] == (None if mine[key] is None else pytest.approx(mine[key], rel=1e-5)), key


@SEEDS
@KEEP
def test_the_gravest_is_that_of_what_decides(seed: int) -> None:
    several = [bounds_of("small", drawn(number)) for number in (seed, seed + 1000, seed + 2000)]
    for found in (several[:1], several[:2], several):
        assert gravest(found).value == _gravest(found)
    assert gravest([]) is Room.TOO_FEW


def _gravest(found: list[BoundsOf]) -> str:
    rooms = [row.room.value for one in found for row in one.bounds if row.decides]
    rooms += ["too few runs" for one in found if not one.bounds]
    return min(rooms or ["too few runs"], key=WORST_FIRST.index)


def test_what_is_drawn_has_every_room() -> None:
    told = [row.room.value for seed in range(60) for row in bounds_of("small", drawn(seed)).bounds]
    assert set(told) == set(WORST_FIRST)
