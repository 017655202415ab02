"""Ctrl-C, SIGTERM and SIGHUP at a moment at which Python swallows what is raised, or a library makes it its own error.

What a signal's handler raises inside the callback of a weak reference, or inside `__del__`, goes to sys.unraisablehook
and no further. Each import has such a callback, so a command that begins would now and then go on as if nobody had
stopped it. And Pydantic says of whatever leaves a serializer that the serializer failed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STOPPING = tuple(each for each in signal.Signals if each.name in {"SIGTERM", "SIGHUP"})
"""Windows has no SIGHUP."""
_ENDING = (signal.SIGINT, *_STOPPING)
_LATER_S = 0.01
"""Until then the callback is left, as a rule."""


def send_swallowed_again() -> None:
    """From now on an interrupt that Python swallows comes again, until it is heard. For the main thread.

    The second one comes by SIGALRM: the signal's own handler may have raised for the first one only.
    """
    usual = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            raise_later(str(unraisable.exc_value) or "SIGINT")
        else:
            usual(unraisable)

    def raise_later(name: str) -> None:
        previous = signal.getsignal(signal.SIGALRM)

        def interrupt(_: int, frame: FrameType | None) -> None:
            if _runs(hook, frame):  # on a busy machine; what is raised there is swallowed for good
                signal.setitimer(signal.ITIMER_REAL, _LATER_S)
                return
            signal.signal(signal.SIGALRM, previous)
            raise KeyboardInterrupt(name)

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, _LATER_S)

    sys.unraisablehook = hook


@contextmanager
def stopping_as_ctrl_c() -> Iterator[None]:
    """SIGTERM and SIGHUP meanwhile end a command as Ctrl-C does: with its summary and reports, and status 130. A hangup
    that `nohup` keeps away stays away."""

    def stop(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in _STOPPING if not ignored_by_wish(number)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """Signals that end a command wait until the end of the block; a process that is forked in it has them wait until it
    calls `let_through`, when it can take them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through() -> None:
    """Take what waits."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def ignored_by_wish(number: signal.Signals) -> bool:
    """`nohup` started the program: a hangup is to end nothing. A shell that starts it in the background makes it ignore
    SIGINT, which is no wish of anybody's."""
    return number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN


def _runs(function: Callable[..., object], frame: FrameType | None) -> bool:
    while frame:
        if frame.f_code is function.__code__:
            return True
        frame = frame.f_back
    return False


@contextmanager
def unwrapped() -> Iterator[None]:
    """An interrupt that a library raised as an error of its own leaves this as the KeyboardInterrupt that it was."""
    try:
        yield
    except Exception as error:
        cause = error.__cause__
        while cause:
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            cause = cause.__cause__
        raise
