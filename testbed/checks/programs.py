"""Figures of the user's programs: how they ended, and the numbers that they printed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from mrc_testbed.testbed.checks.buffered import require_apart, require_lines_in_time
from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scope import hosts_of
from mrc_testbed.testbed.checks.windows import NoData, in_words, moments, nothing, workload_ns
from mrc_testbed.testbed.expect import Scope, Span, Window
from mrc_testbed.testbed.expect.metrics import PROGRAM
from mrc_testbed.testbed.rundir.tables import ProgramEnd


def hosts_with_programs(record: RunRecord, scope: Scope) -> list[str]:
    """Those of a scope. Raises NoData where there are none."""
    shape = record.scenario.shape()
    having = [host for job in record.scenario.job.programs for host in job.host_names(shape)]
    mine = hosts_of(record, scope)
    return [host for host in having if host in mine] or nothing("no program of the user ran there")


def failed_programs(record: RunRecord, scope: Scope) -> list[str]:
    """Hosts of a scope whose programs did not end with 0 by themselves. Raises NoData if the workload never began."""
    workload_ns(record)
    good = {one.host for one in record.programs if one.status == 0 and not one.killed}
    return [host for host in hosts_with_programs(record, scope) if host not in good]


@computes("programs_failed")
def programs_failed(record: RunRecord, window: Window) -> float:
    """How many of them did not end with status 0 by themselves. Raises NoData if there were none."""
    return len(failed_programs(record, window.scope))


@computes("program_time")
def program_times(record: RunRecord, window: Window) -> Sequence[float]:
    """How long each program ran, in ns. Raises NoData while one of them has not ended."""
    hosts = hosts_with_programs(record, window.scope)
    found = {one.host: one.end_ns - one.begin_ns for one in ends_of(record, hosts)}
    if lacking := [host for host in hosts if host not in found]:
        raise NoData(f"the program of {lacking[0]} did not end")
    return list(found.values())


def ends_of(record: RunRecord, hosts: Sequence[str]) -> Iterator[ProgramEnd]:
    """How the programs of these hosts ended."""
    return (one for one in record.programs if one.host in hosts)


def cpu_shares(record: RunRecord) -> dict[str, float]:
    """What the program of each host took of the CPU time that the machine had while programs ran, all together at most
    all of it: they may have taken some before they began. Empty where that is not known."""
    cpus = record.environment.get("cpus")
    spans = [(one.begin_ns, one.end_ns) for one in record.programs]
    whole_ns = max(end for _, end in spans) - min(begin for begin, _ in spans) if spans else 0
    if not isinstance(cpus, int) or cpus < 1 or whole_ns < 1:
        return {}
    had_ns = max(whole_ns * cpus, sum(one.cpu_ns for one in record.programs))
    return {one.host: one.cpu_ns / had_ns for one in record.programs}


def printed_values(record: RunRecord, window: Window, metric: str, stat: str | None = None) -> Sequence[float]:
    """What programs printed for a figure in the window, in order of time. The last value is that of the last step.
    Raises NoData if that was nothing."""
    hosts, inside = hosts_with_programs(record, window.scope), moments(record, window)
    figure = metric.removeprefix(PROGRAM)
    printed = [one for one in record.printed if one.figure == figure and one.host in hosts and inside(one.t_ns)]
    if stat == "last" and window.span is Span.RUN:
        require_lines_in_time(record, [job.name for job in record.scenario.job.programs])
        begins = {step.host: step.begin_ns for step in record.completions}  # in order of time
        last_ns = {one.host: one.t_ns for one in printed}
        for host in (host for host, t_ns in last_ns.items() if t_ns <= begins.get(host, -inf)):
            raise NoData(f"{host} printed no {figure} in its last step")
    for host in hosts if window.span is not Span.RUN else ():
        require_apart(host, [one.t_ns for one in record.printed if one.host == host and one.figure == figure])
    return [one.value for one in printed] or nothing(f"no program printed {figure}{in_words(window)}")
