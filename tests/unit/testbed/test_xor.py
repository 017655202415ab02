"""Both ways to add training data are equal, whatever the lengths and the places in memory."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.blocks import xor_into
from mrc_testbed.testbed.fabric import forker
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


def test_who_enters_the_namespaces_of_a_run_has_no_threads() -> None:
    """numpy starts one, and setns(2) then refuses: `attach` said that it needs root to who runs without."""
    program = "import os, mrc_testbed.testbed.app.attach; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_the_forker_names_it() -> None:
    module, name = forker._XOR.split(":")
    assert getattr(import_module(module), name) is xor_arrays
