"""The planner knows what a fabric costs, warns by code, and suggests figures that need no warning."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topos.budget import MIN_PLANE_BDP, MRC, USUAL_PPS, Capacity, budget, suggest, usual_capacity
from topos.fold import folded
from topos.shape import MIN_RATE_BPS, Shape
from topos.units import rate_text, time_text

QUICKSTART = Shape(4, 2, 4, 4, 12_500_000, 40_000_000)
TWO_CORES = usual_capacity(MRC)


def codes(shape: Shape) -> list[str]:
    return [warning.code for warning in budget(shape, TWO_CORES).warnings]


def test_quickstart_fits() -> None:
    found = budget(QUICKSTART, TWO_CORES)
    assert (found.namespaces, found.links, found.routes) == (32, 64, 856)
    assert found.fabric_pps == pytest.approx(11_798, abs=1)
    assert found.plane_bdp_packets == pytest.approx(14.75, abs=0.01)
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("planes", "hosts", "rate", "rtt"),
    [
        (4, 8, 12_500_000, 40_000_000),
        (4, 16, 6_250_000, 80_000_000),
        (4, 32, 3_120_000, 160_300_000),
        (8, 8, 6_250_000, 80_000_000),
        (4, 4, 25_000_000, 20_000_000),
        (1, 2, 100_000_000, 5_000_000),  # timers want no shorter rtt
    ],
)
def test_suggestions_keep_the_proportions(planes: int, hosts: int, rate: int, rtt: int) -> None:
    assert suggest(planes, hosts, TWO_CORES) == (rate, rtt)


@given(st.integers(1, 16), st.integers(1, 16), st.integers(2, 64))
def test_a_suggestion_needs_no_warning(planes: int, groups: int, hosts_per_t0: int) -> None:
    rate, rtt = suggest(planes, groups * hosts_per_t0, TWO_CORES)
    shape = Shape(planes, groups, 4, hosts_per_t0, rate, rtt)
    if shape.hosts * planes < 5_700:  # beyond, not even the slowest rate fits two cores
        assert codes(shape) == []


def test_too_many_packets_are_warned_of_with_what_fits() -> None:
    shape = replace(QUICKSTART, t0_groups=4)
    (warning,) = budget(shape, TWO_CORES).warnings
    assert warning.code == "fabric-pps"
    assert "23,596 packets/s" in warning.text
    assert (
        "machine's packet budget for mrc of 17,000 (two cores, not measured: `mrc-testbed calibrate`)" in warning.text
    )
    assert "port_rate 6.25 Mb/s with rtt 80 ms fits" in warning.text


@given(st.integers(1, 16), st.integers(2, 64), st.floats(100, 10**7))
def test_a_suggestion_fits_the_capacity_it_was_made_for(planes: int, hosts: int, pps: float) -> None:
    rate, rtt = suggest(planes, hosts, Capacity(pps, "calibrated"))
    shape = Shape(planes, 1, 0, hosts, rate, rtt)
    assert rate == MIN_RATE_BPS or budget(shape, Capacity(pps, "calibrated")).warnings == ()


def test_a_machine_that_was_measured_is_judged_by_its_own_budget() -> None:
    assert budget(replace(QUICKSTART, t0_groups=4), Capacity(50_000, "calibrated")).warnings == ()
    (warning,) = budget(QUICKSTART, Capacity(6_000, "calibrated")).warnings
    assert "budget for mrc of 6,000 (calibrated); port_rate 4.41 Mb/s with rtt 113.4 ms fits" in warning.text


@pytest.mark.parametrize("transport", USUAL_PPS)
def test_each_transport_has_a_budget_of_its_own(transport: str) -> None:
    capacity = usual_capacity(transport)
    just = replace(QUICKSTART, port_rate_bps=int(QUICKSTART.port_rate_bps * capacity.pps / QUICKSTART.fabric_pps))
    assert budget(just, capacity).warnings == ()
    (warning,) = budget(replace(just, port_rate_bps=just.port_rate_bps + 1_000_000), capacity).warnings
    assert f"budget for {transport} of {capacity.pps:,.0f} (two cores, not measured: " in warning.text
    assert ("--transport" in warning.text) == (transport != MRC)


@given(st.integers(1, 16), st.integers(2, 64), st.floats(100, 10**6))
def test_a_folded_fabric_is_told_the_rate_to_write(planes: int, hosts: int, pps: float) -> None:
    capacity = Capacity(pps, "calibrated", "tcp")
    written = Shape(planes, 1, 0, hosts, 25_000_000, 20_000_000)
    rate, rtt = suggest(planes, hosts, capacity)
    told = [one.text for one in budget(folded(written), capacity, planes).warnings if one.code == "fabric-pps"]
    assert [f"port_rate {rate_text(rate)} with rtt {time_text(rtt)} fits" in text for text in told] == [
        folded(replace(written, port_rate_bps=rate)).fabric_pps <= pps for _ in told
    ]
    assert bool(told) == (written.fabric_pps > pps)


def test_too_few_packets_in_flight_are_warned_of_with_the_rtt_that_gives_15() -> None:
    shape = replace(QUICKSTART, rtt_ns=20_000_000)
    (warning,) = budget(shape, TWO_CORES).warnings
    assert warning.code == "plane-bdp"
    assert "holds 7.4 packets" in warning.text
    assert "rtt 40.7 ms would give 15" in warning.text
    assert replace(shape, rtt_ns=40_700_000).plane_bdp_packets >= 15


def test_a_fabric_beyond_the_slowest_rate_is_told_to_shrink() -> None:
    shape = Shape(16, 256, 4, 256, 25_000_000, 20_000_000)
    assert "fewer hosts or planes would fit" in budget(shape, TWO_CORES).warnings[0].text


@given(st.integers(100_000, 10**9), st.integers(0, 10**9))
def test_warnings_come_exactly_at_the_limits(rate: int, rtt: int) -> None:
    shape = replace(QUICKSTART, port_rate_bps=rate, rtt_ns=rtt)
    assert ("fabric-pps" in codes(shape)) == (shape.fabric_pps > USUAL_PPS[MRC])
    assert ("plane-bdp" in codes(shape)) == (shape.plane_bdp_packets < MIN_PLANE_BDP)
