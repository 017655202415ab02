"""What a person is told of programs of the user: how they ended, how long they took, and what CPU time."""

from __future__ import annotations

from collections.abc import Sequence

from mrc_testbed.testbed.checks.programs import cpu_shares, ends_of
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.scenario.model.jobs import NamedJob
from mrc_testbed.topos.units import plural


def program_headline(record: RunRecord, job: NamedJob) -> str:
    """`2 programs ended with 0, the last after 20.3 s`; of several jobs, with its name."""
    whose = f"{job.name}: " if len(record.scenario.jobs) > 1 else ""
    return f"{whose}{_how_ended(record, job.host_names(record.scenario.shape()))}"


def program_line(record: RunRecord, job: NamedJob) -> str:
    """The same, with the CPU time that they took, and why the first one failed."""
    hosts = job.host_names(record.scenario.shape())
    shares = cpu_shares(record)
    took = sum(shares.get(host, 0.0) for host in hosts)
    cpu = f", {took:.0%} of the machine's CPU time" if shares else ""
    failed = next((notice for notice in record.program_failures if notice.host in hosts), None)
    return _how_ended(record, hosts) + cpu + (f"; {failed.host}: {failed.reason}" if failed else "")


def _how_ended(record: RunRecord, hosts: Sequence[str]) -> str:
    ends = list(ends_of(record, hosts))
    good = sum(end.status == 0 and not end.killed for end in ends)
    count = plural(len(hosts), "program")
    if not ends:
        return f"{count}, none ended"
    how = f"{count} ended with 0" if good == len(hosts) else f"{good} of {count} ended with 0"
    return f"{how}, the last after {amount(Dimension.TIME, max(end.end_ns - end.begin_ns for end in ends))}"
