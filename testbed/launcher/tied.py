"""A process whose life hangs on a descriptor, or on who started it: when that ends, whatever ended it, the process ends
as by SIGTERM.

A worker that is killed would otherwise leave its run going, and start the next one beside it; a command would leave its
workers. The parent-death signal of Linux does not help: it follows the thread that forked, and those of a pool come and
go.
"""

from __future__ import annotations

import _thread
import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

from mrc_testbed.testbed.errors import ExitCode, UsageError

_GRACE_S = 60.0
"""For what the process does at its end; then it is over."""


def end_with(descriptor: int) -> None:
    """From now on this process ends when `descriptor` does. Raises UsageError where it is not open for reading."""
    try:
        os.read(descriptor, 0)
    except OSError as error:
        raise UsageError(f"--tied {descriptor}: is not an open descriptor to read from: {error.strerror}") from None
    _when(lambda: _read_to_the_end(descriptor))


def end_with_parent() -> None:
    """From now on this process, which multiprocessing has started, ends when the one does that started it."""
    if parent := multiprocessing.parent_process():
        _when(parent.join)


def _read_to_the_end(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(descriptor, 4096):
            continue


def _when(ended: Callable[[], None]) -> None:
    threading.Thread(target=_wait, args=(ended,), name="tied", daemon=True).start()


def _wait(ended: Callable[[], None]) -> None:
    if hasattr(signal, "pthread_sigmask"):  # or a signal for the process could reach this thread and not wake the run
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ended()
    _end()
    time.sleep(_GRACE_S)
    os._exit(ExitCode.INTERRUPTED)


def _end() -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    else:
        _thread.interrupt_main()
