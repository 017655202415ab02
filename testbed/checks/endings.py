"""Which ranks and flows came to their end. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.ends import End, How, stop_of
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scope import ends_in, hosts_of, job_by_host, scope_of
from mrc_testbed.testbed.checks.windows import KnownBetween, workload_ns
from mrc_testbed.testbed.expect import EVERYBODY, Scope, Window


@derived
def steps_by_rank(record: RunRecord) -> dict[str, int]:
    """How many steps each rank finished, warm-up included. Raises NoData when the workload never began."""
    workload_ns(record)
    done = {(one.host, one.step) for one in record.completions}
    return {
        host: sum((host, step) in done for step in range(wanted)) for host, wanted in wanted_by_rank(record).items()
    }


@derived
def wanted_by_rank(record: RunRecord) -> dict[str, int]:
    """How many steps each rank has to finish, warm-up included."""
    wanted = {host: job.entry.total_steps for host, job in job_by_host(record).items()}
    return {host: steps for host, steps in wanted.items() if steps}  # not known of every program of the user


def unfinished_ranks(record: RunRecord, scope: Scope = EVERYBODY) -> list[str]:
    """The ranks of a scope that did not finish all steps. Raises NoData when the workload never began."""
    done, wanted = steps_by_rank(record), wanted_by_rank(record)
    return [host for host in hosts_of(record, scope) if host in wanted and done[host] < wanted[host]]


def _behind(record: RunRecord, scope: Scope) -> Iterator[tuple[End, int]]:
    """How many ranks of each job did not finish all steps, and 1 for each flow that did not end."""
    mine = set(unfinished_ranks(record)) & set(hosts_of(record, scope))
    for end in ends_in(record, scope):
        job = record.scenario.job.job_named(end.name)
        ranks = mine.intersection(hosts_of(record, scope_of(end.name))) if job else ()
        yield end, len(ranks) if job else int(end.how is not How.ITSELF)


@computes("unfinished")
def unfinished(record: RunRecord, window: Window) -> float:
    """Ranks that did not finish all steps, and flows that did not end. At least 1 while senders still wait for
    acknowledgements, or a program runs. Raises KnownBetween where the testbed stopped some, NoData when the workload
    never began."""
    behind = list(_behind(record, window.scope))
    surely = sum(count for end, count in behind if end.unfinished)
    stopped = [(end.why, count) for end, count in behind if end.unfinished is None and count]
    if window.scope == EVERYBODY and not surely and not stopped and not record.workload_done:
        stop = stop_of(record)
        surely, stopped = (1, []) if stop.overdue or record.death else (0, [(stop.why, 1)])
    if stopped:
        reason = f"the testbed stopped what may have ended well ({stopped[0][0]})"
        raise KnownBetween(reason, [surely], [surely + sum(count for _, count in stopped)])
    return float(surely)
