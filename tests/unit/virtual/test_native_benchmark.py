"""The prototype in C does with packets what the virtual ports do."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import pytest

from benchmarks import native

NEEDS = shutil.which("clang") and Path(sysconfig.get_paths()["include"], "Python.h").exists()


@pytest.mark.skipif(not NEEDS, reason="clang or Python's headers are missing")
@pytest.mark.parametrize("hosts", [1, 2, 9])
def test_both_have_the_same_times_marks_and_counts(tmp_path: Path, hosts: int) -> None:
    wanted = native.bursts(hosts, 600)
    ours, theirs = native.as_it_is(wanted), native.in_c(native.built(tmp_path), wanted)
    assert ours.arrived == theirs.arrived
    assert ours.rows == theirs.rows
    assert len(ours.arrived) == wanted.packets
