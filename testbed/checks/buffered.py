"""Lines of programs that came together: of the time between them nothing is known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import NoData

_MOST = 0.1
"""The part of a program's lines that a late reader may take up with the line before."""


def require_lines_in_time(record: RunRecord, jobs: Iterable[str]) -> None:
    """Raises NoData where a program of one of these jobs ended steps in lines that came in one read: then its output is
    held in a buffer, and no step has a time of its own."""
    shape = record.scenario.shape()
    wanted = set(jobs)
    for job in record.scenario.job.programs:
        for host in job.host_names(shape) if job.name in wanted else ():
            require_apart(host, [one.end_ns for one in record.completions if one.host == host])


def require_apart(host: str, times_ns: Sequence[int]) -> None:
    """The same of the lines of one host, in order. Lines of one read have the same time."""
    together = sum(one == other for one, other in pairwise(times_ns))
    if together > _MOST * len(times_ns):
        how = "flush it (stdbuf -oL, --forceflush, python3 -u)"
        raise NoData(f"{together + 1} of {len(times_ns)} lines of {host} came together: its output is buffered; {how}")
