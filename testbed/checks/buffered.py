"""Lines of programs that came together: of the time between them nothing is known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import NoData

_MOST = 0.1
"""The part of a program's lines that a late reader may take up with the line before."""
_FLUSH = "its output is buffered (stdbuf -oL, --forceflush, python3 -u)"


def require_lines_in_time(record: RunRecord, jobs: Iterable[str]) -> None:
    """Raises NoData where steps of a program in one of these jobs are shorter than half of T: nothing can have come
    from another host in that time. So its lines come late, or some of them end no step."""
    shape = record.scenario.shape()
    wanted = set(jobs)
    for job in record.scenario.job.programs:
        for host in job.host_names(shape) if job.name in wanted else ():
            steps = [one for one in record.completions if one.host == host]
            short = sum(one.end_ns - one.begin_ns < max(1, shape.rtt_ns // 2) for one in steps)
            if short > _MOST * len(steps):
                why = "in which nothing comes from another host"
                said = f"{short} of {len(steps)} steps of {host} took less than T/2, {why}"
                raise NoData(f"{said}: {_FLUSH}, or `step` matches lines that end none")


def require_apart(host: str, times_ns: Sequence[int]) -> None:
    """Raises NoData where lines of a host, in order, came in one read: they have the same time."""
    together = sum(one == other for one, other in pairwise(times_ns))
    if together > _MOST * len(times_ns):
        raise NoData(f"{together + 1} of {len(times_ns)} lines of {host} came together: {_FLUSH}")
