"""A run in a few sentences: what was asked, what happened, whether the machine kept time. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.checks.fault_drops import Ignorance, sums_of
from mrc_testbed.testbed.checks.figure import evaluate_figure
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import recoveries
from mrc_testbed.testbed.checks.result import Fidelity, FidelityFigure, Status
from mrc_testbed.testbed.checks.scale import amount, number
from mrc_testbed.testbed.checks.steps import steps_by_job
from mrc_testbed.testbed.checks.unmet import unmet_words
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.evidence.events import QpPortMove
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.pages.report.steps import clean_median_ns, faults_during
from mrc_testbed.testbed.report import facts
from mrc_testbed.testbed.report.flow_facts import flow_headline
from mrc_testbed.testbed.report.packet_facts import lost_packets
from mrc_testbed.testbed.report.program_facts import program_headline
from mrc_testbed.testbed.scenario.model.jobs import NamedJob
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.topos.units import plural, some


def story(verdict: Verdict, record: RunRecord) -> dict[str, str]:
    """`why`: what prevents a pass, empty for one; `hint`: what to try; `asked`, `setup`, `happened`, `fidelity`:
    a sentence each."""
    return {
        "why": _why(verdict),
        "hint": verdict.next_step,
        "asked": asked(record),
        "setup": facts.fabric_line(record),
        "happened": happened(record),
        "fidelity": fidelity_sentence(verdict.fidelity),
    }


def _why(verdict: Verdict) -> str:
    """The reason in one line."""
    return verdict.reason


def asked(record: RunRecord) -> str:
    """In the words of the scenario, and then in numbers."""
    scenario = record.scenario
    about = scenario.about.strip().rstrip(".")
    return f"{about}: {_task(record)}." if about else f"{_task(record)[:1].upper()}{_task(record)[1:]}."


def _task(record: RunRecord) -> str:
    scenario = record.scenario
    work = [_work(job, len(job.host_names(scenario.shape()))) for job in scenario.jobs]
    if scenario.job.flows:
        work.append(plural(sum(flow.count for flow in scenario.flows.flows), "flow"))
    names = {occurrence.fault for occurrence in record.occurrences}
    times = f" in {len(record.occurrences)} occurrences" if len(record.occurrences) > len(names) else ""
    faults = f"{plural(len(names), 'fault')}{times}" if names else "no fault"
    expected = plural(len(scenario.expect), "expectation") if scenario.expect else "no expectation"
    return f"{' and '.join(work)}, {faults}, {expected}"


def _work(job: NamedJob, hosts: int) -> str:
    if not isinstance(job.entry, Programs):
        return f"{plural(job.entry.step_count, 'step')} by {plural(hosts, 'host')}"
    each = f" of {plural(job.entry.step_count, 'step')}" if job.entry.step_count else ""
    return f"{plural(hosts, 'program')}{each}"


def happened(record: RunRecord) -> str:
    """Work done, QPs, packets lost, paths given up and taken back; of a run that was broken off, when and why."""
    if record.start_ns is None:
        return f"The workload never began{_because(record.interrupted or _failed_phase(record))}."
    ended = "" if record.workload_done else f"It ended after {_run_time(record)}{_because(_end_reason(record))}: "
    happened = "; ".join(_happened(record))
    return f"{ended}{happened}." if ended else f"{happened[:1].upper()}{happened[1:]}."


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _end_reason(record: RunRecord) -> str:
    """Of an interruption nothing: the verdict's reason tells it."""
    return "" if record.interrupted else _failed_phase(record) or "its history does not say why"


def _failed_phase(record: RunRecord) -> str:
    failed = [line for line in record.history if line.op == "phase" and line.type == "fail"]
    return f"{failed[-1].phase}: {failed[-1].error or 'failed'}" if failed else ""


def _run_time(record: RunRecord) -> str:
    return amount(Dimension.TIME, record.end_ns - (record.start_ns or 0))


def _happened(record: RunRecord) -> Iterator[str]:
    for job in record.scenario.jobs:
        if isinstance(job.entry, Programs):
            yield program_headline(record, job)
        if job.entry.has_steps:
            yield _steps(record, job)
    if record.scenario.job.flows:
        yield flow_headline(record)
    broken = len(record.qp_errors)
    yield f"{plural(broken, 'QP')} broke" if broken else "no QP broke"
    if record.port_moves:
        yield _port_moves(record.port_moves)
    yield _losses(record)
    if unmet := unmet_words(record):
        yield unmet
    yield _paths(record) if record.scenario.transport.has_paths else _stalls(record)


def _steps(record: RunRecord, job: NamedJob) -> str:
    steps, wanted = steps_by_job(record)[job.name], job.entry.step_count
    whose = f" of {job.name}" if len(record.scenario.jobs) > 1 else ""
    if not steps:
        return f"no step of {wanted}{whose} was finished" if wanted else f"no step{whose} was finished"
    worst = max(steps, key=lambda step: step.duration_ns)
    count = f"{_count(len(steps), wanted)}{whose} were finished"
    clean = clean_median_ns(record, job.name)
    ratio = f", {worst.duration_ns / clean:.2f} times the clean median" if clean else ""
    names = faults_during(record, worst)
    during = f", during {some(names, 1)}" if names else ""
    time = f"in {amount(Dimension.TIME, worst.duration_ns)}{ratio}{during}"
    return (
        f"the only step{whose} was finished {time}"
        if wanted == 1
        else f"{count}, the slowest (step {worst.index}) {time}"
    )


def _count(done: int, wanted: int) -> str:
    """How many steps; of programs nobody may know how many there should be."""
    if done == wanted:
        return f"all {wanted} steps"
    return f"{done} of {wanted} steps" if wanted else f"{done} steps"


def _losses(record: RunRecord) -> str:
    """What the fabric dropped, and what senders took for lost."""
    ledger, lost = sums_of(record), lost_packets(record)
    told = [] if isinstance(ledger, Ignorance) else [f"{_were(ledger.data.all_dropped, 'data packet')} dropped"]
    if not record.scenario.transport.has_paths:
        again = evaluate_figure(record, parse_figure("retransmissions")).value
        return "; ".join([*told, *([] if again is None else [f"{_were(round(again), 'packet')} sent again"])])
    if lost is None:
        return "; ".join([*told, "how many packets senders took for lost is not known"])
    least = "" if set(record.scenario.host_names) <= record.counters.keys() else "at least "
    return "; ".join([*told, f"{least}{_were(lost, 'packet')} taken for lost"])


def _were(count: int, what: str) -> str:
    if count == 0:
        return f"no {what} was"
    return f"{plural(count, what)} {'was' if count == 1 else 'were'}"


def _paths(record: RunRecord) -> str:
    retired = recoveries(record)
    if not retired:
        others = sum(change.retired for change in record.ev_changes)
        return f"EVs were given up {_times(others)}, not because of a fault" if others else "no EV was given up"
    slowest = max(one.duration_ns for one in retired)
    rtts = f" ({number(slowest / record.base_rtt_ns)} rtt)" if record.base_rtt_ns else ""
    state = {(one.host, one.peer, one.plane, one.uplink): one for one in record.ev_changes}
    away = sum(change.new == "ASSUMED_BAD" for change in state.values())
    back = f"{plural(away, 'EV')} did not come back" if away else "all came back"
    took = f"{amount(Dimension.TIME, slowest)}{rtts}"
    return f"EVs were given up {_times(len(retired))}, the slowest after {took}, and {back}"


def _port_moves(moves: Sequence[QpPortMove]) -> str:
    """What libraries did about dead ports, by the ends of QPs that said so."""
    count = Counter(move.state for move in moves)
    words = {
        "RECOVERING": "moved to another port",
        "HOLDING": "waited to begin again",
        "LOST": "gave a port up",
        "OK": "had their port again",
    }
    return "ends of QPs: " + ", ".join(f"{count[state]} {what}" for state, what in words.items() if count[state])


def _stalls(record: RunRecord) -> str:
    """The longest stall of a QP; each transport reacts in its own way."""
    longest = evaluate_figure(record, parse_figure("stall.p100"), "ns").value
    if longest is None:
        return "whether a QP stalled is not known"
    if not longest:
        return "no QP stalled for longer than 2 T"
    rtt_ns = record.scenario.fabric.rtt_ns
    return f"a QP stalled for {amount(Dimension.TIME, longest)}" + (
        f" ({number(longest / rtt_ns)} T)" if rtt_ns else ""
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def fidelity_sentence(fidelity: Fidelity) -> str:
    """Whether figures of this run can be believed, and how near to a limit they came."""
    if fidelity.virtual:
        return _in_virtual_time(fidelity)
    if not fidelity.figures:
        return "Whether the machine kept time is not known: that is worked out at the end of a run."
    if not fidelity.ok:
        return f"The machine did not keep time: {_broken(fidelity)}."
    bound = [figure for figure in fidelity.figures if figure.limit and figure.observed is not None]
    nearest = max(bound, key=_share, default=None)
    if nearest is None:
        return "The machine kept time."
    return (
        f"The machine kept time: the figure nearest to its limit, {nearest.name}, came to {_share(nearest):.0%} of it."
    )


def _in_virtual_time(fidelity: Fidelity) -> str:
    told = "The run was computed in virtual time, which no machine has to keep."
    return told if fidelity.ok else f"{told} Its figures are not reliable: {_broken(fidelity)}."


def _broken(fidelity: Fidelity) -> str:
    return "; ".join(cause.said for cause in causes_of_machine(fidelity))


def _share(figure: FidelityFigure) -> float:
    return (figure.observed or 0.0) / (figure.limit or 1.0)


SIGNS = {
    Status.PASS: "\u2713",
    Status.FAIL: "\u2717",
    Status.INCONCLUSIVE: "?",
    Status.NOT_APPLICABLE: "\u2013",
    Status.MEASURED: "\u2022",
    Status.DIED: "\u2020",
}
"""Beside the words, for readers who cannot tell the colours."""
CSS_CLASSES = {status: "na" if status is Status.NOT_APPLICABLE else status.value for status in Status}
