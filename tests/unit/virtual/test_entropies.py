"""`endpoint.entropies`: EVs that switches hash, as many as asked for, and how evenly they fall."""

from __future__ import annotations

from math import comb
from statistics import fmean, stdev

import pytest

from benchmarks.entropies import UPLINKS, by_the_hash, expected, scenario_of
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.runner.setup import configuration, probe_round_ns
from mrc_testbed.testbed.runner.virtual_world import virtual_options
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.virtual import ways
from mrc_testbed.topos.routes import Routing
from tests.hashed import SCENARIO
from tests.unit.virtual.test_ecmp import SHAPE
from tests.unit.virtual.virtual_stage import ROCE_PORT, Stage


def load(*sets: str) -> Scenario:
    return load_scenario_text(SCENARIO, overrides=[f"endpoint.{each}" for each in sets])


def evs_of(scenario: Scenario) -> list[list[int]]:
    """Of h0 towards h2, as its daemon is told."""
    plan = scenario.plan()
    asked = configuration("h0", scenario, plan, scenario.job.plan_job(plan), virtual_options(scenario), [])
    assert "entropies" not in asked
    return next(peer["evs"] for peer in asked["peers"] if peer["name"] == "h2")


def test_a_daemon_is_told_of_as_many_evs_as_are_asked_for() -> None:
    assert evs_of(load()) == evs_of(load("entropies=auto")) == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert evs_of(load("entropies=6")) == [[plane, number] for plane in range(2) for number in range(3)]
    assert len(evs_of(load("entropies=512"))) == 512


def test_the_settings_of_a_run_name_them() -> None:
    assert load().endpoint.written()["entropies"] == "auto"
    assert load("entropies=32").endpoint.changed() == {"entropies": "32"}


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["endpoint.entropies=7"], "2 planes share 7 EVs, the same number each, and none has more than 256; write 8"),
        (["endpoint.entropies=1"], "write 2"),
        (["endpoint.entropies=514"], "write 512"),
        (["endpoint.entropies=0"], "must be a whole number of 1 or more, or auto"),
        (["endpoint.entropies=many"], "must be a whole number"),
        (["endpoint.entropies=8", "transport=mrc"], "switches hash no EVs of mrc, so nobody would use them"),
        (["endpoint.entropies=8", "transport=roce"], "remove this key, or write `transport: mrc-hashed`"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(sets: list[str], said: str) -> None:
    text = SCENARIO.partition("expect:")[0] + "expect: [qp_errors == 0]\n"
    with pytest.raises(ScenarioError, match=r"endpoint\.entropies") as refused:
        load_scenario_text(text, overrides=sets)
    assert said in str(refused.value)


def test_probes_of_the_warm_up_have_time_for_all_of_them() -> None:
    few, many = load("entropies=4"), load("entropies=64")
    plan = few.plan()
    rounds = [probe_round_ns(each, plan, each.job.plan_job(plan)) for each in (few, many)]
    assert rounds[1] == 16 * rounds[0] > 0


def test_the_live_view_counts_them_by_plane_as_nobody_knows_their_uplinks() -> None:
    scenario = load("entropies=32")
    evs = LiveModel(scenario, scenario.plan()).frame(0)["evs"]
    assert {place: sum(counts.values()) for place, counts in evs.items()} == {"0/hashed": 96, "1/hashed": 96}


# --- how evenly they fall ---


@pytest.mark.parametrize(("entropies", "said"), [(32, 1.37), (128, 1.19), (512, 1.09)])
def test_the_multinomial(entropies: int, said: float) -> None:
    assert abs(expected(entropies) - said) < 0.006


@pytest.mark.parametrize("balls", [1, 2, 6])
def test_the_multinomial_is_that_of_counting_all_ways(balls: int) -> None:
    ways_of = [[a, b, balls - a - b] for a in range(balls + 1) for b in range(balls + 1 - a)]
    mean = sum(max(w) * comb(balls, w[0]) * comb(balls - w[0], w[1]) for w in ways_of) / 3**balls
    assert expected(balls, 3) == pytest.approx(mean * 3 / balls)


@pytest.mark.parametrize("entropies", [32, 128])
@pytest.mark.nightly(keep=1)
def test_the_hash_of_the_switches_spreads_source_ports_as_chance_would(entropies: int) -> None:
    """Of 24 seeds, within four standard errors."""
    found = [each for seed in range(1, 25) for each in by_the_hash(scenario_of(entropies, seed)).values()]
    assert len(found) == 24 * 8
    error = stdev(found) / len(found) ** 0.5
    assert abs(fmean(found) - expected(entropies)) < 4 * error
    assert error < 0.02
    assert UPLINKS == 4


def test_a_fabric_forgets_ways_and_works_them_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "MOST_WAYS", 8)
    one = Stage(SHAPE, routing=Routing.ECMP_STATIC)
    hashed = one.fabric._ways
    assert isinstance(hashed, ways.HashedWays)
    source, target = one.plan.hosts[0], one.plan.hosts[-1]
    (_, address), *_ = one.plan.host_ports(target)
    asked = [(0xC000 + n, (address, ROCE_PORT, 0, 0)) for n in range(50)]
    chosen = []
    for where in asked * 2:
        way = hashed.way(source, where)
        chosen.append([id(port) for port in hashed._ports_now(way, way.ports)])
        assert max(len(hashed._known), len(hashed._hashes), len(hashed._chosen)) <= 8
    assert chosen[:50] == chosen[50:]
    assert len({tuple(each) for each in chosen}) == 4
