"""Packets in batches: whether the extension for it (hosts/c/batches.c) is used.

Without it each packet is a call of its own, with the same books.
"""

from __future__ import annotations

from typing import Any

from mrc_testbed.hosts import extensions

SWITCH = "MRC_TESTBED_SOCKETS"
"""Environment variable: `python` leaves the extension alone."""
EXTENSION = extensions.Extension("batches", "packets in batches", SWITCH, "python")
MOST = 32
"""Packets in one call of the kernel: `MOST` of the source."""


def found() -> tuple[Any, str]:
    """The extension, and why there is none: one of them, the other None or empty."""
    return extensions.found(EXTENSION)


def in_use() -> str:
    """`batches` or `single`: how packets go through sockets in this process."""
    return "batches" if found()[0] is not None else "single"


def described() -> str:
    """`in_use`, and for single packets why that is."""
    extension, why_not = found()
    return "batches (recvmmsg, sendmmsg)" if extension is not None else f"single packets ({why_not})"
