"""Limits to how long the file of a plugin may take to load, and a call of its code to return, so that an endless loop
in it is told and not waited for.

A timer signal ends it, because nothing else interrupts a wait. Python hands signals to the main thread alone, and
between two steps of Python code: in another thread there is no limit, and a single call of C code is not ended before
it returns. Nor is there a limit on a system without such a signal, as Windows.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from types import FrameType

LIMIT_S = 20.0
"""A large package, loaded by all daemons of a fabric at once on two cores, stays far below. The runner gives a daemon
30 s to answer."""
CALL_LIMIT_S = 60.0
"""Calls return within a millisecond, of a metric over a long run within seconds."""
_TICKS = 20
"""In the limit of a call; it is exceeded by at most two of them."""
_AGAIN_S = 0.1
"""A file that catches everything is interrupted again after so long."""


class SlowLoad(BaseException):
    """Loading took longer than it may. No Exception, so that a loop of the file which catches those does not go on."""


class SlowCall(BaseException):
    """A call of a plugin's code did not return. No Exception, for the same reason."""


@contextmanager
def load_limit(limit_s: float | None = None) -> Iterator[None]:
    """Raises SlowLoad inside, with the file and line that was being run, after `limit_s` seconds (None: LIMIT_S)."""
    limit_s = LIMIT_S if limit_s is None else limit_s

    def expired(_signal: int, frame: FrameType | None) -> None:
        at = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
        raise SlowLoad(f"not loaded after {limit_s:g} s, still{at}; what a plugin's file does at import must end soon")

    with _timer(expired, limit_s, _AGAIN_S):
        yield


@contextmanager
def call_limit(files: Container[str], limit_s: float | None = None) -> Iterator[None]:
    """Raises SlowCall inside, with the file and line that was being run, where one call of code in `files` lasts longer
    than `limit_s` seconds (None: CALL_LIMIT_S).

    It counts ticks of a timer in which the same call is going on: a machine that sleeps has none.
    """
    if not files:
        yield
        return
    limit_s = CALL_LIMIT_S if limit_s is None else limit_s
    going: FrameType | None = None
    ticks = 0

    def tick(_signal: int, frame: FrameType | None) -> None:
        nonlocal going, ticks
        calls = [each for each in _callers(frame) if each.f_code.co_filename in files]
        if not calls or calls[-1] is not going:
            going, ticks = calls[-1] if calls else None, 0
            return
        ticks += 1
        if ticks >= _TICKS:
            where = f"{os.path.basename(calls[0].f_code.co_filename)}:{calls[0].f_lineno}"
            raise SlowCall(f"{where}: {going.f_code.co_name}() has not returned after {limit_s:g} s")

    with _timer(tick, limit_s / _TICKS, limit_s / _TICKS):
        yield


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    """From the innermost one outwards."""
    while frame:
        yield frame
        frame = frame.f_back


@contextmanager
def _timer(expired: Callable[[int, FrameType | None], None], first_s: float, every_s: float) -> Iterator[None]:
    """Calls `expired` inside, by SIGALRM.

    A timer that somebody else had set is set again afterwards, with what is left of its time. One that somebody set
    meanwhile is theirs: an interrupt that comes again (testbed/interrupts.py).
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return
    began_s = time.monotonic()
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, 0)  # first: its alarm is none of this timer
    handler = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, first_s, every_s)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGALRM) is expired:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            if left_s:
                signal.setitimer(signal.ITIMER_REAL, max(left_s - (time.monotonic() - began_s), _AGAIN_S), interval_s)
