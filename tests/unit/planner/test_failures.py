"""The planner gives the failures that fleets have published, and says where its formulas end."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.failures import PlannedJob, listed_failures
from mrc_testbed.testbed.planner.arithmetic.numbers import Provenance
from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
from mrc_testbed.testbed.planner.arithmetic.recoveries import listed_recoveries
from mrc_testbed.testbed.planner.arithmetic.reliability import DAY_S, LEAST_GPUS, MONTH_S, FailureCase, Inputs

PARTS = load_parts()
FAILURES = listed_failures(PARTS.failures)
MRC, MRC_TIMEOUT, BFD, BGP_CARRIER, BGP_HOLD = listed_recoveries(PARTS.recovery, PARTS.failures["rtt"])
EIGHT = Clos(planes=8, tiers=2, ports=512, nics=131_072)
ONE = Clos(planes=1, tiers=4, ports=64, nics=131_072)
NOTHING = Inputs(**{**dict.fromkeys(Inputs.__slots__, 0.0), "checkpoint": 10.0})
LISTED = Inputs(**{name: number.value for name, number in FAILURES.numbers.items()})


def case(clos: Clos = EIGHT, gpus: int = 131_072, base: Inputs = NOTHING, **inputs: Any) -> FailureCase:
    """A job with nothing but `inputs`, or with them over `base`."""
    return FailureCase(clos, gpus, replace(base, **inputs), flaps_gpus=131_072)


def in_1000_gpu_days(failures: float, days: float, gpus: int) -> float:
    return failures / days / gpus * 1000


LLAMA = in_1000_gpu_days(419, 54, 16_384)
LLAMA_NETWORK = in_1000_gpu_days(35, 54, 16_384)
LLAMA_NETWORK_AND_NIC = in_1000_gpu_days(42, 54, 16_384)
META_RSC = 6.50 / 8


def test_llama_was_interrupted_every_three_hours() -> None:
    assert case(gpus=16_384, other=LLAMA).mtti / 3600 == pytest.approx(3.09, abs=0.005)
    assert case(other=LLAMA).mtti / 60 == pytest.approx(23.2, abs=0.05)


@pytest.mark.parametrize(
    ("rate", "small_h", "big_h"), [(LLAMA_NETWORK, 37.0, 4.63), (LLAMA_NETWORK_AND_NIC, 30.9, 3.86)]
)
def test_llamas_network_alone(rate: float, small_h: float, big_h: float) -> None:
    assert case(gpus=16_384, other=rate).mtti / 3600 == pytest.approx(small_h, abs=0.05)
    assert case(other=rate).mtti / 3600 == pytest.approx(big_h, abs=0.005)


@pytest.mark.parametrize(("gpus", "hours"), [(16_384, 1.80), (131_072, 0.225)])
def test_meta_rsc_agrees_where_it_projects(gpus: int, hours: float) -> None:
    assert case(gpus=gpus, other=META_RSC).mtti / 3600 == pytest.approx(hours, rel=0.05)


def test_meta_rsc_does_not_agree_at_1024_gpus_and_the_planner_says_so() -> None:
    """7.9 h were measured; should this ever agree, the warning is wrong."""
    small = case(gpus=1024, other=META_RSC)
    assert small.mtti / 3600 == pytest.approx(28.8, abs=0.1)
    assert small.mtti / 3600 > 3 * 7.9
    assert any("below 4,096" in doubt for doubt in small.doubts())
    assert not list(case(gpus=LEAST_GPUS, other=META_RSC).doubts())


def test_hpn_saw_one_or_two_crashes_a_month_in_jobs_of_3000() -> None:
    job = case(Clos(1, 3, 64, 3000), 3000, LISTED, other=0.0)
    assert 1 <= job.network_restarts * MONTH_S <= 2


def test_hpns_rate_gives_half_of_what_llama_counted() -> None:
    """The range of the parts list reaches from one to the other."""
    job = PlannedJob(Clos(1, 3, 64, 16_384), 16_384, FAILURES)
    low, high = (end.network_restarts * 54 * DAY_S for end in with_all_alone(job))
    assert low == pytest.approx(17.3, abs=0.1)
    assert high == pytest.approx(35.5, abs=0.2)


def with_all_alone(job: PlannedJob) -> tuple[FailureCase, FailureCase]:
    best, worst = job.ends
    return replace(best, inputs=replace(best.inputs, alone=1.0)), worst


def test_links_of_five_years_and_100000_of_them_first_fail_after_26_minutes() -> None:
    percent_a_month = 100 * MONTH_S / (5 * 365 * DAY_S)
    job = case(Clos(1, 3, 128, 100_000), 100_000, nic_link=percent_a_month, alone=1.0)
    assert job.mtti / 60 == pytest.approx(26.28, abs=0.005)


@pytest.mark.parametrize(
    ("flaps", "percent"),
    [
        (1, (0.00013, 0.0017, 0.25, 1.7, 15)),
        (5, (0.0007, 0.008, 1.25, 8.3, 75)),
        (14, (0.0019, 0.023, 3.5, 23, 210)),
        (60, (0.008, 0.1, 15, 100, 900)),
    ],
)
def test_flaps_cost_a_stall_each(flaps: float, percent: tuple[float, ...]) -> None:
    flapping = case(flaps=flaps)
    for recovery, expected in zip((MRC, MRC_TIMEOUT, BFD, BGP_CARRIER, BGP_HOLD), percent, strict=True):
        assert 100 * flapping.flap_loss(recovery.stall.value) == pytest.approx(expected, rel=0.05)


def test_stalls_longer_than_the_time_between_them_leave_nothing() -> None:
    assert case(flaps=14).effective(BGP_HOLD.stall.value) == 0
    assert case(flaps=60).effective(BGP_CARRIER.stall.value) == 0


def test_a_job_below_one_t0_sees_no_flaps() -> None:
    assert case(gpus=256, flaps=14).flaps == 0
    assert case(gpus=257, flaps=14).flaps > 0


PORTS: dict[str, Any] = {"nic_link": 0.057, "alone": 1.0, "exposed": 1.0}


def test_eight_planes_fail_eight_times_as_often_and_end_no_job() -> None:
    eight, one = case(**PORTS), case(ONE, **PORTS)
    assert eight.link_failures * 3600 == pytest.approx(0.83, abs=0.005)
    assert one.link_failures * 3600 == pytest.approx(0.104, abs=0.0005)
    assert (eight.network_restarts, one.ports) == (0, 0)
    assert one.mtti / 3600 == pytest.approx(9.6, abs=0.05)


@pytest.mark.parametrize(("repair_s", "down", "loss"), [(1800, 34.0, 4.25), (60, 1.37, 0.172)])
def test_lost_ports_cost_an_eighth_of_communication_while_they_are_down(
    repair_s: float, down: float, loss: float
) -> None:
    """All of a step exposed, so that the loss is one of communication. The design note says 4.3 %: 34.0 / 8 is 4.25."""
    ports = case(repair=repair_s, **PORTS)
    assert 100 * ports.port_down == pytest.approx(down, rel=0.005)
    assert 100 * ports.slowdown == 12.5
    assert 100 * ports.port_loss == pytest.approx(loss, rel=0.005)


def first_order(found: FailureCase) -> float:
    """Young's loss, each failure counted with a whole restart also where it comes during one."""
    tau = sqrt(2 * found.inputs.checkpoint * found.mtti)
    return 1 - found.inputs.checkpoint / tau - (tau / 2 + found.inputs.restart) / found.mtti


@pytest.mark.parametrize(
    ("restart_min", "all_causes", "without_network", "first_all", "first_without"),
    [(2, 0.812, 0.824, 0.79, 0.81), (5, 0.713, 0.733, 0.665, 0.69), (10, 0.575, 0.604, 0.45, 0.50)],
)
def test_restarts_of_131072_gpus(
    restart_min: float, all_causes: float, without_network: float, first_all: float, first_without: float
) -> None:
    """The network with its NICs is 1.2 to 2.9 points of the machine; by the first order it would be 1.5 to 5.
    (The design note has 0.67 where its own formula gives 0.665.)"""
    inputs: dict[str, Any] = {"checkpoint": 10.0, "restart": restart_min * 60}
    all_of_it, rest = case(other=LLAMA, **inputs), case(other=LLAMA - LLAMA_NETWORK_AND_NIC, **inputs)
    assert (all_of_it.running, rest.running) == pytest.approx((all_causes, without_network), abs=0.0006)
    assert (first_order(all_of_it), first_order(rest)) == pytest.approx((first_all, first_without), abs=0.006)


@given(st.floats(0.001, 1), st.floats(1, 60), st.floats(0, 600))
def test_the_formula_is_the_first_order_where_failures_are_rare(
    other: float, checkpoint: float, restart: float
) -> None:
    """They part by the square of what a failure costs in times between failures."""
    rare = case(gpus=4096, other=other / 10, checkpoint=checkpoint, restart=restart)
    cost = (rare.interval + checkpoint + restart) / rare.mtti
    assert abs(rare.running - first_order(rare)) <= cost**2


def test_llama_trained_more_than_90_percent_of_the_time() -> None:
    assert case(Clos(1, 3, 64, 16_384), 16_384, LISTED, other=LLAMA).running > 0.9


@given(st.integers(64, 1000), st.sampled_from([1, 8]), st.floats(0.01, 10))
def test_twice_the_size_is_half_the_time_between_failures(size: int, planes: int, other: float) -> None:
    """Of whole T0s; T0s and links grow with the job as GPUs do."""
    gpus = 256 * size
    clos = Clos(planes, 3, 512, 1_000_000)
    one, two = (case(clos, each, LISTED, other=other) for each in (gpus, 2 * gpus))
    assert one.mtti == pytest.approx(2 * two.mtti)
    assert two.link_failures == pytest.approx(2 * one.link_failures)
    assert two.flaps == pytest.approx(2 * one.flaps)


INPUTS = {
    **{"nic_link": st.floats(0, 1), "nic_transceiver": st.floats(0, 1), "t0": st.floats(0, 5), "t1": st.floats(0, 5)},
    **{"alone": st.floats(0, 1), "flaps": st.floats(0, 60), "other": st.floats(0, 5), "exposed": st.floats(0, 1)},
    **{"checkpoint": st.floats(0.001, 300), "restart": st.floats(0, 3600), "repair": st.floats(0, 86_400)},
}
SOME = st.builds(Inputs, **INPUTS)


@given(SOME, st.sampled_from(Inputs.__slots__), st.floats(1, 3), st.sampled_from([ONE, EIGHT]), st.floats(0, 10))
def test_nothing_that_grows_makes_it_better(inputs: Inputs, name: str, more: float, clos: Clos, stall: float) -> None:
    """So the ends of a range are all best and all worst ends."""
    worse = min(getattr(inputs, name) * more, 1.0 if name in {"alone", "exposed"} else 1e9)
    before = FailureCase(clos, 131_072, inputs, 131_072)
    after = FailureCase(clos, 131_072, replace(inputs, **{name: worse}), 131_072)
    assert after.effective(stall) <= before.effective(stall) * (1 + 1e-9)
    assert 0 <= before.effective(stall) <= 1


def test_more_planes_fail_more_often_and_hurt_less() -> None:
    """And the product is nearly the same: a port that waits half an hour for hands costs what a restart does."""
    eight, one = case(EIGHT, base=LISTED, other=0.0), case(ONE, base=LISTED, other=0.0)
    assert eight.link_failures == 8 * one.link_failures
    assert eight.network_restarts < one.network_restarts / 10
    assert (100 * eight.port_loss, 100 * (1 - one.running)) == pytest.approx((0.95, 3.3), abs=0.05)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"other": LLAMA, "checkpoint": 900.0}, "a checkpoint takes more than half of the 23.2 min"),
        ({"other": LLAMA, "restart": 1500.0}, "a restart takes longer than the 23.2 min"),
    ],
)
def test_where_the_model_ends_it_says_so(inputs: dict[str, Any], said: str) -> None:
    far = case(**inputs)
    assert [doubt for doubt in far.doubts() if said in doubt]
    assert far.interval <= far.mtti
    assert 0 <= far.effective(0) <= 1


@pytest.mark.parametrize("clos", [EIGHT, ONE, Clos(8, 1, 512, 512)])
def test_every_number_rests_on_numbers_with_sources_and_ranges_where_assumed(clos: Clos) -> None:
    job = PlannedJob(clos, clos.nics, FAILURES)
    stated = {**FAILURES.numbers, MRC.name: MRC.stall}
    for number in filter(None, [*job.numbers().values(), job.flap_loss(MRC), job.effective(MRC)]):
        assert number.low <= number.value <= number.high
        for name in number.rests_on:
            assert stated[name].source
            assert stated[name].mark is not Provenance.ASSUMED or stated[name].is_range


@given(st.sampled_from(Inputs.__slots__), st.sampled_from([EIGHT, ONE, Clos(8, 1, 512, 512)]))
def test_a_number_rests_on_what_it_says_and_on_nothing_else(name: str, clos: Clos) -> None:
    before = PlannedJob(clos, clos.nics, FAILURES)
    grown = replace(FAILURES.numbers[name], value=FAILURES.numbers[name].high * 0.9)
    after = PlannedJob(clos, clos.nics, replace(FAILURES, numbers={**FAILURES.numbers, name: grown}))
    for key, number in before.numbers().items():
        other = after.numbers()[key]
        if number and other and number.value != other.value:
            assert name in number.rests_on
    if before.effective(BFD).value != after.effective(BFD).value:
        assert name in before.effective(BFD).rests_on


@pytest.mark.parametrize("clos", [EIGHT, ONE])
def test_no_network_is_better_than_one_that_never_fails(clos: Clos) -> None:
    job = case(clos, base=LISTED)
    spared = replace(job.inputs, **dict.fromkeys(("nic_link", "nic_transceiver", "t0", "t1", "flaps"), 0.0))
    assert job.effective(MRC.stall.value) < job.spared == replace(job, inputs=spared).effective(0)


def test_links_that_fail_four_together_fail_a_quarter_as_often() -> None:
    apart, together = (case(nic_link=0.057, alone=alone) for alone in (1.0, 0.25))
    assert together.ports == pytest.approx(apart.ports / 4)
    assert together.link_failures == apart.link_failures


def test_a_t0_counts_once_with_all_below_it() -> None:
    assert case(t0=0.051).ports * MONTH_S == pytest.approx(4096 * 0.00051)
    assert case(ONE, t0=0.051).network_restarts * MONTH_S == pytest.approx(4096 * 0.00051)


def test_ports_t0s_and_t1s_that_fail_stall_the_job_too() -> None:
    stalls = case(nic_link=0.057, alone=1.0, t0=0.051, t1=0.051).stalls
    assert stalls * MONTH_S == pytest.approx(131_072 * 8 * 0.00057 + (4096 + 2048) * 0.00051)


def test_the_range_of_a_stall_is_in_what_rests_on_it() -> None:
    certain = {name: replace(number, low=number.value, high=number.value) for name, number in FAILURES.numbers.items()}
    job = PlannedJob(EIGHT, 131_072, replace(FAILURES, numbers=certain))
    slow, fast = BGP_CARRIER.stall.high, BGP_CARRIER.stall.low
    loss, kept = job.flap_loss(BGP_CARRIER), job.effective(BGP_CARRIER)
    assert (loss.low, loss.high) == (100 * job.case.flap_loss(fast), 100 * job.case.flap_loss(slow))
    assert (kept.low, kept.high) == (100 * job.case.effective(slow), 100 * job.case.effective(fast))


BGP_HOLD = next(each for each in listed_recoveries(PARTS.recovery, PARTS.failures["rtt"]) if "hold" in each.name)


def test_an_outage_that_outlasts_the_retries_of_nics_ends_the_job() -> None:
    """As in the emulator, whose RoCE gives up (7 + 1) x 1.07 s after a path went silent: BGP's 9 s are longer."""
    job = case(EIGHT, base=LISTED, flaps=0.01)
    retries = PARTS.recovery["nic_retries"].value
    assert retries == pytest.approx(8 * 4.096e-6 * 2**18, abs=0.005)
    assert BGP_HOLD.ends_job
    assert not any(each.ends_job or each.may_end_job for each in (BGP_CARRIER, BFD, MRC))
    ended = replace(job.inputs, flaps=0.0, nic_link=0.0, t0=0.0, t1=0.0)
    others = replace(job, inputs=ended)
    assert job.effective(9.0, retries) < job.effective(9.0) < others.running
    assert job.effective(8.0, retries) == job.effective(8.0)
    per_end = (others.running - job.effective(9.0, retries)) / others.running / job.stalls
    assert per_end > job.inputs.restart + retries
    assert job.flap_loss(9.0, retries) > job.flaps * (job.inputs.restart + retries)
    assert case(EIGHT, base=LISTED).flap_loss(9.0, retries) == pytest.approx(1)


def test_numbers_of_a_job_that_outages_end_rest_on_the_retries() -> None:
    job = PlannedJob(EIGHT, 131_072, FAILURES)
    for number in (job.flap_loss(BGP_HOLD), job.effective(BGP_HOLD)):
        assert "nic_retries" in number.rests_on
        assert number.low <= number.value <= number.high
    assert "nic_retries" not in job.effective(BGP_CARRIER).rests_on
    assert job.effective(BGP_HOLD).value < 1e-9
