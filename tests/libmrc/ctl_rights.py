"""CAP_NET_ADMIN of the thread that runs a test."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

VERSION_3, CAP_NET_ADMIN = 0x20080522, 12
_LIBC = ctypes.CDLL(None, use_errno=True)


def _capabilities() -> ctypes.Array[ctypes.c_uint32]:
    """Effective, permitted, inheritable; of numbers below 32, then of those above."""
    sets = (ctypes.c_uint32 * 6)()
    assert _LIBC.capget((ctypes.c_uint32 * 2)(VERSION_3, 0), sets) == 0
    return sets


@contextmanager
def without_net_admin() -> Iterator[None]:
    """For this thread, until the end."""
    sets = _capabilities()
    before = sets[0]
    sets[0] &= ~(1 << CAP_NET_ADMIN)
    assert _LIBC.capset((ctypes.c_uint32 * 2)(VERSION_3, 0), sets) == 0
    try:
        yield
    finally:
        sets[0] = before
        assert _LIBC.capset((ctypes.c_uint32 * 2)(VERSION_3, 0), sets) == 0


needs_net_admin = pytest.mark.skipif(not _capabilities()[0] >> CAP_NET_ADMIN & 1, reason="needs CAP_NET_ADMIN")
