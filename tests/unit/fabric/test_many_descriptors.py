"""A large fabric has more open files than the 1024 that `select.select` takes: what waits there waits all the same."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
import subprocess
from collections.abc import Iterator

import pytest

from mrc_testbed.testbed.fabric.bgp import watch
from mrc_testbed.testbed.fabric.bgp.watch import RouteWatch
from mrc_testbed.testbed.fabric.forker import Child
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import NextHop, Route, RouteKind, Routing

MOST_OF_SELECT = 1024
PLAN = build_plan(clos2_shape(1, 1, 1, 2, 25_000_000, 0), Routing.BGP)
HOPS = (NextHop("fe80::1", "up0"), NextHop("fe80::3", "up1"))


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MOST_OF_SELECT), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def moved_up(descriptor: int) -> int:
    """The same file at a descriptor that `select.select` does not take."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, MOST_OF_SELECT)
    os.close(descriptor)
    return moved


def test_a_daemon_that_has_ended_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.pidfd_open
    monkeypatch.setattr(os, "pidfd_open", lambda pid: moved_up(really(pid)))
    running = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    child = Child(running.pid)
    with pytest.raises(TimeoutError):
        child.wait(0.01)
    running.kill()
    assert child.wait(10) == -9
    running.returncode = -9  # `child` has waited for it
    running.communicate()


def test_news_of_a_route_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    high = socket.socket(fileno=moved_up(ours.detach()))
    held = [0, 2]

    def count(_: str) -> int:
        theirs.send(b"!")  # the next is there by then
        return held.pop(0)

    monkeypatch.setattr(watch, "learned_routes", lambda *_: [Route(RouteKind.MULTIPATH, "", "", hops=HOPS)])
    monkeypatch.setattr(watch, "_listening", lambda *_: high)
    monkeypatch.setattr(watch, "query", lambda _, pids: dict.fromkeys(pids, ""))
    monkeypatch.setattr(watch, "_count", count)
    with high, theirs:
        RouteWatch(PLAN, FabricOptions("dummy", "none"), {"p0-t0-0": 0}).wait(10)
    assert not held
