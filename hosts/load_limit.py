"""A limit to how long the file of a plugin may take to load, so that an endless loop in it is told and not waited for.

A timer signal ends it, because nothing else interrupts a wait. Python hands signals to the main thread alone, and
between two steps of Python code: in another thread there is no limit, and a single call of C code is not ended before
it returns. Nor is there a limit on a system without such a signal, as Windows.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LIMIT_S = 20.0
"""A large package, loaded by all daemons of a fabric at once on two cores, stays far below. The runner gives a daemon
30 s to answer."""
_AGAIN_S = 0.1
"""A file that catches everything is interrupted again after so long."""


class SlowLoad(BaseException):
    """Loading took longer than it may. No Exception, so that a loop of the file which catches those does not go on."""


@contextmanager
def load_limit(limit_s: float | None = None) -> Iterator[None]:
    """Raises SlowLoad inside, with the file and line that was being run, after `limit_s` seconds (None: LIMIT_S).

    A timer that somebody else had set is set again afterwards, with what is left of its time. One that somebody set
    meanwhile is theirs: an interrupt that comes again (testbed/interrupts.py).
    """
    limit_s = LIMIT_S if limit_s is None else limit_s

    def expired(_signal: int, frame: FrameType | None) -> None:
        at = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
        raise SlowLoad(f"not loaded after {limit_s:g} s, still{at}; what a plugin's file does at import must end soon")

    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return
    began_s = time.monotonic()
    handler = signal.signal(signal.SIGALRM, expired)
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, limit_s, _AGAIN_S)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGALRM) is expired:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            if left_s:
                signal.setitimer(signal.ITIMER_REAL, max(left_s - (time.monotonic() - began_s), _AGAIN_S), interval_s)
