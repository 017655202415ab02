"""The selections `bitmap`, `oblivious` and `reps`, by traces computed by hand from their sources."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.evselect import SELECTIONS, EvSelection, EvSet
from mrc_testbed.hosts.mrc.evselect.adaptive import ECN_PASSES, MAX_PENALTY, TRIM_PASSES
from mrc_testbed.hosts.mrc.evselect.bitmap import MARKED, MOST, REFUSED
from mrc_testbed.hosts.mrc.evselect.reps import BUFFER, EXPLORED, FREEZE_T, GoodEvs
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.timing import Timing

T_NS = 40_000_000


def table(planes: int, each: int) -> list[Path]:
    return [Path(plane * each + n, plane, n, None, 0xC000) for plane in range(planes) for n in range(each)]


def made(name: str, planes: int = 1, each: int = 32, **settings: Any) -> tuple[EvSelection, EvSet, list[Path]]:
    config = EndpointConfig(0, planes, 0xC000, T_NS, 12_500_000, **settings)
    evs = EvSet(config, Timing(config), Prng(3), lambda path, event, trigger: False)
    chosen = SELECTIONS[name](evs)
    evs.serve(chosen)
    paths = table(planes, each)
    for path in paths:
        evs.add(path)
    return chosen, evs, paths


def taken(chosen: EvSelection, packets: int) -> list[int]:
    return [chosen.take().index for _ in range(packets)]


# --- the buffer: the trace was computed by hand from htsim's buffer_reps.cpp ---


def test_the_oldest_fresh_ev_is_taken_first_and_once() -> None:
    good, paths = GoodEvs(), table(1, 4)
    for path in paths[:3]:
        good.add(path)
    assert [good.take_fresh().index, good.take_fresh().index] == [0, 1]
    good.add(paths[3])
    assert [good.take_fresh().index, good.take_fresh().index] == [2, 3]
    assert good.fresh == 0


def test_the_ninth_good_ev_drives_out_the_first() -> None:
    good, paths = GoodEvs(), table(1, BUFFER + 3)
    for path in paths:
        good.add(path)
    assert good.fresh == BUFFER
    assert [good.take_fresh().index for _ in range(BUFFER)] == list(range(3, BUFFER + 3))


def test_a_frozen_buffer_is_read_round_and_round_used_evs_too() -> None:
    good, paths = GoodEvs(), table(1, 5)
    for path in paths[:3]:
        good.add(path)
    good.take_fresh()
    assert [path.index for path in (good.take_frozen() for _ in range(5)) if path] == [0, 1, 2, 0, 1]
    assert good.fresh == 0
    good.add(paths[3])
    assert [path.index for path in (good.take_frozen() for _ in range(3)) if path] == [2, 3, 0]


def test_an_empty_frozen_buffer_has_nothing() -> None:
    assert GoodEvs().take_frozen() is None


# --- reps ---


def test_reps_takes_what_came_back_and_draws_otherwise() -> None:
    chosen, _, paths = made("reps", each=64)
    for place in (9, 4, 9):
        chosen.on_arrival(paths[place], 0)
    assert taken(chosen, 3) == [9, 4, 9]
    drawn = Counter(taken(chosen, 640))
    assert len(drawn) == 64, "any EV may be drawn"
    assert max(drawn.values()) <= 30, "10 each in the mean"


def test_reps_recycles_no_ev_that_was_marked_or_trimmed() -> None:
    chosen, _, paths = made("reps")
    chosen.on_arrival(paths[5], 0)
    chosen.on_congestion(paths[6], False, 0, T_NS)
    chosen.on_congestion(paths[7], True, 0, T_NS)
    chosen.on_arrival(paths[8], 0)
    assert taken(chosen, 2) == [5, 8]


def test_after_a_loss_reps_uses_its_buffer_alone_and_then_explores() -> None:
    """770 T are htsim's 10 ms where T is 13 us; then 16 packets at random although EVs came back meanwhile."""
    assert abs(FREEZE_T * 13e-6 - 10e-3) < 0.013e-3
    chosen, _, paths = made("reps", each=256)
    for place in (3, 1, 2):
        chosen.on_arrival(paths[place], 0)
    assert taken(chosen, 1) == [3]
    chosen.on_loss(paths[200], 0, T_NS)
    assert taken(chosen, 7) == [3, 1, 2, 3, 1, 2, 3]
    until = T_NS + FREEZE_T * T_NS
    chosen.on_loss(paths[201], 0, 2 * T_NS)
    chosen.on_arrival(paths[1], until)
    assert taken(chosen, 4) == [1, 2, 1, 3], "a second loss does not freeze it for longer, nor does this end it"
    for place in (7, 8):
        chosen.on_arrival(paths[place], until + 1)
    explored = taken(chosen, EXPLORED)
    assert len(set(explored)) > EXPLORED // 2
    assert taken(chosen, 2) == [7, 8], "the buffer of before is gone"


def test_a_loss_while_reps_explores_does_not_freeze_it_again() -> None:
    chosen, _, paths = made("reps")
    chosen.on_loss(paths[0], 0, 0)
    chosen.on_arrival(paths[1], FREEZE_T * T_NS + 1)
    taken(chosen, 1)
    chosen.on_loss(paths[0], 0, FREEZE_T * T_NS + 2)
    taken(chosen, EXPLORED - 1)
    assert taken(chosen, 1) == [1]
    chosen.on_arrival(paths[2], FREEZE_T * T_NS + 3)
    assert taken(chosen, 1) == [2]


def test_reps_forgets_the_evs_of_a_plane_that_one_left_and_draws_of_those_in_rotation() -> None:
    chosen, evs, paths = made("reps", planes=2, each=8, ev_active=8)
    active = [list(chosen.active(plane)) for plane in range(2)]
    gone = active[0][0]
    for path in (gone, active[0][1], active[1][2]):
        chosen.on_arrival(path, 0)
    evs.remove(gone)
    gone.state = paths[0].state.ASSUMED_BAD
    chosen.on_arrival(gone, 0)
    first = [chosen.take() for _ in range(400)]
    assert [path.plane for path in first[:4]] == [0, 1, 0, 1]
    assert first[1] is active[1][2]
    assert gone not in first
    assert {path.index for path in first} <= {path.index for plane in range(2) for path in chosen.active(plane)}


@pytest.mark.parametrize("name", ["oblivious", "reps"])
def test_a_retransmission_takes_another_ev(name: str) -> None:
    chosen, _, paths = made(name, each=2)
    for _ in range(20):
        chosen.on_arrival(paths[0], 0)
        assert chosen.take(avoid=paths[0]) is paths[1]


# --- oblivious ---


def test_oblivious_takes_every_ev_once_a_turn_whatever_happens() -> None:
    chosen, evs, paths = made("oblivious", planes=2, each=4)
    for turn in range(20):
        for path in paths[: turn % 8]:
            chosen.on_congestion(path, turn % 2 == 0, 0, T_NS)
            chosen.on_loss(path, 0, T_NS)
            chosen.on_arrival(path, 0)
        assert sorted(taken(chosen, 8)) == list(range(8))
    assert evs.count(0) == evs.count(1) == 4


@pytest.mark.parametrize(
    ("name", "retires"), [("adaptive", True), ("spec", True), ("bitmap", True), ("oblivious", False), ("reps", False)]
)
def test_who_retires_what_it_loses(name: str, retires: bool) -> None:
    assert made(name)[0].retires is retires


# --- bitmap: the trace was computed by hand from htsim's uec_mp.cpp ---


def test_bitmap_adds_up_what_it_hears_of_to_a_cap() -> None:
    """Mark 1, NACK 4, at most 15, however old the packet."""
    chosen, _, paths = made("bitmap", each=4)
    owed = []
    for trimmed in (False, False, True, True, True, True):
        chosen.on_congestion(paths[0], trimmed, 0, 100)
        owed.append(paths[0].penalty)
    assert owed == [1, 2, 6, 10, 14, 15]


def test_bitmap_a_packet_takes_a_turn_off_the_first_ev_alone_that_it_passes() -> None:
    chosen, _, paths = made("bitmap", each=4)
    for path in paths[:3]:
        chosen.on_congestion(path, True, 0, 100)
    for left in range(11, -1, -1):
        taken_now = chosen.take()
        assert sum(path.penalty for path in paths[:3]) >= left, "no more than one turn a packet"
        assert taken_now is paths[3] or not taken_now.penalty
    assert {chosen.take().index for _ in range(40)} == {0, 1, 2, 3}


def test_the_usual_selection_has_the_same_penalties_but_ignores_old_news() -> None:
    assert (ECN_PASSES, TRIM_PASSES, MAX_PENALTY) == (MARKED, REFUSED, MOST) == (1, 4, 15)
    chosen, _, paths = made("adaptive", each=4)
    for sent_ns, owed in ((0, 1), (99, 1), (101, 3)):
        chosen.on_congestion(paths[0], False, sent_ns, 100)
        assert paths[0].penalty == owed
