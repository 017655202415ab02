"""The summary's facts besides the checks: faults, step times, the machine, as plain text cells. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mrc_testbed.testbed.checks.advice import stolen_words
from mrc_testbed.testbed.checks.ends import How
from mrc_testbed.testbed.checks.figure import evaluate_figure
from mrc_testbed.testbed.checks.outage import death_words
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import recoveries
from mrc_testbed.testbed.checks.result import Fidelity, FidelityFigure
from mrc_testbed.testbed.checks.scale import amount, number, with_rtts
from mrc_testbed.testbed.checks.scope import scope_of
from mrc_testbed.testbed.checks.shown import NOTHING, UNKNOWN
from mrc_testbed.testbed.checks.statistics import gathered, statistic
from mrc_testbed.testbed.checks.steps import step_durations, steps_by_job
from mrc_testbed.testbed.checks.windows import NoData, Outage, outages
from mrc_testbed.testbed.checks.world_time import CLEAN_STEP
from mrc_testbed.testbed.expect import METRICS, Figure, Span, Window, parse_figure
from mrc_testbed.testbed.expect.vocabulary import BASE_UNITS, Dimension
from mrc_testbed.testbed.report.flow_facts import flow_headline, flow_line
from mrc_testbed.testbed.report.packet_facts import drops_words
from mrc_testbed.testbed.report.program_facts import program_headline, program_line
from mrc_testbed.testbed.report.random_targets import fault_title
from mrc_testbed.testbed.report.transport_words import settings_words, transport_words
from mrc_testbed.testbed.scenario import Entry
from mrc_testbed.testbed.scenario.model.jobs import NamedJob
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.text.keys import value_text
from mrc_testbed.topos.layout import tier_counts
from mrc_testbed.topos.units import plural, some

_SECOND_NS = 1_000_000_000
_ALIKE = 1.1
"""Outages whose lengths differ by at most this are shown with one length."""


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One declared fault and what happened."""

    name: str
    what: str
    when: str
    evs_retired: str
    packets_dropped: str
    recovery: str
    stall: str


def fault_rows(record: RunRecord) -> list[FaultRow]:
    """One row per fault, those of the scenario first and in its order."""
    done = outages(record)
    entries = {entry.name: entry for entry in record.scenario.faults}
    names = dict.fromkeys((*entries, *(occurrence.fault for occurrence in record.occurrences)))
    return [_fault_row(record, name, entries.get(name), [one for one in done if one.fault == name]) for name in names]


def _fault_row(record: RunRecord, name: str, entry: Entry | None, done: Sequence[Outage]) -> FaultRow:
    times = [one.duration_ns for one in recoveries(record) if one.fault == name]
    what = fault_title(entry, [occurrence for occurrence in record.occurrences if occurrence.fault == name])
    return FaultRow(
        *(name, what, _when(record, done), str(len(times)), drops_words(record, name), _recovery(record, times)),
        _stall(record, name),
    )


def _when(record: RunRecord, done: Sequence[Outage]) -> str:
    if not done or record.start_ns is None:
        return "not injected"
    first, start_ns = done[0], record.start_ns
    begin = "cold start" if first.injected_ns < start_ns else _seconds(first.injected_ns - start_ns)
    lengths = [one.healed_ns - max(one.injected_ns, start_ns) for one in done if one.healed_ns is not None]
    if len(lengths) < len(done):
        return f"{begin}, never healed"
    shortest, longest = min(lengths), max(lengths)
    alike = longest <= _ALIKE * shortest
    length = _seconds(lengths[0]) if alike else f"{_seconds(shortest)} to {_seconds(longest)}"
    return f"{begin}, {length}" if len(done) == 1 else f"{begin}, {len(done)} x {length}"


def _seconds(duration_ns: int) -> str:
    """Tenths of seconds, finer for short times, so that the shortest fault is visible."""
    if duration_ns >= _SECOND_NS or duration_ns == 0:
        return f"{number(round(duration_ns / 1e9, 1))} s"
    return f"{duration_ns / 1e9:.2g} s" if duration_ns >= _SECOND_NS // 10 else amount(Dimension.TIME, duration_ns)


def _recovery(record: RunRecord, times: Sequence[int]) -> str:
    if not times:
        return NOTHING
    worst = max(times)
    if not record.base_rtt_ns:
        return amount(Dimension.TIME, worst)
    return f"{number(worst / record.base_rtt_ns)} rtt, {amount(Dimension.TIME, worst)}"


def _stall(record: RunRecord, fault: str) -> str:
    """The longest in its window, in time and in T."""
    found = evaluate_figure(record, parse_figure(f"stall.p100 during {fault}"), "ns").value
    if found is None:
        return UNKNOWN
    if not found:
        return METRICS["stall"].zero
    return with_rtts(found, record.scenario.fabric.rtt_ns, "T")


def job_facts(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Lines about the workload's speed, with their labels; two for each job of steps. Nobody knows whom programs wait
    for."""
    for job in record.scenario.jobs:
        whose = f" of {job.name}" if len(record.scenario.jobs) > 1 else ""
        if isinstance(job.entry, Programs):
            yield f"programs{whose}", program_line(record, job)
        if job.entry.has_steps:
            yield f"step time{whose}", step_line(record, job)
        if not isinstance(job.entry, Programs):
            yield f"waiting{whose}", wait_line(record, job)
    if record.scenario.job.flows:
        yield "flows", flow_line(record)
    if ended := ends_words(record):
        yield "ended", ended


def ends_words(record: RunRecord) -> str:
    """`job-b died at 1 s: QP h1->h3: retry exceeded; survived: job-a`, and what the testbed stopped and why; empty
    where all came to their end, and of a workload that is one thing, whose death the verdict tells."""
    by_how = gathered((end.how, end) for end in record.ends.values())
    if len(record.ends) < 2 or record.workload_done or record.start_ns is None:
        return ""
    stopped = by_how.get(How.STOPPED, [])
    why = f" ({stopped[0].why})" if stopped else ""
    rows = (("survived: ", by_how.get(How.ITSELF, []), ""), ("stopped by the testbed: ", stopped, why))
    told = [death_words(record)]
    told += [f"{head}{some([end.name for end in ends])}{tail}" for head, ends, tail in rows if ends]
    return "; ".join(filter(None, told))


def wait_line(record: RunRecord, job: NamedJob) -> str:
    """The host that others waited for longest in the counted steps of a job, and its share of all waiting."""
    ranks = job.host_names(record.scenario.shape())
    waited: Counter[str] = Counter()
    for wait in record.waits:
        if wait.step >= job.entry.warm_up_count and wait.host in ranks:
            waited[wait.peer] += wait.wait_ns
    if not waited:
        return "no host waited"
    (host, longest), total = waited.most_common(1)[0], waited.total()
    share, even = longest / total, 1 / len(ranks)
    return f"most waited for: {host}, {share:.0%} of {amount(Dimension.TIME, total)} ({even:.0%} if all were equal)"


def step_line(record: RunRecord, job: NamedJob) -> str:
    """Clean step times of a job beside those in faults; without faults, or where no step is clean, those of all, as in
    the verdict line."""
    found = {span: _spread(record, Window(span, scope=scope_of(job.name))) for span in _SPANS}
    if not found[Span.RUN] or not record.occurrences:
        return found[Span.RUN] or "no finished step"
    clean = found[Span.CLEAN] or f"no clean step; of all {found[Span.RUN]}"
    during = f"during faults {found[Span.FAULTS] or 'no step'}"
    return f"{'clean ' if found[Span.CLEAN] else ''}{clean}; {during}"


_SPANS = (Span.RUN, Span.CLEAN, Span.FAULTS)


def _spread(record: RunRecord, window: Window) -> str:
    """Empty where there was no step."""
    try:
        times = step_durations(record, window)
    except NoData:
        return ""
    median, most = (amount(Dimension.TIME, statistic(times, stat)) for stat in ("median", "p100"))
    return f"median {median}, P100 {most} ({plural(len(times), 'step')})"


def headline(record: RunRecord) -> str:
    """The figures of the verdict line: `28 steps, P100 1.12 s, clean median 912 ms`, of each job; and of flows."""
    parts = [
        _step_headline(record, job) if job.entry.has_steps else program_headline(record, job)
        for job in record.scenario.jobs
    ]
    return ", ".join([*parts, flow_headline(record)] if record.scenario.job.flows else parts)


def _step_headline(record: RunRecord, job: NamedJob) -> str:
    steps, wanted = steps_by_job(record)[job.name], job.entry.step_count
    whose = f"{job.name} " if len(record.scenario.jobs) > 1 else ""
    if not steps:
        return f"{whose}0 of {wanted} steps" if wanted else f"{whose}no step"
    whole = wanted in (0, len(steps))
    count = f"{whose}{plural(len(steps), 'step')}" if whole else f"{whose}{len(steps)} of {plural(wanted, 'step')}"
    worst = amount(Dimension.TIME, max(step.duration_ns for step in steps))
    clean = _known(record, parse_figure("step_time.median clean").of(scope_of(job.name)))
    return f"{count}, P100 {worst}{'' if clean == NOTHING else f', clean median {clean}'}"


def fabric_line(record: RunRecord) -> str:
    """The shape in one line, and what folding did to it."""
    shape, folding = record.scenario.shape(), record.scenario.layout_note
    switches = " + ".join(tier_counts(shape.family))
    hosts, planes = plural(shape.hosts, "host"), plural(shape.planes, "plane")
    line = f"{hosts}, {planes} of {switches}, ports of {amount(Dimension.RATE, shape.port_rate_bps / 8)}"
    return f"{line} (folded: {folding})" if folding else line


def endpoint_line(record: RunRecord) -> str:
    """The transport and its settings; of MRC's endpoints congestion control, what is not usual, and denied paths."""
    endpoint = record.scenario.endpoint
    if not record.scenario.transport.has_paths:
        return f"{transport_words(record.scenario)}: {settings_words(record.scenario)}"
    denied = ", ".join(
        denial.path + (f" for {' '.join(denial.hosts)}" if denial.hosts else "") for denial in endpoint.denylist
    )
    told = {key: value for key, value in endpoint.changed().items() if key != "congestion_control"}
    settings = "".join(f"; {key} {value}" for key, value in told.items())
    plugins = ", ".join(f"{one.written} (sha256 {one.sha256[:8]})" for one in record.scenario.offered.sources)
    return f"congestion control {endpoint.congestion_control}{settings}" + "".join(
        f"; {what}: {names}" for what, names in (("plugins", plugins), ("denied from the start", denied)) if names
    )


def network_line(record: RunRecord) -> str:
    """The source of T, the measured base RTT, and the kind of switch port."""
    made_by = str(record.environment.get("delay_by") or "unknown means")
    base = (
        f"base RTT {amount(Dimension.TIME, record.base_rtt_ns)} in warm-up"
        if record.base_rtt_ns
        else "base RTT not measured"
    )
    ports = str(record.environment.get("switch_ports_by") or "unknown")
    made = f"T {amount(Dimension.TIME, record.scenario.shape().rtt_ns)} made by {made_by}"
    return f"{made}; {base}; switch ports: {ports}{_trimming_words(record)}"


def _trimming_words(record: RunRecord) -> str:
    """What is not usual of how switches trim; empty where nothing is, or nothing can be trimmed."""
    changed = record.scenario.trimming.changed() if record.scenario.transport.can_be_trimmed else {}
    told = ", ".join(f"{key} {value_text(value)}" for key, value in changed.items())
    return f", trimming: {told}" if told else ""


def rootless_line(record: RunRecord) -> str:
    """What a run without root lacked; empty for a run of root."""
    lost = record.environment.get("rootless")
    return "; ".join(map(str, lost)) or "nothing is lost by it" if isinstance(lost, list) else ""


def fidelity_word(fidelity: Fidelity) -> str:
    """Whether the machine kept time, as the beginning of a line; empty where nothing is known."""
    if fidelity.virtual:
        return "virtual time: "
    return "kept time: " if fidelity.ok else "did NOT keep time: " if fidelity.figures else ""


def measured_words(fidelity: Fidelity) -> str:
    """How long was measured; empty if that is not known."""
    measured_s = fidelity.measured_s
    if measured_s is None:
        return ""
    return f"{measured_s:.0f} s" if measured_s >= 1 else amount(Dimension.TIME, measured_s * 1e9)


def fidelity_line(fidelity: Fidelity) -> str:
    """The figures that decide, with their limits, and what says that steps are long."""
    if not fidelity.figures:
        return fidelity.caveat
    decide = (one for one in fidelity.figures if one.limit is not None or (one.name == CLEAN_STEP and one.why))
    figures = ", ".join(map(_figure, decide))
    over = f" over {words}" if (words := measured_words(fidelity)) else ""
    return "; ".join(part for part in (f"{figures}{over}", stolen_words(fidelity), fidelity.caveat) if part)


def _figure(figure: FidelityFigure) -> str:
    if figure.observed is None:
        return f"{figure.name}: {figure.why}"
    unit = "" if figure.unit == "packets" else f" {figure.unit}"
    limit = f" (max {number(figure.limit)})" if figure.limit else ""
    return f"{'' if figure.ok else '!! '}{figure.name} {number(figure.observed)}{unit}{limit}"


def _known(record: RunRecord, figure: Figure) -> str:
    dimension = figure.metric.dimension
    value = evaluate_figure(record, figure, BASE_UNITS[dimension]).value
    return NOTHING if value is None else amount(dimension, value)
