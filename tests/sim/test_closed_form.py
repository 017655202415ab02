"""What the timer costs when it alone finds lost retransmissions: P1's Fig. 16 at 1 %."""

from statistics import fmean

import pytest

from tests.sim import simnet
from tests.sim.closed_form import expected, kept

LENGTH_T = 2000
"""Some 9 to 14 waits for the timer a run: one run alone may keep half as much as another."""

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def long_runs(monkeypatch):
    monkeypatch.setattr(simnet, "MAX_STEPS", 100_000_000)


@pytest.mark.nightly
def test_a_flow_that_infers_lost_retransmissions_hardly_feels_one_percent():
    assert kept(0.01, LENGTH_T) > 0.95


@pytest.mark.parametrize("timeout", [20, 22])
@pytest.mark.nightly
def test_where_only_the_timer_finds_them_the_closed_form_holds(timeout):
    """54 and 215 T."""
    shares = [kept(0.01, LENGTH_T, seed, reinfer=False, timeout=timeout) for seed in (1, 2, 3, 4)]
    assert fmean(shares) == pytest.approx(expected(0.01, timeout), abs=0.15)
