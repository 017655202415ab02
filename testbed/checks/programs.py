"""Figures of the user's programs: how they ended, and the numbers that they printed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from signal import Signals

from mrc_testbed.testbed.checks.buffered import require_apart, require_lines_in_time
from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.ends import End, How, Stop, stop_of
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scope import hosts_of
from mrc_testbed.testbed.checks.windows import KnownBetween, NoData, in_words, moments, nothing, workload_ns
from mrc_testbed.testbed.expect import Scope, Span, Window
from mrc_testbed.testbed.expect.metrics import PROGRAM
from mrc_testbed.testbed.rundir.tables import KILLED, ProgramEnd
from mrc_testbed.testbed.scenario.model.workloads import NamedPrograms


@derived
def programs_by_host(record: RunRecord) -> dict[str, NamedPrograms]:
    """The programs of the user that each host ran one of."""
    shape = record.scenario.shape()
    return {host: job for job in record.scenario.job.programs for host in job.host_names(shape)}


def hosts_with_programs(record: RunRecord, scope: Scope) -> list[str]:
    """Those of a scope. Raises NoData where there are none."""
    mine = hosts_of(record, scope)
    return [host for host in programs_by_host(record) if host in mine] or nothing("no program of the user ran there")


@derived
def program_ends(record: RunRecord) -> dict[str, End]:
    """By host how its program ended. Raises NoData if the workload never began."""
    workload_ns(record)
    stop, rows = stop_of(record), {one.host: one for one in record.programs}
    of_jobs = {host: record.ends[job.name] for host, job in programs_by_host(record).items()}
    return {host: _end(host, rows.get(host), end, stop) for host, end in of_jobs.items()}


def _end(host: str, row: ProgramEnd | None, of_job: End, stop: Stop) -> End:
    if row and row.killed == KILLED:
        return End(host, How.STOPPED, row.end_ns, "it took too long, or had too many processes", overdue=True)
    if row and not row.killed:
        crashed = f"killed by {Signals(-row.status).name}" if row.status < 0 else ""
        failed = crashed or (f"status {row.status}" if row.status else "")
        return End(host, How.FAULT if crashed else How.ITSELF, row.end_ns, failed)
    if of_job.error:
        return End(host, How.FAULT, of_job.t_ns, error=of_job.error)
    if row and row.end_ns < stop.t_ns:
        return End(host, How.STOPPED, row.end_ns, "another program of its job had failed")
    return End(host, How.STOPPED, stop.t_ns, stop.why, overdue=stop.overdue)


@computes("programs_failed")
def programs_failed(record: RunRecord, window: Window) -> float:
    """How many of them did not end with status 0 by themselves. Raises KnownBetween where the testbed stopped some,
    NoData if there were none."""
    ends = [program_ends(record)[host] for host in hosts_with_programs(record, window.scope)]
    failed, stopped = sum(end.unfinished is True for end in ends), [end for end in ends if end.unfinished is None]
    if stopped:
        raise KnownBetween(f"the testbed stopped programs ({stopped[0].why})", [failed], [failed + len(stopped)])
    return failed


@computes("program_time")
def program_times(record: RunRecord, window: Window) -> Sequence[float]:
    """How long each program ran, in ns. Raises KnownBetween where the testbed stopped some, NoData without any."""
    ends, begin_ns = program_ends(record), {one.host: one.begin_ns for one in record.programs}
    start_ns, _ = workload_ns(record)
    mine = [ends[host] for host in hosts_with_programs(record, window.scope)]
    took = [float(end.t_ns - begin_ns.get(end.name, start_ns)) for end in mine]
    if stopped := [end for end in mine if end.how is How.STOPPED]:
        longest = [inf if end in stopped else time for end, time in zip(mine, took, strict=True)]
        raise KnownBetween(f"the program of {stopped[0].name} was stopped: {stopped[0].why}", took, longest)
    return took


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
