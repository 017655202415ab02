"""The penalty a receiver asks for, by itself."""

import pytest

from mrc_testbed.hosts.mrc.incast import DOUBTS, Incast, Inflow, OneWayDelay
from tests.sim.simnet import T

STAMP = 1 << 13


def deep(share_of_t):
    """A queue, in stamps."""
    return int(share_of_t * T / STAMP)


def after(rates, queue_t, periods=3):
    """Penalties of flows with these bytes a period, before a queue of `queue_t` T."""
    incast, flows = Incast(T), [Inflow() for _ in rates]
    now = 1000 * T
    for period in range(1, periods + 1):
        now += 2 * T
        for flow, rate in zip(flows, rates, strict=True):
            incast.note(flow, period * rate, deep(queue_t), now)
    return [flow.penalty for flow in flows]


def test_a_flow_alone_is_asked_for_nothing():
    assert after([100_000], 1.4) == [0]


def test_a_short_queue_asks_nobody():
    assert after([300_000, 100_000], 0.2) == [0, 0]


def test_who_has_more_than_a_share_gives_up_half_of_the_excess():
    assert after([300_000, 100_000], 0.5) == [pytest.approx(64 / 3, abs=1), 0]


def test_a_deep_queue_asks_all_that_have_their_share():
    large, even = after([200_000, 200_000], 1.4)
    assert large == even == pytest.approx(128 * 0.8 * 0.5, abs=2)
    assert after([300_000, 100_000], 1.4)[1] == 0
    assert max(after([10_000_000, 4096, 4096, 4096, 4096], 40.0)) == 127


def test_words_beside_data_take_no_share():
    """An empty message ends each step of a sendrecv, while the data of the other way still come."""
    assert after([300_000, 88], 1.4) == [0, 0]
    assert after([300_000, 300_000, 88], 0.5) == [0, 0, 0]


def test_a_flow_that_has_stopped_has_no_share():
    incast, (a, b, c) = Incast(T), [Inflow() for _ in range(3)]
    now = 1000 * T
    incast.note(c, 500_000, deep(0.5), now)
    for period in range(1, 6):
        now += 2 * T
        incast.note(a, period * 100_000, deep(0.5), now)
        incast.note(b, period * 100_000, deep(0.5), now + 1)
    assert (a.penalty, b.penalty, c.penalty) == (0, 0, 0)


def test_a_probe_says_what_an_idle_path_takes():
    delay = OneWayDelay()
    delay.probed(100, 500 * STAMP, 3 * STAMP)
    assert delay.excess(110, 543 * STAMP) == 30, "and full packets take 3 more"
    delay.probed(120, 515 * STAMP, 3 * STAMP)
    assert delay.excess(130, 558 * STAMP) == 25 + 5, "this one was faster"


def test_delays_are_over_the_smallest_whatever_the_clocks_say():
    delay = OneWayDelay()
    assert delay.excess(65_000, 500 * STAMP) == 0
    assert delay.excess(65_010, 540 * STAMP) == 30
    assert delay.excess(65_020, 510 * STAMP) == 0, "a smaller one than ever"
    assert delay.excess(10, (10 - 65_020 + 510 + 65_536 + 7) % 65_536 * STAMP) == 7


def excesses(delay, *late_ms):
    """Of packets so late, in ms to the nearest."""
    stamp = STAMP / 1e6
    return [round(delay.excess(0, int(ms / stamp) * STAMP) * stamp) for ms in late_ms]


def test_a_packet_later_than_half_of_what_stamps_tell_apart_does_not_pass_for_the_fastest():
    assert excesses(OneWayDelay(), 10, 10, 310, 450, 10, 10) == [0, 0, 300, 440, 0, 0]
    assert excesses(OneWayDelay(), *[10, *[310] * 60, 10]) == [0, *[300] * 60, 0], "nor do all that a host kept back"


def test_a_short_packet_may_be_as_much_faster_as_a_full_one_takes_on_slow_ports():
    delay = OneWayDelay()
    forwarding_ms = 90
    delay.probed(0, 10_000_000, forwarding_ms * 1_000_000)
    assert excesses(delay, 100, 10, 100, 10, 100) == [0, 0, 90, 0, 90]


def test_a_first_packet_that_was_late_is_not_the_fastest_for_ever():
    assert excesses(OneWayDelay(), 60, 10, 15) == [0, 0, 5]
    found = excesses(OneWayDelay(), 210, *[10] * 70, 15)
    assert found[65:] == [0] * 6 + [5]


def test_a_delay_that_stamps_cannot_tell_does_not_pass_for_the_smallest():
    """Behind a port that carries a sixteenth a packet is half a second late, as much as stamps tell apart."""
    delay = OneWayDelay()
    delay.probed(0, 10_000_000, 2_000_000)
    assert excesses(delay, 12, 500, 12) == [0, 488, 0], "as for one 37 ms sooner than sent"


def test_probes_that_were_late_are_not_believed_for_ever():
    delay = OneWayDelay()
    delay.probed(0, 110_000_000, 2_000_000)
    found = excesses(delay, *[60] * DOUBTS, 65)
    assert found[DOUBTS - 2 :] == [485, 0, 5]
