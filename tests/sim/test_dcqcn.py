"""DCQCN's reaction point against traces worked out by hand."""

import pytest

from mrc_testbed.hosts.rc.dcqcn import PROFILES, REFERENCE_T_NS, ReactionPoint

PAPER = PROFILES["dcqcn"]
VENDOR = PROFILES["dcqcn-vendor"]
LINE = 100_000_000_000
US = 1_000


def point(profile=PAPER, t_ns=REFERENCE_T_NS):
    return ReactionPoint(profile, LINE, t_ns)


def rate_at(rate, now_ns):
    rate.catch_up(now_ns)
    return rate.rate


def test_it_begins_at_line_rate_and_the_first_notification_halves_it():
    rate = point()
    assert (rate.rate, rate.limited) == (1.0, False)
    assert rate.notified(1_000 * US)
    # R_T = 1, R_C = 1 - alpha / 2 with alpha = 1, then alpha = 255/256 + 1/256.
    assert (rate.rate, rate.target, rate.alpha, rate.limited) == (0.5, 1.0, 1.0, True)


def test_five_recoveries_then_additive_steps():
    rate = point()
    rate.notified(0)
    got = [rate_at(rate, step * 55 * US) for step in range(1, 6)]
    assert got == [0.75, 0.875, 0.9375, 0.96875, 0.984375]
    # After a second cut the target is below the line: 0.4921875, alpha still about 1.
    assert rate.notified(5 * 55 * US)
    alpha = (1 - 1 / 256) ** 5
    cut = 0.984375 * (1 - alpha / 2)
    assert rate.rate == pytest.approx(cut)
    assert rate.target == 0.984375
    assert rate.alpha == pytest.approx((1 - 1 / 256) * alpha + 1 / 256)
    for _ in range(5):
        cut = (cut + 0.984375) / 2
    assert rate_at(rate, 10 * 55 * US) == pytest.approx(cut)
    # R_AI is 0.1 % of the line: the target goes on by it, the rate half of the way.
    additive = (cut + 0.985375) / 2
    assert rate_at(rate, 11 * 55 * US) == pytest.approx(additive)
    assert rate.target == pytest.approx(0.985375)


def test_hyper_increase_begins_when_time_and_bytes_have_both_passed_five():
    rate = point()
    for cut in range(8):
        rate.notified(cut * 50 * US)
    begin = 7 * 50 * US
    low = rate.rate
    assert low < 0.02
    byte_counter = 2_000 * US * LINE // 8_000_000_000
    for _ in range(6):
        rate.sent(byte_counter)
    assert rate.rate > low
    target = rate.target
    # Time stages 0 to 5: the smaller of the two is not yet above 5, so steps are additive.
    rate.catch_up(begin + 6 * 55 * US)
    assert rate.target == pytest.approx(target + 6 * 0.001)
    # Both are at 6 now.
    rate.catch_up(begin + 7 * 55 * US)
    assert rate.target == pytest.approx(target + 6 * 0.001 + 0.01)


def test_a_notification_too_soon_after_a_cut_is_none():
    rate = point()
    assert rate.notified(0)
    assert not rate.notified(50 * US - 1)
    assert rate.rate == 0.5
    assert rate.notified(50 * US)
    assert rate.rate == 0.25


def test_alpha_decays_while_nothing_is_heard_however_long_nobody_asks():
    rate = point()
    rate.notified(0)
    rate.notified(100 * 55 * US)
    assert rate.alpha == pytest.approx((255 / 256) ** 100 * 255 / 256 + 1 / 256)


def test_it_never_falls_below_its_least_rate():
    rate = point()
    for cut in range(100):
        rate.notified(cut * 50 * US)
    assert rate.rate == 0.001


def test_back_at_the_line_it_is_limited_no_longer():
    rate = point()
    rate.notified(0)
    assert rate_at(rate, 8 * 55 * US) < 1
    assert rate.limited
    assert rate_at(rate, 1_000 * 55 * US) == 1.0
    assert not rate.limited


def test_the_vendors_profile_recovers_once_and_has_no_byte_counter():
    rate = point(VENDOR)
    rate.notified(0)
    rate.sent(1 << 40)
    assert rate.rate == 0.5
    assert rate_at(rate, 300 * US) == 0.75
    rate.notified(301 * US)
    # Alpha has decayed for 301 steps of 1 us.
    alpha = (255 / 256) ** 301
    cut = 0.75 * (1 - alpha / 2)
    assert rate.rate == pytest.approx(cut)
    recovered = (cut + 0.75) / 2
    assert rate_at(rate, 601 * US) == pytest.approx(recovered)
    additive = (recovered + 0.7502) / 2
    assert rate_at(rate, 901 * US) == pytest.approx(additive)
    assert rate_at(rate, 1201 * US) == pytest.approx((additive + 0.7522) / 2)


def test_all_times_are_in_units_of_t():
    slow = point(t_ns=1_000 * REFERENCE_T_NS)
    slow.notified(0)
    assert not slow.notified(50_000 * US - 1)
    assert rate_at(slow, 55_000 * US - 1) == 0.5
    assert rate_at(slow, 55_000 * US) == 0.75
    slow.scale(REFERENCE_T_NS)
    assert rate_at(slow, 55_000 * US + 55 * US) == 0.875
