"""Ctrl-C, SIGTERM and SIGHUP at a moment at which Python swallows what is raised, or a library makes it its own error.

What a signal's handler raises inside the callback of a weak reference, or inside `__del__`, goes to sys.unraisablehook
and no further. Each import has such a callback, so a command that begins would now and then go on as if nobody had
stopped it. And Pydantic says of whatever leaves a serializer that the serializer failed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

_LATER_S = 0.01
"""Until then the callback is left."""


def send_swallowed_again() -> None:
    """From now on an interrupt that Python swallows comes again, until it is heard. For the main thread."""
    usual = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            _send(signal.Signals[str(unraisable.exc_value) or "SIGINT"])
        else:
            usual(unraisable)

    sys.unraisablehook = hook


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


def _send(number: signal.Signals) -> None:
    """A handler may have raised for the first signal only and ignore further ones, so this one has its own."""
    usual = signal.getsignal(number)

    def interrupt(*_: object) -> None:
        signal.signal(number, usual)
        raise KeyboardInterrupt(number.name)

    signal.signal(number, interrupt)
    Timer(_LATER_S, signal.raise_signal, (number,)).start()
