"""The bytes that rank programs work on: every rank's block, their sum, and how blocks are added and compared."""

from __future__ import annotations

import random
from itertools import count
from math import gcd

_XOR_BYTES = 1 << 14
_STRIDE = 8209


def base_block(data_seed: int, rank: int, size: int) -> bytes:
    """The bytes that a rank's inputs are made of: the same on every machine for the same seed."""
    return random.Random(f"{data_seed}/{rank}").randbytes(size)


def reduced_block(data_seed: int, ranks: int, size: int) -> bytes:
    """The XOR of the base blocks of all ranks."""
    total = 0
    for rank in range(ranks):
        total ^= int.from_bytes(base_block(data_seed, rank, size), "little")
    return total.to_bytes(size, "little")


class Rotating:
    """A block that every step sees rotated by another distance, without copying it."""

    def __init__(self, block: bytes) -> None:
        self._size = len(block)
        self._twice = memoryview(block + block)
        # Coprime to the length, so that no distance repeats before it must.
        self._stride = next(stride for stride in count(_STRIDE) if gcd(stride, self._size) == 1)

    def at(self, step: int) -> memoryview:
        """The block as step `step` sees it."""
        shift = step * self._stride % self._size
        return self._twice[shift : shift + self._size]


def xor_into(target: memoryview, source: memoryview) -> None:
    """target ^= source. Blocks of 16 KiB stay in the first-level cache: 2.6 ns a byte, against 4.2 with 64 KiB."""
    for at in range(0, len(target), _XOR_BYTES):
        into = target[at : at + _XOR_BYTES]
        result = int.from_bytes(into, "little") ^ int.from_bytes(source[at : at + _XOR_BYTES], "little")
        into[:] = result.to_bytes(len(into), "little")


def wrong_bytes(found: memoryview, right: memoryview) -> int:
    """How many bytes differ between two blocks of equal length."""
    # Comparing the views themselves goes byte by byte and takes sixty times as long.
    if bytes(found) == bytes(right):
        return 0
    difference = int.from_bytes(found, "little") ^ int.from_bytes(right, "little")
    return len(right) - difference.to_bytes(len(right), "little").count(0)
