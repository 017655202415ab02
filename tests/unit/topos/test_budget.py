"""The planner knows what a fabric costs, warns by code, and suggests figures that need no warning."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common.pacer import BURST_PACKETS
from mrc_testbed.hosts.loops import MIN_QUANTUM_NS, QUANTA_PER_RTT
from mrc_testbed.hosts.mrc import timing
from mrc_testbed.testbed.transports.registry import TRANSPORTS
from mrc_testbed.topos.budget import Capacity, Fit, budget, suggest, usual_capacity
from mrc_testbed.topos.cost import (
    CONGESTED,
    CROWD,
    LEAST_TURN_NS,
    PACKETS_PER_TURN,
    REST_CPUS,
    STANDARD_COST,
    SWITCH_S,
    TURNS_PER_RTT,
    Load,
    cpus,
    full_load,
    packet_s,
)
from mrc_testbed.topos.crowd import crowd_of
from mrc_testbed.topos.families.clos2 import Clos2, clos2_shape
from mrc_testbed.topos.fold import folded
from mrc_testbed.topos.in_flight import LEAST_SHARED_BDP
from mrc_testbed.topos.shape import LEAST_PLANE_PACKETS, MIN_RATE_BPS, Shape
from mrc_testbed.topos.units import rate_text, time_text

QUICKSTART = clos2_shape(4, 2, 4, 4, 12_500_000, 40_000_000)
COSTS = {one.word: one.cost for one in TRANSPORTS.values()}
TWO_CORES = usual_capacity(STANDARD_COST)


def codes(shape: Shape) -> list[str]:
    return [warning.code for warning in budget(shape, TWO_CORES).warnings]


def test_quickstart_fits() -> None:
    found = budget(QUICKSTART, TWO_CORES)
    assert (found.namespaces, found.links, found.routes) == (32, 64, 856)
    assert found.cpus == pytest.approx(cpus(QUICKSTART, Load(11_798, 8), STANDARD_COST), rel=1e-3)
    assert found.plane_bdp_packets == pytest.approx(14.75, abs=0.01)
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("planes", "hosts", "rate", "rtt"),
    [
        (4, 8, 12_500_000, 40_000_000),
        (4, 16, 4_530_000, 110_400_000),  # a packet among more hosts costs more
        (4, 32, 1_750_000, 285_800_000),
        (8, 8, 6_940_000, 72_100_000),  # more packets share a turn
        (4, 4, 25_100_000, 20_000_000),
        (1, 2, 100_000_000, 5_000_000),  # timers want no shorter rtt
    ],
)
def test_suggestions_keep_the_proportions(planes: int, hosts: int, rate: int, rtt: int) -> None:
    assert suggest(planes, hosts, TWO_CORES) == (rate, rtt)


@given(st.integers(1, 16), st.integers(1, 16), st.integers(2, 64))
def test_a_suggestion_needs_no_warning(planes: int, groups: int, hosts_per_t0: int) -> None:
    rate, rtt = suggest(planes, groups * hosts_per_t0, TWO_CORES)
    shape = clos2_shape(planes, groups, 4, hosts_per_t0, rate, rtt)
    if rate > MIN_RATE_BPS:  # else not even the slowest rate fits two cores
        assert codes(shape) == []


def test_too_many_packets_are_warned_of_with_what_fits() -> None:
    shape = replace(QUICKSTART, family=Clos2(4, 4, 4))
    (warning,) = budget(shape, TWO_CORES).warnings
    assert warning.code == "fabric-cpus"
    assert warning.text == (
        "all hosts at line rate take 2.75 CPUs (23,596 packets/s, 4,000 turns/s of endpoints) and does not fit: this "
        "machine carries 1.03 to 2.26 CPUs for mrc (two cores, not measured: `mrc-testbed calibrate`); port_rate "
        "4.53 Mb/s with rtt 110.4 ms fits"
    )


@given(st.integers(1, 16), st.integers(2, 64), st.floats(100, 10**7))
def test_a_suggestion_fits_the_capacity_it_was_made_for(planes: int, hosts: int, pps: float) -> None:
    rate, rtt = suggest(planes, hosts, Capacity(pps, "calibrated"))
    shape = clos2_shape(planes, 1, 0, hosts, rate, rtt)
    assert rate == MIN_RATE_BPS or budget(shape, Capacity(pps, "calibrated")).warnings == ()


def test_a_machine_that_was_measured_is_judged_by_its_own_budget() -> None:
    assert budget(replace(QUICKSTART, family=Clos2(4, 4, 4)), Capacity(50_000, "calibrated")).warnings == ()
    (warning,) = budget(QUICKSTART, Capacity(6_000, "calibrated")).warnings
    assert "does not fit: this machine carries 0.28 CPUs for mrc (calibrated); port_rate" in warning.text


@pytest.mark.parametrize("transport", COSTS)
def test_each_transport_has_a_budget_of_its_own(transport: str) -> None:
    capacity = usual_capacity(COSTS[transport])
    cost = COSTS[transport]
    rest = 8 * (TURNS_PER_RTT / 0.04 * cost.turn_s + REST_CPUS)
    most_pps = (capacity.cpus - rest) / cost.packet_s
    assert budget(QUICKSTART, capacity, load=Load(most_pps * 0.999, 8)).warnings == ()
    (warning,) = budget(QUICKSTART, capacity, load=Load(most_pps * 1.001, 8)).warnings
    assert f"may not fit: this machine carries {capacity.cpus:.2f} to " in warning.text
    assert f" CPUs for {transport} (two cores, not measured: " in warning.text
    assert ("--transport" in warning.text) == (cost != STANDARD_COST)


@given(st.integers(1, 16), st.integers(2, 64), st.floats(100, 10**6))
def test_a_folded_fabric_is_told_the_rate_to_write(planes: int, hosts: int, pps: float) -> None:
    capacity = Capacity(pps, "calibrated", COSTS["tcp"])
    written = clos2_shape(planes, 1, 0, hosts, 25_000_000, 20_000_000)
    rate, rtt = suggest(planes, hosts, capacity)
    told = [one.text for one in budget(folded(written), capacity, planes).warnings if one.code == "fabric-cpus"]
    slower = folded(replace(written, port_rate_bps=rate, rtt_ns=rtt))
    assert [f"port_rate {rate_text(rate)} with rtt {time_text(rtt)} fits" in text for text in told] == [
        cpus(slower, full_load(slower), COSTS["tcp"]) <= capacity.cpus for _ in told
    ]
    assert bool(told) == (cpus(folded(written), full_load(folded(written)), COSTS["tcp"]) > capacity.cpus)


def test_small_packets_are_suggested_for_as_what_they_cost() -> None:
    shape = replace(QUICKSTART, payload_bytes=1024)
    (warning,) = budget(shape, TWO_CORES).warnings
    assert "take 3.64 CPUs" in warning.text
    assert "; port_rate 3.45 Mb/s with rtt 145 ms fits" in warning.text
    slower = replace(shape, port_rate_bps=3_450_000, rtt_ns=145_000_000)
    standard = cpus(QUICKSTART, full_load(QUICKSTART), STANDARD_COST)
    assert 0.98 * standard < cpus(slower, full_load(slower), STANDARD_COST) <= standard


@given(st.integers(64, 4096), st.sampled_from(sorted(COSTS)))
def test_whatever_packets_hold_a_rate_that_fits_is_found(payload_bytes: int, transport: str) -> None:
    capacity = usual_capacity(COSTS[transport])
    shape = replace(QUICKSTART, payload_bytes=payload_bytes, port_rate_bps=50_000_000, rtt_ns=10_000_000)
    (warning,) = budget(shape, capacity).warnings
    assert warning.text.endswith(" fits")


def test_too_few_packets_in_flight_are_warned_of_with_the_rtt_that_gives_15() -> None:
    shape = replace(QUICKSTART, port_rate_bps=6_250_000)
    (warning,) = budget(shape, TWO_CORES).warnings
    assert warning.code == "plane-bdp"
    assert "holds 7.4 packets in one rtt, under 11: fair_share, balance and flow_goodput of flows" in warning.text
    assert "that compete are not judged, and queues are 1.9 times as long in rtts" in warning.text
    assert "rtt 81.4 ms would give 15" in warning.text
    assert replace(shape, rtt_ns=81_400_000).plane_bdp_packets >= 15


def test_between_what_is_promised_and_what_is_refused_nothing_is_sure() -> None:
    machine = replace(TWO_CORES, spread=1.5)
    shares = (0.99, 1.01, 1.49, 1.51)
    assert [str(machine.fit(machine.cpus * share)) for share in shares] == ["fits", *["may fit"] * 2, "does not fit"]
    assert replace(machine, spread=1.0).fit(machine.cpus * 1.01) is Fit.DOES_NOT_FIT


def test_a_fabric_beyond_the_slowest_rate_is_told_to_shrink() -> None:
    shape = clos2_shape(16, 256, 4, 256, 25_000_000, 20_000_000)
    assert "fewer hosts or planes would fit" in budget(shape, TWO_CORES).warnings[0].text


@given(st.integers(100_000, 10**9), st.integers(0, 10**9))
def test_warnings_come_exactly_at_the_limits(rate: int, rtt: int) -> None:
    shape = replace(QUICKSTART, port_rate_bps=rate, rtt_ns=rtt)
    takes = cpus(shape, full_load(shape), STANDARD_COST)
    assert ("fabric-cpus" in codes(shape)) == (takes > TWO_CORES.most_cpus)
    assert ("fabric-cpus-maybe" in codes(shape)) == (TWO_CORES.cpus < takes <= TWO_CORES.most_cpus)
    assert ("plane-bdp" in codes(shape)) == (shape.plane_bdp_packets < LEAST_SHARED_BDP)


def test_turns_are_reckoned_as_endpoints_take_them() -> None:
    """`topos` imports nothing of `hosts`, so what both know is compared here."""
    assert (TURNS_PER_RTT, LEAST_TURN_NS) == (QUANTA_PER_RTT, MIN_QUANTUM_NS)
    assert PACKETS_PER_TURN == (BURST_PACKETS - 1) / 2


def test_senders_and_switches_are_made_for_the_same_least_number_of_packets() -> None:
    assert LEAST_PLANE_PACKETS == timing.LEAST_PLANE_PACKETS


def test_each_doubling_of_the_hosts_at_work_makes_a_packet_dearer() -> None:
    among = [packet_s(Load(1, hosts), STANDARD_COST) / STANDARD_COST.packet_s for hosts in (2, 8, 16, 64)]
    assert among == pytest.approx([1, 1, 1 + CROWD, 1 + 3 * CROWD])


@given(st.integers(2, 256), st.floats(0, 1))
def test_hosts_that_pause_crowd_nobody_and_the_rest_do(hosts: int, share: float) -> None:
    busy, calm, few = (
        packet_s(Load(1, hosts, pausing=pausing), STANDARD_COST) for pausing in (0, share * hosts, hosts - 1)
    )
    assert few == STANDARD_COST.packet_s <= calm <= busy


def test_a_packet_over_one_switch_is_cheaper_than_one_over_three() -> None:
    near, usual, far = (packet_s(Load(1, 8, switches=switches), STANDARD_COST) for switches in (1, 3, 5))
    assert usual == STANDARD_COST.packet_s
    assert far - usual == pytest.approx(usual - near) == pytest.approx(2 * SWITCH_S)


def test_64_hosts_at_3_mbit_are_too_much_for_two_cores_that_carry_34_000_packets() -> None:
    """Four of four such runs were inconclusive; at half the rate they were believed, near what can be."""
    fast = Capacity(34_000, "calibrated")
    shape = clos2_shape(4, 8, 8, 8, 3_000_000, 167_000_000)
    assert cpus(shape, full_load(shape), fast.cost) > 1.1 * fast.cpus
    slower = replace(shape, port_rate_bps=1_500_000, rtt_ns=334_000_000)
    assert cpus(slower, full_load(slower), fast.cost) < 0.95 * fast.cpus


@given(st.integers(9, 256), st.floats(0, 2))
def test_what_many_hosts_carry_tells_what_a_packet_costs_among_them(hosts: int, crowd: float) -> None:
    shape = clos2_shape(2, 1, 0, hosts, 3_000_000, 160_000_000)
    edge = replace(STANDARD_COST, crowd=crowd)
    takes = cpus(shape, full_load(shape), edge)
    carries = 1_000.0
    while Capacity(carries, "calibrated").cpus < takes:
        carries *= 1.001
    found = crowd_of(shape, Capacity(carries, "calibrated"))
    assert cpus(shape, full_load(shape), replace(edge, crowd=found)) == pytest.approx(takes, rel=0.005)


def test_packets_that_wait_inside_the_network_cost_more() -> None:
    plain, waiting = (cpus(QUICKSTART, Load(8_000, 8, congested_pps), STANDARD_COST) for congested_pps in (0, 8_000))
    assert waiting - plain == pytest.approx(8_000 * STANDARD_COST.packet_s * (CONGESTED - 1))


def test_what_congestion_costs_is_told_and_suggested_for() -> None:
    shape = replace(QUICKSTART, family=Clos2(2, 4, 16))
    (warning,) = budget(shape, TWO_CORES, load=Load(20_000, 32, 20_000)).warnings
    assert "(20,000 packets/s, 20,000 of them congested, 8,000 turns/s of endpoints)" in warning.text
    rate, rtt = suggest(4, 32, TWO_CORES, 40_000 / (32 * 4 * shape.port_pps))
    assert f"port_rate {rate_text(rate)} with rtt {time_text(rtt)} fits" in warning.text
