"""Virtual time: what is due when, in which order, and until when."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.virtual.scheduler import FIRST_BITS, LOOK_EVERY, Scheduler


def never() -> bool:
    return False


def test_actions_come_by_time_and_then_in_the_order_they_were_put() -> None:
    scheduler, done = Scheduler(), list[tuple[int, str]]()
    for t_ns, name in ((20, "c"), (10, "a"), (10, "b"), (20, "d")):
        scheduler.at(t_ns, lambda name: done.append((scheduler.now_ns, name)), name)
    assert scheduler.run_until(lambda: len(done) == 4, 100)
    assert done == [(10, "a"), (10, "b"), (20, "c"), (20, "d")]
    assert scheduler.now_ns == 20


def test_what_is_due_at_the_deadline_is_done_and_nothing_after_it() -> None:
    scheduler, done = Scheduler(now_ns=5), list[int]()
    for t_ns in (10, 11):
        scheduler.at(t_ns, done.append, t_ns)
    assert not scheduler.run_until(never, 10)
    assert (done, scheduler.now_ns, scheduler.next_ns) == ([10], 10, 11)
    assert not scheduler.run_until(never, 50)
    assert (done, scheduler.now_ns, scheduler.next_ns) == ([10, 11], 50, None)
    assert not scheduler.run_until(never, 20)
    assert scheduler.now_ns == 50, "time does not go back"


def test_what_is_done_already_moves_no_clock() -> None:
    scheduler = Scheduler(7)
    scheduler.at(8, pytest.fail, "too far")
    assert scheduler.run_until(lambda: True, 100)
    assert scheduler.now_ns == 7


def test_what_was_due_in_the_past_is_due_now_behind_what_is_already() -> None:
    scheduler, done = Scheduler(100), list[str]()
    scheduler.at(100, done.append, "now")
    scheduler.at(3, done.append, "past")
    while scheduler.run_next():
        pass
    assert (done, scheduler.now_ns) == (["now", "past"], 100)


def test_an_action_may_put_another_one_at_its_own_time() -> None:
    scheduler, done = Scheduler(), list[int]()
    scheduler.at(5, lambda: scheduler.at(5, lambda: done.append(scheduler.now_ns)))
    assert scheduler.run_until(lambda: bool(done), 5)
    assert done == [5]


def test_what_an_action_raises_comes_out_and_the_rest_stays_due() -> None:
    scheduler, done = Scheduler(), list[str]()

    def fail() -> None:
        raise ValueError("no")

    scheduler.at(1, fail)
    scheduler.at(2, done.append, "rest")
    with pytest.raises(ValueError, match="no"):
        scheduler.run_until(never, 10)
    assert scheduler.now_ns == 1
    assert not scheduler.run_until(never, 10)
    assert done == ["rest"]


times = st.lists(st.tuples(st.integers(0, 1 << 24), st.integers(0, 1 << 20)), min_size=1, max_size=200)


@given(times, st.sampled_from([0, 4, 17, 30]), st.sampled_from([1, 7, LOOK_EVERY]))
def test_what_is_due_comes_as_from_a_heap_however_long_stretches_are(
    due: list[tuple[int, int]], bits: int, look_every: int
) -> None:
    """Each action puts another one in; both lengths, before and after a look, are tried."""
    done, expected = list[tuple[int, int]](), list[tuple[int, int]]()
    heap: list[tuple[int, int, int]] = []
    serial = count()

    def act(number: int, more_ns: int) -> None:
        done.append((scheduler.now_ns, number))
        if more_ns >= 0:
            scheduler.at(scheduler.now_ns + more_ns, act, number, -1)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("mrc_testbed.testbed.virtual.scheduler.FIRST_BITS", bits)
        changed.setattr("mrc_testbed.testbed.virtual.scheduler.LOOK_EVERY", look_every)
        scheduler = Scheduler()
        for number, (t_ns, more_ns) in enumerate(due):
            scheduler.at(t_ns, act, number, more_ns)
            heappush(heap, (t_ns, next(serial), number))
        while scheduler.run_next():
            pass
    left = {number: more_ns for number, (_, more_ns) in enumerate(due)}
    while heap:
        t_ns, _, number = heappop(heap)
        expected.append((t_ns, number))
        if number in left:
            heappush(heap, (t_ns + left.pop(number), next(serial), number))
    assert done == expected


def test_stretches_get_shorter_where_much_is_due_and_longer_where_little_is() -> None:
    scheduler = Scheduler()
    times = list(range(0, 40 * LOOK_EVERY << 12, 1 << 12))
    Random(1).shuffle(times)
    for t_ns in times:
        scheduler.at(t_ns, noted, t_ns)
    while scheduler.run_next():
        pass
    short = scheduler._bits
    for number in range(8 * LOOK_EVERY):
        scheduler.at(scheduler.now_ns + 1_000_000 * number, noted, number)
    while scheduler.run_next():
        pass
    assert short < FIRST_BITS < scheduler._bits


def test_stretches_get_shorter_within_one_that_everything_is_put_into() -> None:
    scheduler = Scheduler()
    times = list(range(1 << FIRST_BITS))[::64]
    Random(1).shuffle(times)
    for t_ns in times:
        scheduler.at(t_ns, noted, t_ns)
    assert scheduler._bits < FIRST_BITS
    seen = list[int]()
    while scheduler.run_next():
        seen.append(scheduler.now_ns)
    assert seen == sorted(times)


def noted(_number: int) -> None:
    pass
