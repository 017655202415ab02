"""How a daemon sleeps between turns: with the extension in C and without it, to the same effect."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from socket import socketpair
from typing import Any

import pytest

from mrc_testbed.hosts import batches, extensions
from mrc_testbed.hosts.control import ControlChannel
from mrc_testbed.hosts.session import Session
from mrc_testbed.hosts.turns import Turns
from mrc_testbed.hosts.udp import Lateness, Timer

MADE = Path(batches.EXTENSION.folder()).is_dir() or bool(os.environ.get("CI"))
needs_it = pytest.mark.skipif(not MADE, reason="make setup has not compiled the extension here")


@pytest.fixture(params=[pytest.param("batches", marks=needs_it), "single"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With the extension, and without."""
    monkeypatch.setenv(batches.SWITCH, "" if request.param == "batches" else "python")
    extensions.found.cache_clear()
    assert batches.in_use() == request.param
    yield request.param
    extensions.found.cache_clear()


def extension() -> Any:
    """The one that the fixture wants."""
    return batches.found()[0]


def test_a_timer_fires_when_it_is_told_to(way: str) -> None:
    timer = Timer()
    at_ns = time.monotonic_ns() + 20_000_000
    timer.arm(at_ns)
    assert select.select([timer], [], [], 10)[0]
    now_ns = time.monotonic_ns()
    assert now_ns >= at_ns
    timer.fired(now_ns)
    assert timer.lateness.summary()["wakeups"] == 1


def test_a_time_that_is_past_fires_at_once_and_a_later_one_puts_it_off(way: str) -> None:
    timer = Timer()
    timer.arm(1)
    assert select.select([timer], [], [], 10)[0]
    timer.arm(time.monotonic_ns() + 3600 * 10**9)
    assert not select.select([timer], [], [], 0)[0]


def test_a_daemon_wakes_for_a_command_and_answers_it(way: str) -> None:
    ours, theirs = socketpair()
    with closing(ours), closing(theirs):
        timer = Timer()
        channel = ControlChannel(theirs)
        turns = Turns(channel, Session(channel, timer.lateness), timer)
        ours.sendall(b'{"id":7,"cmd":"nothing"}\n')
        turns.take()
        assert ours.recv(4096).startswith(b'{"id":7,"ok":false,"error":"unknown command')


def test_a_signal_that_ends_nothing_leaves_a_daemon_asleep_until_its_timer_tells_how_late_it_is(way: str) -> None:
    """A turn before that would arm the timer, and nobody would know that a host had been stopped."""
    ours, theirs = socketpair()
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
    try:
        with closing(ours), closing(theirs):
            channel, timer = ControlChannel(theirs), Timer()
            turns = Turns(channel, Session(channel, timer.lateness), timer)
            timer.arm(time.monotonic_ns() + 500_000_000)
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            turns.take()
            assert (len(handled), timer.lateness.summary()["wakeups"]) == (1, 1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_waking_by_a_signal_runs_its_handler_and_is_no_error(way: str) -> None:
    """SIGTERM ends a daemon by what its handler raises."""
    ours, theirs = socketpair()

    def end(*_: object) -> None:
        raise SystemExit(3)

    before = signal.signal(signal.SIGUSR1, end)
    try:
        with closing(ours), closing(theirs):
            channel = ControlChannel(theirs)
            turns = Turns(channel, Session(channel, Lateness()), Timer())
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            with pytest.raises(SystemExit, match="3"):
                turns.take()
    finally:
        signal.signal(signal.SIGUSR1, before)


@needs_it
@pytest.mark.parametrize("way", ["batches"], indirect=True)
def test_the_extension_names_what_is_ready_and_waits_no_longer_than_it_may(way: str) -> None:
    epoll = select.epoll()
    pairs = [socketpair() for _ in range(3)]
    for _, theirs in pairs:
        epoll.register(theirs, select.EPOLLIN)
    assert extension().wait(epoll.fileno(), 0) == ()
    for ours, _ in pairs[:2]:
        ours.sendall(b"x")
    assert sorted(extension().wait(epoll.fileno(), -1)) == sorted(theirs.fileno() for _, theirs in pairs[:2])
    for each in pairs:
        for end in each:
            end.close()
    epoll.close()


@needs_it
@pytest.mark.parametrize("way", ["batches"], indirect=True)
@pytest.mark.parametrize("call", ["wait", "arm"])
def test_the_extension_refuses_what_is_no_such_descriptor(way: str, call: str) -> None:
    of = getattr(extension(), call)
    with pytest.raises(OSError, match="descriptor"):
        of(-1, 1)
    with pytest.raises(TypeError, match="2 arguments"):
        of(1)
    with pytest.raises(TypeError):
        of("1", 1)
