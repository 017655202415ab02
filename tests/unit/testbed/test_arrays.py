"""numpy is loaded with one thread, and not at all where it would end the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of address space")
def test_too_little_memory_for_it_is_an_error_and_ends_no_process() -> None:
    """With 100 to 150 MB a run ended by status 1, that of a check that failed, and a word of OpenBLAS."""
    done = loaded("resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))")
    assert done.stderr.endswith("MemoryError\n")
    assert "OpenBLAS" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_it_has_one_thread_and_programs_of_the_user_are_told_nothing() -> None:
    told = "print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'))"
    assert loaded("", told).stdout == "1 None\n"


def loaded(before: str, after: str = "") -> subprocess.CompletedProcess[str]:
    lines = ("import os, resource", before, "import mrc_testbed.testbed.arrays", after)
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    words = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)


def test_numpy_is_loaded_in_one_place() -> None:
    """Frames are for the user's own process, which may have loaded it before, and pandas loads it in any case."""
    root = Path(__file__).parents[3]
    found = (
        path.relative_to(root) for folder in ("hosts", "testbed", "topos") for path in (root / folder).rglob("*.py")
    )
    loading = {str(path) for path in found if "import numpy" in (root / path).read_text(encoding="utf-8")}
    assert loading == {"testbed/arrays.py", "testbed/report/frames/read.py"}
