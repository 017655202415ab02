"""A plan made small: the scenario validates, keeps the ratios that it says it keeps, and says which it does not."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.calibration import budget_warnings
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.planner.arithmetic.clos import Clos, reach
from mrc_testbed.testbed.planner.arithmetic.design import NicCable
from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
from mrc_testbed.testbed.planner.arithmetic.question import Question, designs
from mrc_testbed.testbed.planner.arithmetic.ratios import Ratio, ratios_of
from mrc_testbed.testbed.planner.arithmetic.small import LargePlan, SmallFabric, only_design
from mrc_testbed.testbed.planner.arithmetic.small_text import scenario_text
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.faults import Chaos
from mrc_testbed.testbed.scenario.model.step_models import Train
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.graph import SwitchPlace

PLANES = st.sampled_from([1, 2, 4, 8, 16, 32])


@st.composite
def plans(draw: st.DrawFn) -> LargePlan:
    """Any of two or three tiers, from two NICs to full ones, with any job, flaps and EVs."""
    half, tiers = draw(st.integers(1, 512)), draw(st.sampled_from([2, 3]))
    ports = 2 * half + draw(st.sampled_from([0, 1]))
    nics = draw(st.integers(2, reach(tiers, ports)))
    clos = Clos(draw(PLANES), tiers, ports, nics)
    flaps = draw(st.one_of(st.just(0.0), st.floats(1e-3, 200)))
    job, evs = draw(st.integers(1, nics)), draw(st.integers(1, 256))
    return LargePlan(clos, job, flaps, evs, draw(st.sampled_from([100, 400, 800])), draw(st.floats(1e-6, 1e-4)))


def text_of(plan: LargePlan) -> str:
    return scenario_text(SmallFabric(plan), "mrc-testbed plan --scenario small.yaml", "small.yaml")


def stated(text: str) -> dict[str, tuple[float, float, bool]]:
    """Each ratio at the head of the file: in the plan, here, and whether it is said to be kept."""
    head = text.partition("\nname:")[0]
    unwrapped = re.sub(r"\n#   (?=\S)", " ", head)
    kept, _, lost = unwrapped.partition("# Not kept:")
    found = {}
    for part, keeps in ((kept, True), (lost, False)):
        for what, plan, here in re.findall(r"# - (.+?): ([\d.,e+-]+).*? in the plan, ([\d.,e+-]+).*? here", part):
            found[what] = float(plan.replace(",", "")), float(here.replace(",", "")), keeps
    return found


def read_back(scenario: Scenario) -> dict[str, float]:
    """The ratios of the fabric that would be built."""
    shape, (chaos,) = scenario.shape(), scenario.faults
    assert isinstance(chaos, Chaos)
    (falls,) = chaos.kinds.written()
    (job,) = scenario.jobs
    assert isinstance(job.entry, Train)
    step_ns = scenario.estimate_ns / job.entry.steps
    evs, family = scenario.endpoint.ev_active / shape.planes, shape.family
    ways, uplinks = family.most_ways(), sum(cable.lower == SwitchPlace(0, 0) for cable in family.cables())
    return {
        "tiers": len(family.tiers),
        "planes of a NIC": shape.planes,
        "EVs of a QP, of its paths": 100 * evs / ways,
        "hosts in the job, and so its share of a T1": 100 * len(scenario.ranks) / shape.hosts,
        "T0-T1 flaps in a step of the job": step_ns / falls.times.mean_ns,
        "bandwidth that a lost NIC port takes": 100 / shape.planes,
        "hosts": shape.hosts,
        "share of a plane that a lost T0-T1 link takes": 100 / uplinks,
        "packets that fill a port for a round trip": shape.plane_bdp_packets,
    }


@given(plans())
@pytest.mark.nightly
def test_any_plan_becomes_a_scenario_that_two_cores_carry(plan: LargePlan) -> None:
    scenario = load_scenario_text(text_of(plan))
    assert list(scenario_warnings(scenario)) == []
    assert budget_warnings(scenario.shape(), scenario.transport.cost, scenario.fabric.planes) == ()
    assert scenario.shape().switches <= 160
    assert scenario.estimate_ns < 160e9
    assert 5 <= len(scenario.occurrences) <= 1500


@given(plans())
def test_what_the_head_says_is_what_would_be_built(plan: LargePlan) -> None:
    text = text_of(plan)
    found, built = stated(text), read_back(load_scenario_text(text))
    for what, here in built.items():
        assert found[what][1] == pytest.approx(here, rel=0.01, abs=0.51 if here == round(here) else 0.0), what


@given(plans())
def test_kept_means_near_and_all_else_has_a_reason(plan: LargePlan) -> None:
    found = stated(text_of(plan))
    ratios = list(ratios_of(SmallFabric(plan)))
    assert set(found) == {ratio.what for ratio in ratios}
    for ratio in ratios:
        planned, here, keeps = found[ratio.what]
        assert keeps is ratio.kept
        assert (abs(here - planned) <= 0.07 * max(planned, 1e-3)) is keeps or not keeps
        assert ratio.kept or ratio.why


@given(plans())
@pytest.mark.nightly
def test_a_qp_has_an_ev_in_every_plane_and_the_job_a_host_on_each_side(plan: LargePlan) -> None:
    scenario = load_scenario_text(text_of(plan))
    assert scenario.endpoint.ev_active % scenario.fabric.planes == 0
    fabric = scenario.plan()
    hosts = [fabric.host_by_name[host] for host in scenario.ranks]
    for one, other in pairwise([*hosts, hosts[0]]):
        assert {len(way) for way in fabric.ways(one, other)} == {2 * len(fabric.shape.family.tiers) - 1}


def of_network(planes: int, ports: int, gpus: int, job: int | None = None, flaps: float = 1.4) -> dict[str, Ratio]:
    plan = LargePlan(Clos(planes, 2, ports, gpus), job or gpus, flaps, 128, 800 // planes, 10e-6)
    return {ratio.what: ratio for ratio in ratios_of(SmallFabric(plan))}


def test_the_paper_s_network_keeps_planes_evs_flaps_and_job() -> None:
    found = of_network(8, 512, 131_072)
    kept = {what: (ratio.plan, ratio.here) for what, ratio in found.items() if ratio.kept}
    assert kept["planes of a NIC"] == (8, 8)
    assert kept["EVs of a QP, of its paths"] == (6.25, 6.25)
    assert kept["T0-T1 flaps in a step of the job"] == (1.4, 1.4)
    assert kept["hosts in the job, and so its share of a T1"] == (100, 100)
    assert {"hosts", "T0-T1 flaps that meet an EV in use"} <= {what for what in found if what not in kept}


def test_three_tiers_become_two_pods() -> None:
    plan = LargePlan(Clos(2, 3, 128, 131_072), 131_072, 1.4, 512, 400, 10e-6)
    scenario = load_scenario_text(text_of(plan))
    assert scenario.shape().family == Clos3(pods=2, t0=2, t1=4, t2=16, hosts_per_t0=2)
    kept = {ratio.what: (ratio.plan, ratio.here) for ratio in ratios_of(SmallFabric(plan)) if ratio.kept}
    assert kept["tiers"] == (3, 3)
    assert kept["EVs of a QP, of its paths"] == (6.25, 6.25)


def test_three_quarters_of_a_fabric_are_six_of_eight_hosts() -> None:
    share = of_network(8, 320, 51_200, job=38_400)["hosts in the job, and so its share of a T1"]
    assert (share.kept, share.here) == (True, 75)
    assert not of_network(8, 320, 51_200, job=1000)["hosts in the job, and so its share of a T1"].kept


def test_rare_flaps_are_made_more_and_too_many_fewer() -> None:
    rare = of_network(8, 512, 131_072, flaps=0.001)["T0-T1 flaps in a step of the job"]
    assert (rare.here > rare.plan, rare.why) == (True, "a run of 51 steps would see too few")
    many = of_network(1, 64, 2000, flaps=50)["T0-T1 flaps in a step of the job"]
    assert (many.here < many.plan, many.why) == (True, "more than 10 % of these links would be down at once")


@pytest.mark.parametrize(
    ("gpus", "planes", "tiers", "says"),
    [
        ([131_072], [1], [], "four tiers planned, and 2 or 3 are made small: --tiers, with --planes that reach"),
        ([131_072], [8], [4], "four tiers planned"),
        ([100], [8], [], "one tier planned"),
        ([1000, 2000], [8], [2], "2 designs; ask for one"),
        ([10_000], [4, 8], [2], "2 designs; ask for one"),
    ],
)
def test_what_cannot_be_made_small_is_refused(gpus: list[int], planes: list[int], tiers: list[int], says: str) -> None:
    question = Question(gpus, 800, planes, ["51.2T"], [], tiers, "dsp", NicCable.OPTICS)
    with pytest.raises(UsageError, match=says):
        only_design(designs(question, load_parts()), planes)


@pytest.mark.parametrize("end", ["\n", "\x85", "\u2028", "\r"])
def test_names_of_files_do_not_end_a_comment(end: str) -> None:
    small = SmallFabric(LargePlan(Clos(8, 2, 512, 131_072), 131_072, 1.4, 128, 100, 10e-6))
    text = scenario_text(small, f"mrc-testbed plan --json x{end}seed: 7", f"y{end}seed: 8")
    assert load_scenario_text(text).seed == 1


def test_designs_that_stand_beside_the_one_asked_for_do_not_count() -> None:
    question = Question([131_072], 800, [8], ["51.2T"], [], [], "dsp", NicCable.OPTICS)
    made = designs(question, load_parts())
    assert len(made) == 3
    assert only_design(made, [8]).clos.planes == 8
