"""Times and frequencies as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.planner.arithmetic.quantities import a_minute, duration_s, duration_words, rate_gbps


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10us", 1e-5), ("1.5 min", 90), ("250ms", 0.25), ("2h", 7200), ("54days", 54 * 86_400), ("1 day", 86_400)],
)
def test_times(text: str, seconds: float) -> None:
    assert duration_s(text, "--repair") == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "flaps"), [("14/min", 14), ("840/h", 14), ("20k/day", 13.89), ("0/s", 0), ("2 /s", 120)]
)
def test_frequencies(text: str, flaps: float) -> None:
    assert a_minute(text, "--flaps") == pytest.approx(flaps, rel=1e-3)


@given(st.floats(1e-6, 1e7))
def test_words_for_a_time_are_read_back(seconds: float) -> None:
    words = duration_words(seconds)
    assert "e" not in words
    assert duration_s(words, "") == pytest.approx(seconds, rel=0.006)


def test_rates() -> None:
    assert [rate_gbps(text, "--nic") for text in ("800G", "51.2T", "1 gbit")] == [800, 51_200, 1]


@pytest.mark.parametrize("text", ["0G", "1.5G", "9" * 400 + "T", "fast"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--nic .*: not a rate"):
        rate_gbps(text, "--nic")
