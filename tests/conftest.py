"""For all tests: a machine that was late is not taken for a program that failed, and kernel tests get the CPU first."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from ctypes import CDLL

import pytest
from hypothesis import settings

from mrc_testbed.hosts import compiled
from tests.heavy import HeavyFirst
from tests.retry import RetryPlugin

# Examples of a property that says no number itself. A busy machine makes any of them late.
settings.register_profile("daily", deadline=None, max_examples=30)
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.load_profile("daily")

_GARBAGE = 20_000
"""Objects made before the collector looks for garbage: most tests make less. Python's own 700 cost them 3 % of CPU."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of the suites that draw what they do."""
    group = parser.getgroup("suites")
    group.addoption("--generated-seeds", type=int, default=20, help="random scenarios (tests/generated)")
    group.addoption("--generated-first", type=int, default=1250, help="seed of the first of them")
    group.addoption("--abuse-minutes", type=float, default=0, help="how long tests/abuse goes on; usual: a minute")
    group.addoption("--times", metavar="FILE", help="append the seconds of each test to this file")
    group.addoption("--at-most", metavar="SECONDS", type=float, help="leave out what took longer by tests/heavy.txt")
    group.addoption("--abuse-moments", type=int, default=0, help="at which tests/abuse stops each command; usual: one")
    group.addoption("--abuse-seed", type=int, default=time.time_ns() % 10**6, help="of what is random in tests/abuse")


def pytest_report_header(config: pytest.Config) -> str:
    """How to have the same again."""
    return f"abuse: --abuse-seed {config.getoption('--abuse-seed')}"


def pytest_configure(config: pytest.Config) -> None:
    # As in a background job, or under `nohup`; what tests start would ignore them too.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    config.pluginmanager.register(RetryPlugin(), "retry-when-late")
    at_most = config.getoption("--at-most")
    config.pluginmanager.register(HeavyFirst(config.getoption("--times"), at_most), "heavy-first")
    config.pluginmanager.register(Growth(), "growth")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`nightly(keep=2)`: the first two cases of a test are for every day. Those for the core in Python have a part of
    their own (tools/run-tests)."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("nightly")
        name = item.nodeid.split("[")[0]
        if mark and seen[name] < mark.kwargs.get("keep", 0):
            item.own_markers = [one for one in item.own_markers if one.name != "nightly"]
        seen[name] += 1
    if compiled.in_use() == "compiled":
        aside = [item for item in items if item.get_closest_marker("python_core")]
        items[:] = [item for item in items if not item.get_closest_marker("python_core")]
        config.hook.pytest_deselected(items=aside)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is loaded is garbage: the collector need not look at it, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        gc.enable()


class Growth:
    """What a test leaves to the collector is often a net in cycles, with regions of megabytes. So the collector is
    called after a test that made this process larger by much, and not when its turn comes. What it leaves, such as
    caches, it looks at once: a million objects would take it most of a second each time."""

    MUCH = 64 << 20

    def __init__(self) -> None:
        try:
            self._statm: int | None = os.open("/proc/self/statm", os.O_RDONLY)
        except OSError:
            self._statm = None
        self._kept = self._resident_bytes()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """After a test and all its attempts, in the process that ran it."""
        done = yield
        if self._resident_bytes() > self._kept + self.MUCH:
            gc.collect()
            gc.freeze()
            with suppress(AttributeError, OSError):  # where the C library is glibc, which keeps what was freed
                CDLL(None).malloc_trim(0)
            self._kept = self._resident_bytes()
        return done

    def _resident_bytes(self) -> int:
        """Memory of this process that is in RAM; 0 where the system does not tell. Source: proc_pid_statm(5)."""
        if self._statm is None:
            return 0
        return int(os.pread(self._statm, 100, 0).split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests on the real kernel have times to keep; pure tests, which run beside them, have not. Those are as idle as
    the programs that kernel tests start, or such a program would have no CPU for as long as they work. Root alone may
    go back to the usual policy."""
    if os.geteuid() == 0:
        policy = os.SCHED_OTHER if item.get_closest_marker("emu") else os.SCHED_IDLE
        os.sched_setscheduler(0, policy, os.sched_param(0))
