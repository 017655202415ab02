"""The formulas of the benchmark against sums by hand."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.bench.formulas import RepeatSpread, bus_bandwidth, bus_factor, jain, mmr, rooflines, spread

PAYLOAD, HEADERS = 4096, 4238 - 4096
"""Of a full packet of MRC over SRv6: 4238 B with everything."""


@pytest.mark.parametrize(
    ("values", "index", "ratio"),
    [
        ([5, 5, 5, 5], 1, 1),
        ([1, 0, 0, 0], 0.25, 4),
        ([1, 2, 3], 36 / 42, 1.5),  # (1 + 2 + 3)² = 36 over 3 x (1 + 4 + 9) = 42
        ([7], 1, 1),
    ],
)
def test_balance(values: list[float], index: float, ratio: float) -> None:
    assert jain(values) == pytest.approx(index)
    assert mmr(values) == pytest.approx(ratio)


@pytest.mark.parametrize("values", [[], [0, 0], [1, -1]])
def test_balance_of_nothing_is_not_defined(values: list[float]) -> None:
    for formula in (jain, mmr):
        with pytest.raises(ValueError, match="shares must be"):
            formula(values)


@pytest.mark.parametrize(
    ("collective", "factor"),
    [("allreduce", 1.75), ("all-gather", 0.875), ("reduce-scatter", 0.875), ("all-to-all", 0.875)],
)
def test_bus_bandwidth_of_eight_ranks(collective: str, factor: float) -> None:
    assert bus_factor(collective, 8) == factor
    assert bus_bandwidth(collective, 8, 4e9, 0.5) == 8e9 * factor


def test_one_rank_needs_no_bus() -> None:
    assert bus_bandwidth("allreduce", 1, 1e6, 1) == 0


def test_bus_bandwidth_says_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="no bus bandwidth of 'broadcast'; known: allreduce"):
        bus_factor("broadcast", 2)
    with pytest.raises(ValueError, match="ranks is 0"):
        bus_factor("allreduce", 0)
    with pytest.raises(ValueError, match="seconds is 0"):
        bus_bandwidth("allreduce", 2, 1, 0)


def test_headers_alone_are_three_and_a_half_percent() -> None:
    """Without computation and latency an ideal network takes 1.035 of the draft's roofline."""
    bounds = rooflines(0, 256e6, 1024, 400e9, PAYLOAD, HEADERS, 0)
    assert bounds.payload / bounds.raw == pytest.approx(4238 / 4096)
    assert bounds.payload / bounds.raw == pytest.approx(1.035, abs=5e-4)
    assert bounds.latency == bounds.payload


def test_latency_alone_can_be_a_quarter() -> None:
    """1024 ranks, 256 MB, 400 Gb/s, 5 µs: 10.2 ms on the wire and 2046 halves of a round trip, beside 10 ms."""
    bounds = rooflines(10e-3, 256e6, 1024, 400e9, PAYLOAD, 0, 5e-6)
    assert bounds.raw == pytest.approx(10e-3 + 2 * 1023 / 1024 * 256e6 * 8 / 400e9)
    assert bounds.raw == pytest.approx(20.23e-3, rel=1e-3)
    assert bounds.latency - bounds.payload == pytest.approx(2046 * 2.5e-6)
    assert bounds.latency / bounds.raw == pytest.approx(1.25, abs=5e-3)


def test_rooflines_need_a_rate() -> None:
    with pytest.raises(ValueError, match="line_rate_bps and mtu_bytes"):
        rooflines(0, 1, 2, 0, PAYLOAD, HEADERS, 0)


def test_spread_by_hand() -> None:
    """Of 1 to 5 the mean is 3, the sample deviation the root of 2.5."""
    assert spread([5, 1, 3, 2, 4]) == RepeatSpread(5, 3, 3, 5, 5, (2.5**0.5) / 3)
    assert spread(range(1, 101)).p95 == 95


def test_a_spread_of_one_value_has_no_deviation() -> None:
    assert spread([2.0]) == RepeatSpread(1, 2, 2, 2, 2, None)
    assert spread([-1, 1]).cv is None
    with pytest.raises(ValueError, match="no values"):
        spread([])
