"""What arrived and was told by no SACK is asked about, and not waited for until the timer blames its path."""

import pytest

from tests.sim.incasts import incast

TROUBLED = (2, 23, 28, 48, 49)
"""Seeds with a timeout each, when a sender with a full window still waited as if it had more to send."""


@pytest.mark.parametrize("seed", TROUBLED)
def test_nobody_waits_for_a_timer_and_no_path_is_blamed(seed):
    found = incast(seed, busy_us=80, length_t=30)
    assert (found.timeouts, found.evs_retired) == (0, 0)
