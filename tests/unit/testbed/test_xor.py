"""Both ways to add training data are equal, whatever the lengths and the places in memory."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.blocks import xor_into
from mrc_testbed.testbed.xor import xor_arrays


@given(st.integers(0, 70_000), st.integers(0, 9), st.integers(0, 9), st.randoms(use_true_random=False))
def test_numpy_adds_as_the_standard_library_does(length: int, before: int, shift: int, random: Random) -> None:
    source = memoryview(random.randbytes(shift + length))[shift:]
    start = random.randbytes(before + length + 3)
    plain, fast = bytearray(start), bytearray(start)
    xor_into(memoryview(plain)[before : before + length], source)
    xor_arrays(memoryview(fast)[before : before + length], source)
    assert plain == fast
    assert plain[:before] == start[:before]
    assert plain[before + length :] == start[before + length :]
