"""Arrival times of packets, whatever the wall clock does meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.stamps import LOOK_NS, ArrivalClock

MS = 1_000_000
DELAY_NS = 20 * MS
START_NS = 5_000_000_000
WALL_NS = 1_700_000_000_000_000_000


class Clocks:
    """A wall clock that is stepped; CLOCK_MONOTONIC is told with each packet."""

    def __init__(self) -> None:
        self.wall_ahead_ns = WALL_NS
        self.looks = 0
        self.arrivals = ArrivalClock(DELAY_NS, self._apart)

    def _apart(self) -> int:
        self.looks += 1
        return -self.wall_ahead_ns

    def read(self, stamped_ns: int, now_ns: int, ahead_ns: int | None = None) -> int:
        """Due time of a packet that the kernel stamped at `stamped_ns`, when it is read at `now_ns`."""
        return self.arrivals.due_ns(stamped_ns + (self.wall_ahead_ns if ahead_ns is None else ahead_ns), now_ns)


def test_a_packet_arrives_a_delay_after_its_stamp() -> None:
    clocks = Clocks()
    assert clocks.read(START_NS, START_NS + 3 * MS) == START_NS + DELAY_NS
    assert clocks.read(START_NS + 7 * MS, START_NS + 9 * MS) == START_NS + 7 * MS + DELAY_NS
    assert clocks.looks == 1


def test_a_stamp_ahead_of_the_clock_stays_so() -> None:
    clocks = Clocks()
    assert clocks.read(START_NS + 5 * MS, START_NS) == START_NS + 5 * MS + DELAY_NS


def test_a_slewed_clock_is_followed() -> None:
    clocks = Clocks()
    clocks.read(START_NS, START_NS)
    clocks.wall_ahead_ns += MS // 2
    later_ns = START_NS + LOOK_NS
    assert clocks.read(later_ns, later_ns) == later_ns + DELAY_NS


@pytest.mark.parametrize("step_ns", [300 * MS, -300 * MS, 3600_000 * MS, -3600_000 * MS, 50 * MS, -50 * MS])
def test_after_a_step_packets_are_as_late_as_before(step_ns: int) -> None:
    clocks = Clocks()
    clocks.read(START_NS, START_NS)
    clocks.wall_ahead_ns += step_ns
    for at_ns in range(START_NS + MS, START_NS + 2 * LOOK_NS, 7 * MS):
        assert clocks.read(at_ns, at_ns + MS) == at_ns + DELAY_NS


@pytest.mark.parametrize("step_ns", [300 * MS, -300 * MS])
def test_packets_stamped_before_a_step_and_read_after_it_arrive_within_the_delay(step_ns: int) -> None:
    clocks = Clocks()
    clocks.read(START_NS, START_NS)
    clocks.wall_ahead_ns += step_ns
    now_ns = START_NS + 10 * MS
    clocks.read(now_ns, now_ns)
    due_ns = clocks.read(START_NS + 9 * MS, now_ns, ahead_ns=WALL_NS)
    assert now_ns <= due_ns <= now_ns + DELAY_NS


@given(
    steps=st.lists(st.integers(-(10**10), 10**10), max_size=5),
    lags=st.lists(st.integers(0, 4 * MS), min_size=1, max_size=5),
)
def test_no_packet_waits_longer_than_two_delays(steps: list[int], lags: list[int]) -> None:
    clocks, now_ns = Clocks(), START_NS
    clocks.read(now_ns, now_ns)
    for step_ns in steps:
        clocks.wall_ahead_ns += step_ns
        for lag_ns in lags:
            now_ns += 5 * MS
            assert clocks.read(now_ns - lag_ns, now_ns) <= now_ns + 2 * DELAY_NS
