"""A run whose life hangs on a descriptor: when its other end closes, whatever closed it, the run ends as by SIGTERM.

A worker that is killed would otherwise leave its run going, and start the next one beside it. The parent-death signal
of Linux does not help: it follows the thread that forked, and those of a pool come and go.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import threading

from mrc_testbed.testbed.errors import UsageError


def end_with(descriptor: int) -> None:
    """From now on this process ends when `descriptor` does. Raises UsageError where it is not open for reading."""
    try:
        os.read(descriptor, 0)
    except OSError as error:
        raise UsageError(f"--tied {descriptor}: is not an open descriptor to read from: {error.strerror}") from None
    threading.Thread(target=_wait, args=(descriptor,), name="tied", daemon=True).start()


def _wait(descriptor: int) -> None:
    if hasattr(signal, "pthread_sigmask"):  # or a signal for the process could reach this thread and not wake the run
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    with contextlib.suppress(OSError):
        while os.read(descriptor, 4096):
            continue
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    else:
        _thread.interrupt_main()
