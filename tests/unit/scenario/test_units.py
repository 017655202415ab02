from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.scenario.text.units import (
    DURATION,
    RATE,
    SHARE,
    SIZE,
    Quantity,
    UnitError,
    format_duration,
    format_rate,
    format_size,
)

AMOUNTS = st.integers(min_value=0, max_value=10**15)


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        (DURATION, "100ms", 100_000_000),
        (DURATION, "6s", 6_000_000_000),
        (DURATION, "20us", 20_000),
        (DURATION, "2min", 120_000_000_000),
        (DURATION, "1.5 s", 1_500_000_000),
        (DURATION, "0s", 0),
        (DURATION, "-0s", 0),
        (DURATION, "7ns", 7),
        (RATE, "25mbit", 25_000_000),
        (RATE, "12.5mbit", 12_500_000),
        (RATE, "1gbit", 1_000_000_000),
        (SIZE, "4MiB", 4 << 20),
        (SIZE, "512KiB", 512 << 10),
        (SIZE, "4MB", 4_000_000),
        (SIZE, "100B", 100),
    ],
)
def test_quantities_as_people_write_them(quantity: Quantity, text: str, value: int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("quantity", "value", "says"),
    [
        (DURATION, 6, "6 has no unit; write a duration, such as 6s"),
        (DURATION, 1.5, "1.5 has no unit"),
        (DURATION, "6", "6 has no unit"),
        (DURATION, "six seconds", "'six seconds' is not a duration"),
        (DURATION, "6sec", "unknown unit 'sec'; use one of ns us ms s min h"),
        (DURATION, "6S", "did you mean 's'"),
        (DURATION, "-6s", "is negative"),
        (DURATION, "1.5ns", "too fine"),
        (DURATION, "99999999999h", "too large"),
        (DURATION, None, "must be a duration, such as 6s"),
        (DURATION, True, "must be a duration"),
        (DURATION, ["6s"], "must be a duration"),
        (RATE, "25mbps", "unknown unit 'mbps'; use one of bit kbit mbit gbit"),
        (RATE, "25Mbit", "did you mean 'mbit'"),
        (SIZE, "4mib", "did you mean 'MiB'"),
        (SIZE, "0.3B", "smallest is 1B"),
        (SHARE, "0.00001%", "smallest is 0.0001%"),
        (DURATION, "\u0663s", "is not a duration"),
    ],
)
def test_a_wrong_quantity_gets_an_example(quantity: Quantity, value: object, says: str) -> None:
    with pytest.raises(UnitError) as caught:
        quantity.parse(value)
    assert says in str(caught.value)


@given(AMOUNTS)
def test_durations_round_trip(value: int) -> None:
    assert DURATION.parse(format_duration(value)) == value


@given(AMOUNTS)
def test_rates_round_trip(value: int) -> None:
    assert RATE.parse(format_rate(value)) == value


@given(AMOUNTS)
def test_sizes_round_trip(value: int) -> None:
    assert SIZE.parse(format_size(value)) == value


@given(st.text() | st.floats() | st.integers() | st.none() | st.lists(st.integers()))
def test_parsing_raises_nothing_but_unit_errors(value: object) -> None:
    for quantity in (DURATION, RATE, SIZE):
        with suppress(UnitError):
            assert quantity.parse(value) >= 0


@pytest.mark.parametrize(
    ("value", "text"), [(1_500_000_000, "1.5s"), (20_000_000, "20ms"), (1, "1ns"), (0, "0ns"), (60 * 10**9, "60s")]
)
def test_durations_are_short_to_read(value: int, text: str) -> None:
    assert format_duration(value) == text


def test_rates_and_sizes_are_short_to_read() -> None:
    assert format_rate(12_500_000) == "12.5mbit"
    assert format_size(4 << 20) == "4MiB"
    assert format_size(1000) == "1000B"
