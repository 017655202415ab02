"""Virtual time: what is due when, in which order, and until when."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.virtual.scheduler import Scheduler


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
