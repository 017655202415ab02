"""numpy, for who computes with arrays and needs none of its linear algebra.

That part of it (OpenBLAS) ends the process where memory is short, by status 1, as if a check had failed; and it takes
memory for each thread, a thread for each CPU. So it gets no thread beside the caller's, which a fork would lose, too,
and is not loaded where it has no room: this module raises MemoryError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap

from mrc_testbed.testbed.errors import memory_is_limited

__all__ = ["np", "npt"]

_ROOM_BYTES = 96 << 20
"""Address space: numpy 2.4 with one thread takes 85 MB."""
_THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Programs of the user, which inherit the environment, have as many as they like."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before


def _require_room() -> None:
    if not memory_is_limited():
        return
    try:
        mmap(-1, _ROOM_BYTES).close()
    except OSError as error:
        raise MemoryError from error


_require_room()
with _one_thread():
    import numpy as np
    import numpy.typing as npt
