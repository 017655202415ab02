"""A simulator's table of one slow uplink below each T0: what reproduces of it."""

from __future__ import annotations

import pytest

from benchmarks.slow_link import run


@pytest.mark.nightly
def test_the_tail_and_what_a_slow_link_adds_where_its_queue_is_as_long_in_time() -> None:
    """Published: 38.7 us, and x 1.08 of it."""
    whole, slow = (run(2, 1, "adaptive", is_slow, trim=0.25).tail_us for is_slow in (False, True))
    assert abs(whole / 38.7 - 1) < 0.1
    assert abs(slow / whole / 1.085 - 1) < 0.1
