"""Accusations on generated evidence against a second computation over every suspect of a small fabric."""

from __future__ import annotations

import random
from dataclasses import replace
from math import isclose, log

import pytest

from mrc_testbed.testbed.mapper.evidence import BINS_A_PERIOD, EvidenceWindow, Observation
from mrc_testbed.testbed.mapper.locate import Blame, KnownBroken, Locator
from mrc_testbed.testbed.mapper.probing import probe_routes
from mrc_testbed.testbed.mapper.suspects import Suspect, SuspectTable
from tests.mapping.simulation import drawn, passes, plan_of
from tests.oracles.accusations import Said, Scene, alike, contradicted, open_rows, said, sure

PERIOD_NS = 400
PERIODS = 4
END_NS = PERIODS * PERIOD_NS
GRAIN_NS = PERIOD_NS // BINS_A_PERIOD
ALPHA = 1e-4
CASES = 150
SINCE_NS = 200


def scene_of(seed: int) -> tuple[Scene, list[KnownBroken]]:
    """A small fabric, one broken thing beside up to two that are known, and rows of any length over its ways."""
    rng = random.Random(seed)
    plan = plan_of(rng.choice([1, 2]), 2, rng.choice([2, 3]), 2)
    table = SuspectTable(plan)
    ways = [one.crosses for each in probe_routes(plan, table, 9).values() for one in each]
    if rng.random() < 0.5:
        pairs = [(src, dst, path.id) for src in plan.hosts for dst in plan.hosts for path in plan.paths(src, dst)]
        ways = [table.crossed(src.name, plan.links_on_path(src, dst, path)) for src, dst, path in pairs]
    one, *others = rng.sample(table.all, rng.choice([1, 1, 2, 3]))
    known = {other: (rng.choice([0.2, 0.6]), rng.choice([None, 900])) for other in others}
    noise, broken, begins = rng.choice([0.001, 0.01]), {one: rng.choice([1.0, 0.5, 0.2, 0.05])}, rng.choice([0, 600])
    rows = []
    for way in ways * rng.choice([1, 2, 3]):
        begin_ns = rng.randrange(1, END_NS - 300)
        end_ns = begin_ns + rng.choice([0, 50, 300])
        first = rng.choice([0, begin_ns, (begin_ns + end_ns) // 2])
        now = (broken if end_ns >= begins else {}) | {s: loss for s, (loss, until) in known.items() if not until}
        sent, congested = rng.choice([1, 5, 20]), rng.choice([0.0, 0.0, 0.05])
        rows.append((way, begin_ns, end_ns, sent, drawn(rng, sent, 1 - passes(way, now, noise)), first, congested))
    seen = [
        Observation(w, b, e, n, lost, "h0", first if lost else 0, congested=c) for w, b, e, n, lost, first, c in rows
    ]
    seen = [row for row in seen if not row.lost or row.end_ns > SINCE_NS]
    return Scene(table, seen, noise, GRAIN_NS, known), [KnownBroken(s, *each) for s, each in known.items()]


def told(scene: Scene, known: list[KnownBroken], settle_ns: int) -> list[Blame]:
    """Accusations of the mapper, however unsure it is."""
    window = EvidenceWindow(scene.table, PERIOD_NS, PERIODS)
    before = [replace(row, end_ns=SINCE_NS, begin_ns=SINCE_NS, lost=row.sent) for row in scene.rows if row.lost]
    window.add([*scene.rows, *before], END_NS - 1)  # a loss at the begin of the stretch is older than it
    locator = Locator(scene.table, settle_ns, scene.noise, ALPHA, sure=0.0)
    return locator.locate(window, SINCE_NS, END_NS, known)


def gate(scene: Scene) -> float:
    """How much a thing must explain: chance alone does so once in 1 / ALPHA decisions, however large the fabric is."""
    return log(len({one.name for one in scene.table.all}) / ALPHA)


def allowed(scene: Scene, found: dict[Suspect, Said], settle_ns: int) -> list[Suspect]:
    """The best first: what explains enough, is not contradicted, is old enough, and explains no loss that something
    better but too new explains."""
    waiting: list[Observation] = []
    kept = []
    for one in sorted(found, key=lambda one: (-found[one].gain, found[one].arrived, len(one.elements), str(one))):
        each = found[one]
        late = any(row is other for row in open_rows(scene, one) for other in waiting)
        if each.gain >= gate(scene) and not late and not contradicted(scene, one):
            if each.onset_ns + settle_ns * (1 if each.loss >= 0.9 else 2) <= END_NS:
                kept.append(one)
            else:
                waiting += open_rows(scene, one)
    return kept


@pytest.mark.parametrize("seeds", range(10))
def test_an_accusation_is_what_all_rows_say(seeds: int) -> None:
    alone = 0
    for seed in range(seeds * CASES // 10, (seeds + 1) * CASES // 10):
        scene, known = scene_of(seed)
        settle_ns = seed % 3 * 500
        answer = told(scene, known, settle_ns)
        found = {one: each for one in scene.table.all if one not in scene.standing and (each := said(scene, one))}
        good = allowed(scene, found, settle_ns)
        assert bool(answer) == bool(good), seed
        if len(answer) == 1:
            alone += 1
            assert found[answer[0].suspect].gain >= max(gate(scene), found[good[0]].gain - 1e-6), seed
            compare(scene, answer[0], found[answer[0].suspect])
    assert alone > 1


def compare(scene: Scene, blame: Blame, wanted: Said) -> None:
    """Everything that an accusation says, where it is the only one."""
    for name in ("onset_ns", "last_ns", "lost"):
        assert getattr(blame, name) == getattr(wanted, name), name
    for name in ("loss", "gain", "arrived"):
        assert isclose(getattr(blame, name), getattr(wanted, name), rel_tol=1e-9), name
    assert blame.alike == alike(scene, blame.suspect, wanted.onset_ns)
    names = {blame.suspect.name, *(one.name for one in blame.alike)}
    assert isclose(blame.sure, sure(scene, blame.suspect, names), rel_tol=1e-9)
