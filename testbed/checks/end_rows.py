"""How each job, flow and program of a run ended, and which QPs failed, as rows of verdict.json. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mrc_testbed.testbed.checks.ends import End
from mrc_testbed.testbed.checks.programs import program_ends
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.rundir.tables import ClockNs


@dataclass(frozen=True, slots=True)
class EndRow:
    """`what`: `job`, `flow`, `program` or `qp`. `name`: of a program its host, of a QP its own. `host`: of a QP the end
    that saw it fail. `how`: as `How` says. `why`: it was stopped, or how it failed; empty where all was well."""

    what: str
    name: str
    host: str
    how: str
    t_ns: ClockNs
    why: str


def end_rows(record: RunRecord) -> tuple[EndRow, ...]:
    """Jobs, flows, programs, and the QPs that failed; none if the workload never began."""
    return tuple(_rows(record)) if record.start_ns is not None else ()


def _rows(record: RunRecord) -> Iterator[EndRow]:
    jobs = {job.name for job in record.scenario.jobs}
    for end in record.ends.values():
        yield _row("job" if end.name in jobs else "flow", end)
    for end in program_ends(record).values():
        yield _row("program", end)
    for seen in record.qp_errors:
        yield EndRow("qp", seen.qp, seen.host, "by a fault", seen.t_ns, seen.reason)


def _row(what: str, end: End) -> EndRow:
    return EndRow(what, end.name, "", end.how.value, end.t_ns, end.error.reason if end.error else end.why)
