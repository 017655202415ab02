"""Checks of every run: did the requested run take place, and did data move? Pure.

How a job ends yields to one thing alone: the expectations state a death, and it happened. A loose bound, such as
`unfinished <= 2`, leaves the check where it is.

If the testbed did not do its part (a fault not injected, a fabric unlike its plan), nothing is known about the
transport: that is inconclusive, not a fail.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from math import inf

from mrc_testbed.testbed.checks.compare import holds
from mrc_testbed.testbed.checks.endings import steps_by_rank, wanted_by_rank
from mrc_testbed.testbed.checks.ends import How, stop_of
from mrc_testbed.testbed.checks.guard import guarded
from mrc_testbed.testbed.checks.metrics import bytes_wrong
from mrc_testbed.testbed.checks.programs import program_ends, programs_by_host
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.checks.scope import ends_in, flows_in, job_by_host
from mrc_testbed.testbed.checks.windows import NoData, Outage, outages, workload_ns
from mrc_testbed.testbed.expect import EVERYBODY, Expectation, Span, Window
from mrc_testbed.testbed.expect.vocabulary import Dimension, Severity
from mrc_testbed.testbed.expect.window import WHOLE_RUN
from mrc_testbed.testbed.rundir.lines import Party
from mrc_testbed.testbed.scenario import Occurrence
from mrc_testbed.topos.units import some

FINISHED = "every rank finished all steps"
ENDED = "every flow moved data and ended"
MOVED = "data were moved"
INTACT = "all data arrived as sent"
FAULTS_DONE = "every fault was injected and healed"
AS_PLANNED = "the fabric was as planned"
PROGRAMS_ENDED = "every program ended with 0"
STEPS_PRINTED = "programs printed steps"
CARRIED = ("gateway_in_bytes", "verbs_in_bytes")
"""Counters of what a host got for its programs: bytes of IP packets, and bytes that peers wrote into their memory."""
MAX_FAULT_LATENESS_NS = 250_000_000
"""A fault that is this late (or 5 T, if longer) is not the requested one."""
Check = Callable[[RunRecord], CheckResult]
READ_BACKS = ("verify", "settle")
"""Phases in which the kernel is compared with the plan: after the build, and after the last heal."""


def builtin_checks(record: RunRecord) -> Iterator[CheckResult]:
    """The checks in display order: how programs ended, before what follows from it."""
    decisive = [wanted for wanted in record.scenario.expect if wanted.level is Severity.ERROR and not wanted.elsewhere]
    dead = _stated_deaths(record, decisive)
    checks = {**_of_programs(record, decisive, dead), **_of_jobs(record, decisive, dead)}
    checks[AS_PLANNED] = as_planned
    if record.occurrences:
        checks[FAULTS_DONE] = faults_done
    told = _asks_for_none(decisive, "bytes_wrong") or (bool(dead) and _nothing_arrived(record))
    if not told and not _only_programs(record):
        checks[INTACT] = intact
    for name, check in checks.items():
        yield guarded(name, None, partial(check, record))


def _of_jobs(record: RunRecord, decisive: Sequence[Expectation], dead: Container[str]) -> dict[str, Check]:
    """How jobs and flows ended, unless an expectation says the same; and whether anything moved."""
    checks: dict[str, Check] = {}
    asked = _asks_for_none(decisive, "unfinished")
    jobs = [job for job in record.scenario.jobs if job.name not in dead]
    if any(job.entry.total_steps for job in jobs) and not asked:
        checks[FINISHED] = partial(finished, dead=dead)
    if jobs:
        checks[MOVED] = moved
    if any(flow.name not in dead for flow in flows_in(record, EVERYBODY)) and not asked:
        checks[ENDED] = partial(ended, dead=dead)
    return checks


def _of_programs(record: RunRecord, decisive: Sequence[Expectation], dead: Container[str]) -> dict[str, Check]:
    """How programs of the user ended, unless an expectation says the same; and whether they were understood."""
    programs = [job for job in record.scenario.job.programs if job.name not in dead]
    checks: dict[str, Check] = {}
    if programs and not (_asks_for_none(decisive, "programs_failed") or any(map(_states_failures, decisive))):
        checks[PROGRAMS_ENDED] = partial(programs_ended, dead=dead)
    if any(job.entry.step for job in programs):
        checks[STEPS_PRINTED] = steps_printed
    return checks


def _only_programs(record: RunRecord) -> bool:
    """Whether only programs of the user sent data, which they alone can compare."""
    return len(record.scenario.jobs) == len(record.scenario.job.programs) and not record.scenario.job.flows


def _stated_deaths(record: RunRecord, decisive: Sequence[Expectation]) -> frozenset[str]:
    """The jobs and flows that a failed QP ended, as an expectation asks for."""
    scopes = [wanted.figure.scope for wanted in decisive if _states_death(wanted)] if record.death else []
    whom = [EVERYBODY if scope.each else scope for scope in scopes]
    return frozenset(end.name for scope in whom for end in ends_in(record, scope) if end.error)


def _states_death(wanted: Expectation) -> bool:
    """Whether it holds only for a job or a flow that a failed QP ended: then how that ended is as it was asked for."""
    name = wanted.metric.name
    if name == "died_at":
        return True
    return name in ("job_died", "unfinished") and wanted.figure.window.span is Span.RUN and not holds(wanted, 0)


def _asks_for_none(decisive: Sequence[Expectation], metric: str) -> bool:
    """Whether a line is the same check in the words of the scenario: none of this in the whole run."""
    return any(
        wanted.metric.name == metric
        and wanted.figure.window == WHOLE_RUN
        and wanted.op in ("==", "<=", "<")
        and holds(wanted, 0)
        and not holds(wanted, 1)
        for wanted in decisive
    )


def _states_failures(wanted: Expectation) -> bool:
    """It holds only where programs fail: then how they ended is as it was asked for, or the line itself fails."""
    return wanted.metric.name == "programs_failed" and wanted.figure.scope == EVERYBODY and not holds(wanted, 0)


def _nothing_arrived(record: RunRecord) -> bool:
    """Whether there is nothing to compare, as where a job dies in its first step."""
    try:
        bytes_wrong(record, Window())
    except NoData:
        return True
    return False


def finished(record: RunRecord, dead: Container[str] = ()) -> CheckResult:
    """All ranks finished all steps of their job, those of `dead` jobs apart. Of the rank that lacks most. Raises NoData
    if the workload never began."""
    steps, wanted, job_of = steps_by_rank(record), wanted_by_rank(record), job_by_host(record)
    counts = {host: count for host, count in steps.items() if job_of[host].name not in dead}
    behind = [host for host in counts if counts[host] < wanted[host]]
    surely = [host for host in behind if record.ends[job_of[host].name].unfinished is not None]
    lowest = min(surely or behind or counts, key=lambda host: counts[host] - wanted[host])
    why = f"{len(surely or behind)} of {len(counts)} ranks did not; {lowest} ended after {counts[lowest]}"
    return _of_ends(record, FINISHED, (counts[lowest], wanted[lowest]), why, bool(surely), bool(behind))


def _of_ends(
    record: RunRecord,
    name: str,
    counts: tuple[int, int],
    why: str,
    failed: bool,
    open_: bool,
    who: Party = Party.NETWORK,
) -> CheckResult:
    """How something ended. `counts`: the observed one, and the one that is right. `why`: what did not end well;
    `failed`: surely; `open_`: that is not known, for the testbed stopped it."""
    status = Status.FAIL if failed else Status.INCONCLUSIVE if open_ else Status.PASS
    if status is not Status.PASS:
        why += _first_reason(record) if failed else f": the testbed stopped them ({stop_of(record).why})"
    told = "" if status is Status.PASS else why
    return CheckResult(name, status, counts[0], f"== {counts[1]}", why=told, who=who if failed else Party.SCENARIO)


def _first_reason(record: RunRecord) -> str:
    reasons = [f"{notice.host}: {notice.reason}" for notice in (*record.fatals, *record.program_failures)]
    reasons += [line.error for line in record.history if line.type == "fail" and line.error]  # these name the QP
    reasons += [f"{notice.host}: {notice.reason}" for notice in record.qp_errors]
    return f" ({reasons[0]})" if reasons else ""


def ended(record: RunRecord, dead: Container[str] = ()) -> CheckResult:
    """All flows but those that are `dead` ended: the last message of each QP arrived, and senders had all their data
    acknowledged.

    Raises NoData if the workload never began.
    """
    workload_ns(record)
    flows = [record.ends[flow.name] for flow in flows_in(record, EVERYBODY) if flow.name not in dead]
    lacking = [end for end in flows if end.how is not How.ITSELF]
    surely = [end for end in lacking if end.unfinished]
    waiting = not record.workload_done and all(end.how is How.ITSELF for end in record.ends.values())
    failed = bool(surely) or (waiting and stop_of(record).overdue)
    names = [end.name for end in surely or lacking]
    why = f"{some(names)} did not" if names else "senders were not done"
    return _of_ends(record, ENDED, (len(flows) - len(lacking), len(flows)), why, failed, bool(lacking) or waiting)


def moved(record: RunRecord) -> CheckResult:
    """At least one byte moved. Raises NoData if the workload never began."""
    workload_ns(record)
    total = sum(one.bytes for one in record.completions)
    total += sum(counters.get(name, 0) for counters in record.counters.values() for name in CARRIED)
    if total > 0 or not _only_programs(record):
        return CheckResult(MOVED, Status.PASS if total > 0 else Status.FAIL, total / (1 << 20), "> 0", "MiB")
    unread = [words for job in record.scenario.job.programs for line in job.entry.all_commands for words in line.shell]
    why = "; ".join(["no program sent anything to another host over mrc0", *unread[:1]])
    return CheckResult(MOVED, Status.FAIL, 0.0, "> 0", "MiB", why, who=Party.PROGRAM)


def programs_ended(record: RunRecord, dead: Container[str] = ()) -> CheckResult:
    """All programs of the user ended with 0 by themselves, those of `dead` jobs apart. Raises NoData if the workload
    never began."""
    ends, excused = program_ends(record), {end.error for end in record.ends.values() if end.name in dead}
    lacking = [end for end in ends.values() if end.unfinished is not False and end.error not in excused - {None}]
    surely = [end.name for end in lacking if end.unfinished]
    names = surely or [end.name for end in lacking]
    why = f"{some(names)} did not"
    return _of_ends(record, PROGRAMS_ENDED, (len(names), 0), why, bool(surely), bool(lacking), Party.PROGRAM)


def steps_printed(record: RunRecord) -> CheckResult:
    """The pattern that ends a step matched something. Raises NoData if the workload never began."""
    workload_ns(record)
    stepped = {one.host for one in record.completions}
    step_of = {host: job.entry.step for host, job in programs_by_host(record).items()}
    silent = [host for host, step in step_of.items() if step and host not in stepped]
    why = f"no line of {silent[0]} matched {step_of[silent[0]]!r}" if silent else ""
    status = Status.FAIL if silent else Status.PASS
    return CheckResult(STEPS_PRINTED, status, len(silent), "== 0", why=why, who=Party.PROGRAM)


def intact(record: RunRecord) -> CheckResult:
    """No byte differs. Raises NoData if there was nothing to compare."""
    wrong = bytes_wrong(record, Window())
    return CheckResult(INTACT, Status.FAIL if wrong else Status.PASS, wrong, "== 0", "B", hard=True)


def faults_done(record: RunRecord) -> CheckResult:
    """Every occurrence of every fault was injected and healed in time."""
    done = outages(record)
    healed = {outage.occurrence.key: outage.healed_ns is not None for outage in done}
    declared = [occurrence.key for occurrence in record.occurrences if not _after_death(record, occurrence)]
    good = sum(healed.get(key, False) for key in declared)
    lacking = [f"{key[0]} cycle {key[1]}: never injected" for key in declared if key not in healed]
    lacking += [f"{key[0]} cycle {key[1]}: never healed" for key in declared if not healed.get(key, True)]
    late = _late(record, done)
    errors = [line.error for line in record.history if line.op in ("inject", "heal") and line.type == "fail"]
    status = Status.INCONCLUSIVE if lacking or late or errors else Status.PASS
    why = "; ".join([*(lacking + late)[:2], *errors[:1]])
    spoiled = bool(late) and not lacking and not errors
    return CheckResult(FAULTS_DONE, status, good, f"== {len(declared)}", "", why, late=spoiled, who=Party.MACHINE)


def _after_death(record: RunRecord, due: Occurrence) -> bool:
    """A run ends soon after the last job of it died, and so where programs failed: what was due later could not be
    done."""
    if record.start_ns is None:
        return False
    failed = any(end.unfinished is not False for end in program_ends(record).values())
    return record.start_ns + due.begin_ns > (record.end_ns if record.death or failed else inf)


def _late(record: RunRecord, done: list[Outage]) -> list[str]:
    """Actions that the testbed did too late. An early heal is the end of the workload."""
    if record.start_ns is None:
        return []
    planned = {occurrence.key: occurrence for occurrence in record.occurrences}
    limit_ns = max(MAX_FAULT_LATENESS_NS, 5 * record.scenario.shape().rtt_ns)
    found = []
    for outage in done:
        due = planned.get(outage.occurrence.key)
        if due is None:
            continue
        begun = outage.injected_ns - record.start_ns - due.begin_ns
        healed = (outage.healed_ns or 0) - record.start_ns - due.end_ns
        for action, late_ns in (("injected", begun), ("healed", healed)):
            if late_ns > limit_ns:
                found.append(f"{outage.fault} cycle {outage.number}: {action} {amount(Dimension.TIME, late_ns)} late")
    return found


def as_planned(record: RunRecord) -> CheckResult:
    """The kernel was read back equal to the plan, before the workload and after the last heal."""
    phases = [line for line in record.history if line.op == "phase" and line.phase in READ_BACKS]
    good = {line.phase for line in phases if line.type == "ok"}
    errors = [f"{line.phase}: {line.error or 'failed'}" for line in phases if line.type == "fail"]
    missing = [f"{phase}: not done" for phase in READ_BACKS if phase not in good]
    problems = errors or missing
    status = Status.INCONCLUSIVE if problems else Status.PASS
    why = "; ".join(problems)
    return CheckResult(AS_PLANNED, status, len(good), f"== {len(READ_BACKS)}", why=why, who=Party.MACHINE)
