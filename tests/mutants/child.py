"""Work in forked children, a few side by side: each mutant has one, and so has each test whose lines are recorded.

A child inherits all that is loaded, and what it breaks ends with it.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest
from _pytest.tmpdir import tmppath_result_key

from tests.mutants.results import UNPLACED

MORE_BYTES = 4 << 30
"""Addresses that a child may take beside what it inherits."""
SLOWER, AT_LEAST_S = 5, 1.0
"""A test may take that many times its usual CPU time, and that much in addition."""
WAITED_S = 60.0
"""Of people's time, in addition, for a child that uses no CPU."""
_UNPLACED = 17
"""Exit status for Unplaced."""
T = TypeVar("T")
Work = Callable[[Callable[[str], None]], None]
"""What a child does; it may say words, each the number of a test or RED."""
RED = "red"


class Unplaced(Exception):
    """No function that is loaded could take the mutated code."""


class Timed(NamedTuple):
    """A test, and the CPU time that it usually takes."""

    item: pytest.Item
    cpu_s: float

    @property
    def limit_s(self) -> float:
        """CPU time after which it is taken for endless."""
        return SLOWER * self.cpu_s + AT_LEAST_S


class Ended(NamedTuple):
    """How a child ended: in which test, by number; None if all passed."""

    number: int | None
    how: str
    """`red`, `timeout`, `died` (by a signal or an exit of its own), `passed`, UNPLACED."""


class Child(NamedTuple):
    """A child that works."""

    process: int
    said: int
    """A pipe from it."""
    until: float
    """It is ended then, on the monotonic clock."""


def start(work: Work, scratch: Path, wait_s: float) -> Child:
    """Fork. `scratch`: a folder that is made for this child alone."""
    scratch.mkdir(parents=True)
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        _as_child(work, write)
    os.close(write)
    return Child(process, read, time.monotonic() + wait_s + WAITED_S)


def tests_of(tests: Sequence[Timed], scratch: Path, prepare: Callable[[], object]) -> Work:
    """Prepare, then run tests until one is red."""

    def work(say: Callable[[str], None]) -> None:
        prepare()
        for number, test in enumerate(tests):
            say(str(number))
            signal.setitimer(signal.ITIMER_PROF, test.limit_s)
            following = tests[number + 1].item if number + 1 < len(tests) else None
            if not passes(test.item, following, scratch):
                say(RED)
                return

    return work


def passes(item: pytest.Item, following: pytest.Item | None, scratch: Path) -> bool:
    """Set up, run and take down one test. One that is skipped passes."""
    item.config._tmp_path_factory._basetemp = scratch  # type: ignore[attr-defined]
    item.stash[tmppath_result_key] = {}
    state = item.session._setupstate  # without the hook of tests/conftest.py, after which a test is as good as idle
    good = _done(lambda: state.setup(item)) and _done(lambda: item.ihook.pytest_runtest_call(item=item))
    return _done(lambda: state.teardown_exact(following)) and good


def side_by_side(children: int, starts: Iterator[tuple[T, Callable[[], Child]]]) -> Iterator[tuple[T, Ended]]:
    """Start what comes, as many at once as may work; yield each as it ends."""
    working: dict[int, tuple[T, Child, list[bytes]]] = {}
    while True:
        while len(working) < children and (following := next(starts, None)):
            child = following[1]()
            working[child.said] = (following[0], child, [])
        if not working:
            return
        now = time.monotonic()
        wait_s = max(0.0, min(child.until for _, child, _ in working.values()) - now)
        ready = select.select(list(working), [], [], wait_s)[0]
        late = [number for number, (_, child, _) in working.items() if child.until <= time.monotonic()]
        for number in {*ready, *late}:
            what, child, said = working[number]
            more = os.read(number, 65536) if number in ready else b""
            said.append(more)
            if not more or number in late:
                del working[number]
                yield what, _ended(b"".join(said).decode().split(), _wait(child))


def _done(part: Callable[[], object]) -> bool:
    try:
        part()
    except pytest.skip.Exception:
        return True
    except BaseException:
        return False
    return True


def _as_child(work: Work, write: int) -> None:
    """Never returns."""
    status = 1
    try:
        os.setpgid(0, 0)
        _silence()
        _limit_memory()
        work(lambda word: _say(write, word))
        status = 0
    except Unplaced:
        status = _UNPLACED
    finally:
        os._exit(status)


def _say(write: int, word: str) -> None:
    os.write(write, f"{word}\n".encode())


def _silence() -> None:
    """What tests and mutants print is of no use."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    sys.stdout, sys.stderr = open(os.devnull, "w"), open(os.devnull, "w")  # noqa: SIM115


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MORE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wait(child: Child) -> int:
    """The status of one that has ended or is late, with all that it started."""
    os.close(child.said)
    with suppress(ProcessLookupError):
        os.killpg(child.process, signal.SIGKILL)
    _, status = os.waitpid(child.process, 0)
    return status


def _ended(said: list[str], status: int) -> Ended:
    number = max((int(word) for word in said if word.isdigit()), default=0)
    if RED in said:
        return Ended(number, RED)
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGKILL)
        return Ended(number, "timeout" if late else "died")
    if os.WEXITSTATUS(status) == _UNPLACED:
        return Ended(None, UNPLACED)
    return Ended(number, "died") if os.WEXITSTATUS(status) else Ended(None, "passed")
