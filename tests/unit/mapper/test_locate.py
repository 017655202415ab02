"""The greedy search finds what an exhaustive one finds, and what single faults without noise must show."""

from __future__ import annotations

import random

import pytest

from mrc_testbed.testbed.mapper.evidence import EvidenceWindow, Observation
from mrc_testbed.testbed.mapper.locate import NOISE, Blame, Locator
from mrc_testbed.testbed.mapper.probing import probe_routes
from mrc_testbed.testbed.mapper.suspects import Elements, Suspect, SuspectTable, alike
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import Plan
from tests.mapping.exhaustive import Likelihoods
from tests.mapping.simulation import PERIOD_NS, Broken, Probed, drawn, passes, plan_of, plan_of_family

CASES = 500


def data_ways(plan: Plan, table: SuspectTable) -> list[Elements]:
    """Of all packets between any two hosts."""
    return [
        table.crossed(src.name, plan.links_on_path(src, dst, path.id))
        for src in plan.hosts
        for dst in plan.hosts
        for path in plan.paths(src, dst)
    ]


def probe_ways(plan: Plan, table: SuspectTable) -> list[Elements]:
    return [one.crosses for routes in probe_routes(plan, table, owners=9).values() for one in routes]


def seen(route: Elements, sent: int, lost: int) -> Observation:
    return Observation(route, PERIOD_NS, 2 * PERIOD_NS, sent, lost, "h0", PERIOD_NS)


def located(table: SuspectTable, rows: list[Observation], sure: float = 0.0) -> list[Blame]:
    window = EvidenceWindow(table, PERIOD_NS, 4)
    window.add(rows, 2 * PERIOD_NS)
    return Locator(table, 0, sure=sure).locate(window, 0, 2 * PERIOD_NS)


def random_case(seed: int) -> tuple[SuspectTable, list[Observation]]:
    """A small fabric, up to two broken things, and what was seen of them."""
    rng = random.Random(seed)
    plan = plan_of(rng.choice([1, 2]), 2, rng.choice([2, 3]), rng.choice([2, 3]))
    table = SuspectTable(plan)
    ways = rng.choice([data_ways, probe_ways])(plan, table)
    broken = {one: rng.choice([1, 1, 0.3, 0.1]) for one in rng.sample(table.all, rng.choice([0, 1, 1, 2]))}
    sent = rng.choice([1, 4, 20])
    used = [way for way in ways if rng.random() < 0.9]
    return table, [seen(way, sent, drawn(rng, sent, 1 - passes(way, broken))) for way in used]


@pytest.mark.parametrize("cases", [100, CASES])
@pytest.mark.nightly(keep=1)
def test_it_finds_what_an_exhaustive_search_finds(cases: int) -> None:
    """Two answers that make the rows equally likely are one: nobody could tell which is true."""
    worse = []
    for seed in range(cases):
        table, rows = random_case(seed)
        all_sets = Likelihoods(table, rows, NOISE, Locator(table, 0).gate)
        answer = [blame.suspect for blame in located(table, rows)]
        if all_sets.worth(answer) < all_sets.best() - 0.05:
            worse.append(seed)
    assert len(worse) <= cases // 100, worse


def noiseless(plan: Plan, broken: Broken) -> list[str]:
    """What is named where each probe goes out ten times, and nothing is lost by chance; classes by their first name."""
    table = SuspectTable(plan)
    named = {table.named(one.name, one.direction): loss for one, loss in broken.items()}
    rows = [seen(way, 10, 10 if passes(way, named, 0.0) < 1 else 0) for way in probe_ways(plan, table)]
    return sorted(min({blame.suspect.name, *(one.name for one in blame.alike)}) for blame in located(table, rows))


@pytest.mark.parametrize("family", [Clos2(2, 3, 2), Clos3(2, 2, 2, 4, 2), Rail(3, 4, 2, 2)], ids=lambda each: each.word)
@pytest.mark.nightly(keep=1)
def test_without_noise_each_single_fault_is_named(family: Family) -> None:
    """Also the rule of the paper: probes of the T0 are well and those of the T1 are not, so it is their link. What no
    probe tells from it counts as named."""
    plan = plan_of_family(2, family)
    table = SuspectTable(plan)
    same = {one.name: {one.name} for one in table.all}
    for members in alike(table, probe_ways(plan, table)):
        for one in members:
            same[one.name] |= {other.name for other in members}
    for one in table.all:
        (name,) = noiseless(plan, {one: 1.0})
        assert name in same[one.name], str(one)


def test_a_switch_wins_over_its_links_and_a_link_over_its_switch() -> None:
    plan = plan_of(2, 2, 4, 2)
    table = SuspectTable(plan)
    assert noiseless(plan, {table.named("p1-t1-2"): 1.0}) == ["p1-t1-2"]
    assert noiseless(plan, {table.named("p0-t0-1:p0-t1-2"): 1.0}) == ["p0-t0-1:p0-t1-2"]
    two = {table.named("p0-t0-0:p0-t1-1"): 1.0, table.named("h3"): 1.0}
    assert noiseless(plan, two) == ["h3", "p0-t0-0:p0-t1-1"]


def test_data_that_go_one_way_tell_the_direction_of_loss_apart() -> None:
    plan = plan_of(1, 2, 3, 2)
    table = SuspectTable(plan)
    up = table.named("p0-t0-0:p0-t1-1", "up")
    rows = [seen(way, 10, 10 if up.elements & set(way) else 0) for way in data_ways(plan, table)]
    (blame,) = located(table, rows)
    down = table.named("p0-t0-1:p0-t1-1", "down")
    assert {blame.suspect, *blame.alike} >= {up}
    # With two T0s what goes up to a T1 comes down to the other one.
    assert {one.name for one in {blame.suspect, *blame.alike}} == {up.name, down.name}


def test_what_no_packet_tells_apart_is_said() -> None:
    """One host below each T0: its port and the T0 are crossed by the same probes."""
    plan = plan_of(2, 2, 2, 1)
    table = SuspectTable(plan)
    rows = [seen(way, 10, 10 * (table.named("p1-t0-0").elements <= set(way))) for way in probe_ways(plan, table)]
    (blame,) = located(table, rows)
    assert {blame.suspect.name, *(one.name for one in blame.alike)} == {"p1-t0-0", "h0:p1-t0-0"}
    assert blame.sure > 0.99


def test_nothing_is_accused_of_what_one_sender_alone_loses() -> None:
    """All that it crosses others cross well: as where one EV of one sender is filtered."""
    plan = plan_of(1, 2, 2, 3)
    table = SuspectTable(plan)
    ways = data_ways(plan, table)
    rows = [seen(way, 40, 20 if number == 7 else 0) for number, way in enumerate(ways)]
    assert located(table, rows, sure=0.9) == []


def test_losses_that_are_new_decide_nothing() -> None:
    """Clean packets had no time to speak: any link of the way could be it."""
    fabric = Probed(plan_of(2, 2, 2, 2))
    window = EvidenceWindow(fabric.table, PERIOD_NS, 4)
    port = fabric.table.named("h0:p0-t0-0")
    rows = [seen(way, 5, 5 if port.elements & set(way) else 0) for _, way in fabric.routes]
    window.add(rows, 2 * PERIOD_NS)
    locator = Locator(fabric.table, PERIOD_NS)
    assert [one.suspect.name for one in locator.locate(window, 0, 2 * PERIOD_NS)] == ["h0:p0-t0-0"]
    assert locator.locate(window, 0, 2 * PERIOD_NS - 1) == []


def test_evidence_fades_with_its_window() -> None:
    fabric = Probed(plan_of(1, 2, 2, 2))
    window = EvidenceWindow(fabric.table, PERIOD_NS, 4)
    host, way = fabric.routes[0]
    window.add([Observation(way, PERIOD_NS, PERIOD_NS, 3, 1, host, PERIOD_NS)], PERIOD_NS)
    window.add([Observation(way, 2 * PERIOD_NS, 2 * PERIOD_NS, 5, 0, host)], 2 * PERIOD_NS)
    assert window.clean_since(way[1], PERIOD_NS) == 5
    assert len(window.lossy) == 1
    window.add([], 6 * PERIOD_NS)
    assert window.clean_since(way[1], 0) == 0
    assert not window.lossy
    assert list(window.rows_since(0)) == []


def test_only_packets_after_the_first_loss_speak_of_a_fault() -> None:
    """What was clean before says nothing of what broke later."""
    table = SuspectTable(plan_of(1, 2, 2, 2))
    suspect: Suspect = table.named("h0:p0-t0-0", "up")
    way = table.crossed("h0", ["h0:p0-t0-0", "h1:p0-t0-0"])
    row = Observation(way, 0, 100, 50, 10, "h0", first_lost_ns=75)
    assert row.onset_ns == 75
    assert row.arrived_since(75) == 10
    assert suspect.elements <= set(way)
