"""`verbs.join`: the ranks of a job find each other; the shipped all-reduce is right, and sees what is wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mrc_testbed import verbs
from tests.libmrc.jobs import EXAMPLE, outcomes, ranks
from tests.libmrc.memory_daemon import MemoryDaemon


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_example_sums_over_all_ranks(tmp_path: Path, size: int) -> None:
    with MemoryDaemon(tmp_path, size) as daemon:
        found = outcomes(ranks(daemon, [sys.executable, str(EXAMPLE)], ROUNDS="3", WEIGHTS="1000"))
    for status, out in found:
        assert (status, out.splitlines()) == (0, [f"step {step} done" for step in range(3)])


def test_the_example_sees_a_wrong_sum(tmp_path: Path) -> None:
    """A daemon that spoils a byte of the data of one write."""

    class Spoiling(MemoryDaemon):
        spoilt = False

        def _carry_out(self, qp, far, write):
            done = super()._carry_out(qp, far, write)
            if write["length"] and not self.spoilt:
                self.spoilt = True
                os.pwrite(far.program.memory, b"\x3f", write["remote_address"] + 7)
            return done

    with Spoiling(tmp_path, 3) as daemon:
        found = outcomes(ranks(daemon, [sys.executable, str(EXAMPLE)], ROUNDS="1", WEIGHTS="999"))
    assert any(status and "wrong" in out for status, out in found)


ALONE = "from mrc_testbed import verbs; verbs.join(timeout=1)"


def test_a_rank_that_stays_away_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with MemoryDaemon(tmp_path) as daemon:
        first, second = ranks(daemon, [sys.executable, "-c", ALONE])
        second.kill()
        second.communicate()
        status, out = outcomes([first])[0]
    assert status == 1
    assert "not all 2 ranks came" in out or "has gone" in out


def test_a_rank_outside_a_job_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MRC_RANK", "RANK", "MRC_WORLD_SIZE", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(verbs.VerbsError, match="RANK is not set"):
        verbs.join()
    monkeypatch.setenv("MRC_RANK", "2")
    monkeypatch.setenv("MRC_WORLD_SIZE", "2")
    with pytest.raises(verbs.VerbsError, match="rank 2 of 2"):
        verbs.join()
