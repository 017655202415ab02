"""Shapers that lost time make it up, and none gets ahead of its link."""

from __future__ import annotations

from mrc_testbed.testbed.fabric.catch_up import MOST_PERCENT, PERIOD_NS, START_NS, CatchUp
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan

MS = 1_000_000
PORT, OTHER = build_plan(clos2_shape(1, 2, 1, 1, 50_000_000, 40 * MS)).links[0].ends


def test_a_port_that_is_late_twice_goes_faster_until_it_has_caught_up() -> None:
    shapers = CatchUp()
    assert shapers.look([(PORT, 3 * MS), (OTHER, 0)]) == {}
    assert shapers.look([(PORT, 3 * MS), (OTHER, 0)]) == {PORT: 3}
    assert shapers.look([(PORT, 3 * MS + 1), (OTHER, 0)]) == {}
    assert shapers.look([(PORT, MS), (OTHER, 0)]) == {PORT: 1}
    assert shapers.look([(PORT, MS - 1), (OTHER, 0)]) == {PORT: 0}
    assert shapers.times == 1
    assert shapers.rest() == {}


def test_one_late_packet_is_what_a_burst_makes_good() -> None:
    shapers = CatchUp()
    for behind in (9 * MS, 0, 9 * MS, START_NS, 9 * MS):
        assert shapers.look([(PORT, behind)]) == {}
    assert shapers.times == 0


def test_a_readback_finds_shapers_as_planned_and_a_new_rate_is_no_change_of_ours() -> None:
    shapers = CatchUp()
    for _ in range(2):
        shapers.look([(PORT, 99 * MS), (OTHER, 2 * MS)])
    shapers.forget([OTHER])
    assert shapers.rest() == {PORT: 0}


def test_no_loss_is_left_and_none_is_made_up_twice() -> None:
    """A full port: what it is behind changes by what its shaper is faster, and by what its CPU loses."""
    shapers, percent, behind_ns = CatchUp(), 0, 0
    for lost_ns in (60 * MS, *[0] * 40, 5 * MS, 4 * MS, *[0] * 10):
        behind_ns += lost_ns - PERIOD_NS * percent // 100
        assert behind_ns > -MOST_PERCENT * PERIOD_NS // 100
        percent = shapers.look([(PORT, max(0, behind_ns))]).get(PORT, percent)
    assert percent == 0
    assert behind_ns < START_NS
