from __future__ import annotations

import socket
import time

import pytest

from mrc_testbed.testbed.runner.loop import RealTimeLoop
from tests.unit.fakes import FakeClock

MS = 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return FakeClock().install(monkeypatch)


def test_timers_come_in_order_of_time_and_equal_ones_in_order_of_asking(clock: FakeClock) -> None:
    loop, start, seen = RealTimeLoop(), clock.now_ns, []
    for delay_ms, name in ((30, "c"), (10, "a"), (20, "b1"), (20, "b2"), (20, "b3")):
        loop.at(start + delay_ms * MS, lambda name=name: seen.append((name, clock.now_ns - start)))  # type: ignore[misc]
    loop.run_until(lambda: len(seen) == 5, start + 1000 * MS)
    assert seen == [("a", 10 * MS), ("b1", 20 * MS), ("b2", 20 * MS), ("b3", 20 * MS), ("c", 30 * MS)]


def test_a_timer_of_the_past_comes_at_once(clock: FakeClock) -> None:
    loop, start, seen = RealTimeLoop(), clock.now_ns, []
    loop.at(start - MS, lambda: seen.append(clock.now_ns - start))
    assert loop.run_until(lambda: bool(seen), start + MS)
    assert seen == [0]


def test_a_timer_may_set_another(clock: FakeClock) -> None:
    loop, start, seen = RealTimeLoop(), clock.now_ns, []
    loop.at(start + MS, lambda: loop.at(start + 3 * MS, lambda: seen.append(clock.now_ns - start)))
    loop.run_until(lambda: bool(seen), start + 10 * MS)
    assert seen == [3 * MS]


def test_a_timer_comes_once(clock: FakeClock) -> None:
    loop, seen = RealTimeLoop(), []
    loop.at(clock.now_ns + MS, lambda: seen.append(1))
    loop.run_until(lambda: False, clock.now_ns + 50 * MS)
    assert seen == [1]


def test_the_deadline_ends_it_and_is_told(clock: FakeClock) -> None:
    loop, start, seen = RealTimeLoop(), clock.now_ns, []
    loop.at(start + 11 * MS, lambda: seen.append("late"))
    assert not loop.run_until(lambda: False, start + 10 * MS)
    assert clock.now_ns == start + 10 * MS
    assert seen == []
    assert not loop.run_until(lambda: False, start + 12 * MS)
    assert seen == ["late"], "what was not due stays for the next call"


def test_what_is_done_at_the_deadline_counts(clock: FakeClock) -> None:
    loop, start = RealTimeLoop(), clock.now_ns
    assert loop.run_until(lambda: clock.now_ns >= start + 10 * MS, start + 10 * MS)
    assert loop.run_until(lambda: True, start - MS)


def test_every_keeps_its_beat_when_calls_take_time(clock: FakeClock) -> None:
    loop, start, seen = RealTimeLoop(), clock.now_ns, []

    def action() -> None:
        seen.append((clock.now_ns - start) // MS)
        clock.now_ns += 3 * MS

    loop.every(10 * MS, action, start + 5 * MS)
    loop.run_until(lambda: False, start + 60 * MS)
    assert seen == [5, 15, 25, 35, 45, 55]


def test_every_keeps_its_beat_after_a_long_stall(clock: FakeClock) -> None:
    loop, start, seen = RealTimeLoop(), clock.now_ns, []

    def action() -> None:
        seen.append((clock.now_ns - start) // MS)
        clock.now_ns += 34 * MS if len(seen) == 2 else 0

    loop.every(10 * MS, action, start)
    loop.run_until(lambda: False, start + 75 * MS)
    assert seen == [0, 10, 50, 60, 70], "what was missed is left out; what follows is not shifted"


def test_a_late_start_keeps_the_beat(clock: FakeClock) -> None:
    loop, start, seen = RealTimeLoop(), clock.now_ns, []
    loop.every(10 * MS, lambda: seen.append((clock.now_ns - start) // MS), start)
    clock.now_ns += 4 * MS
    loop.run_until(lambda: False, start + 35 * MS)
    assert seen == [4, 10, 20, 30]


def test_exceptions_of_timers_come_out(clock: FakeClock) -> None:
    loop = RealTimeLoop()

    def fail() -> None:
        raise ValueError("as asked")

    loop.at(clock.now_ns + MS, fail)
    with pytest.raises(ValueError, match="as asked"):
        loop.run_until(lambda: False, clock.now_ns + 10 * MS)


def test_a_socket_is_read_when_there_is_something_and_no_more_when_forgotten() -> None:
    loop, seen = RealTimeLoop(), []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop.watch(ours, lambda: seen.append(ours.recv(10)))
        theirs.sendall(b"one")
        assert loop.run_until(lambda: bool(seen), time.monotonic_ns() + 5_000 * MS)
        loop.forget(ours)
        theirs.sendall(b"two")
        assert not loop.run_until(lambda: len(seen) > 1, time.monotonic_ns() + 20 * MS)
        assert seen == [b"one"]


def test_exceptions_of_readers_come_out() -> None:
    loop = RealTimeLoop()
    ours, theirs = socket.socketpair()

    def fail() -> None:
        raise ValueError("unreadable")

    with ours, theirs:
        loop.watch(ours, fail)
        theirs.sendall(b"x")
        with pytest.raises(ValueError, match="unreadable"):
            loop.run_until(lambda: False, time.monotonic_ns() + 5_000 * MS)


def test_an_action_may_wait_in_the_loop_while_all_else_goes_on(clock: FakeClock) -> None:
    """As `deny` does, which waits for the answers of the daemons inside a timer."""
    loop, start, seen = RealTimeLoop(), clock.now_ns, []

    def note(name: str) -> None:
        seen.append((name, (clock.now_ns - start) // MS))

    def wait() -> None:
        note("asks")
        assert loop.run_until(lambda: ("answer", 25) in seen, start + 1000 * MS)
        note("has it")

    loop.every(10 * MS, lambda: note("sample"), start)
    loop.at(start + 15 * MS, wait)
    loop.at(start + 15 * MS, lambda: note("beside"))
    loop.at(start + 25 * MS, lambda: note("answer"))
    loop.at(start + 26 * MS, lambda: note("after"))
    loop.run_until(lambda: False, start + 35 * MS)
    assert seen == [
        *(("sample", 0), ("sample", 10), ("asks", 15), ("beside", 15), ("sample", 20)),
        *(("answer", 25), ("has it", 25), ("after", 26), ("sample", 30)),
    ]
