"""Shares of a sweep, for those who start processes by number: a SLURM array, a matrix of a workflow. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.sweep.folder import SweepCell

MOST_JOBS = 256
"""Of one matrix of a GitHub workflow."""


def share_of(cells: Sequence[SweepCell], index: int, of: int) -> list[SweepCell]:
    """The cells of one share, in their order: always the same ones, each in one share, as many in each as in any other
    but for one. Chance deals them out, so that no share has all cells of one setting: a slow machine is then slow for
    all settings alike. Raises UsageError for a share that is not there."""
    if not 0 <= index < of:
        raise UsageError(f"--index {index} --of {of}: shares are counted from 0 to {of - 1}")
    found = []
    for begin in range(0, len(cells), of):
        turn = list(range(of))
        Random(f"{of} {begin}").shuffle(turn)
        if turn[index] < len(cells) - begin:
            found.append(cells[begin + turn[index]])
    return found


def job_matrix(cells: int, jobs: int) -> dict[str, Any]:
    """For `strategy.matrix` of a workflow: a job a share, none of them empty."""
    of = min(jobs, MOST_JOBS, cells)
    return {"include": [{"index": index, "of": of} for index in range(of)]}
