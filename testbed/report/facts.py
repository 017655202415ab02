"""What the summary tells besides the checks: faults, step times, the machine, as plain text cells. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.checks.conservation import balance
from testbed.checks.counting import packets_lost
from testbed.checks.expect import Span, Window
from testbed.checks.record import RunRecord
from testbed.checks.recovery import recoveries
from testbed.checks.result import Fidelity, Figure
from testbed.checks.scale import amount, number
from testbed.checks.statistics import statistic
from testbed.checks.steps import job_steps, step_durations
from testbed.checks.vocabulary import Dimension
from testbed.checks.windows import NoData, Outage, outages
from testbed.report.flow_facts import flow_headline, flow_line
from testbed.scenario import Fault, FlowSet
from testbed.scenario.units import format_rate

NOTHING = "-"
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One declared fault as it went."""

    name: str
    what: str
    when: str
    evs_retired: str
    packets_lost: str
    recovery: str


def fault_rows(record: RunRecord) -> list[FaultRow]:
    """One row a declared fault, in the order of the scenario."""
    done = outages(record)
    return [
        _fault_row(record, fault, [one for one in done if one.fault == fault.name]) for fault in record.scenario.faults
    ]


def _fault_row(record: RunRecord, fault: Fault, cycles: Sequence[Outage]) -> FaultRow:
    window = Window(Span.FAULT, fault.name)
    times = [one.duration_ns for one in recoveries(record) if one.fault == fault.name]
    lost = _or_nothing(lambda: number(packets_lost(record, window)))
    return FaultRow(fault.name, fault.title, _when(record, cycles), str(len(times)), lost, _recovery(record, times))


def _when(record: RunRecord, cycles: Sequence[Outage]) -> str:
    if not cycles or record.start_ns is None:
        return "not injected"
    first = cycles[0]
    cold = first.injected_ns < record.start_ns
    begin = "cold start" if cold else _seconds(first.injected_ns - record.start_ns)
    if first.healed_ns is None:
        return f"{begin}, never healed"
    length = _seconds(first.healed_ns - max(first.injected_ns, record.start_ns))
    return f"{begin}, {length}" if len(cycles) == 1 else f"{begin}, {len(cycles)} x {length}"


def _seconds(duration_ns: int) -> str:
    """Tenths of seconds; short times finer, as even the shortest fault was there."""
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


def job_facts(record: RunRecord) -> tuple[str, str]:
    """What there is to say of the workload's speed, and what that is called."""
    if isinstance(record.scenario.job, FlowSet):
        return "flows", flow_line(record)
    return "step time", step_line(record)


def step_line(record: RunRecord) -> str:
    """Clean and faulty step times beside each other."""
    clean = _spread(record, Window(Span.CLEAN), ("median", "p100"))
    during = _spread(record, Window(Span.FAULTS), ("median", "p100"))
    return f"clean {clean}; during faults {during}" if record.scenario.faults else clean


def _spread(record: RunRecord, window: Window, stats: Sequence[str]) -> str:
    try:
        times = step_durations(record, window)
    except NoData:
        return "no finished step"
    words = ", ".join(f"{_title(stat)} {amount(Dimension.TIME, statistic(times, stat))}" for stat in stats)
    return f"{words} ({len(times)} {'step' if len(times) == 1 else 'steps'})"


def _title(stat: str) -> str:
    return stat.upper() if stat.startswith("p") else stat


def headline(record: RunRecord) -> str:
    """What the verdict line says of the steps: `28 steps, P100 1.12 s, clean median 912 ms`; or of the flows."""
    if isinstance(record.scenario.job, FlowSet):
        return flow_headline(record)
    steps = job_steps(record)
    if not steps:
        return f"0 of {record.scenario.train.steps} steps"
    wanted = record.scenario.train.steps
    count = f"{len(steps)} steps" if len(steps) == wanted else f"{len(steps)} of {wanted} steps"
    worst = amount(Dimension.TIME, max(step.duration_ns for step in steps))
    clean = _or_nothing(lambda: amount(Dimension.TIME, statistic(step_durations(record, Window(Span.CLEAN)), "median")))
    return f"{count}, P100 {worst}, clean median {clean}"


def fabric_line(record: RunRecord) -> str:
    """The shape in one line."""
    shape = record.scenario.shape()
    switches = f"{shape.t0_groups} T0 + {shape.t1} T1"
    return f"{shape.hosts} hosts, {shape.planes} planes of {switches}, {format_rate(shape.port_rate_bps)} ports"


def endpoint_line(record: RunRecord) -> str:
    """What the endpoints were told: congestion control, and what they may not use."""
    endpoint = record.scenario.endpoint
    denied = ", ".join(
        denial.path + (f" for {' '.join(denial.hosts)}" if denial.hosts else "") for denial in endpoint.denylist
    )
    return f"congestion control {endpoint.congestion_control}" + (
        f"; denied from the start: {denied}" if denied else ""
    )


def network_line(record: RunRecord) -> str:
    """Where T came from, what was measured, and what queues at switch ports."""
    made_by = str(record.environment.get("delay_by") or "unknown means")
    base = (
        f"base RTT {amount(Dimension.TIME, record.base_rtt_ns)} in warm-up"
        if record.base_rtt_ns
        else "base RTT not measured"
    )
    ports = str(record.environment.get("switch_ports_by") or "unknown")
    return (
        f"T {amount(Dimension.TIME, record.scenario.shape().rtt_ns)} made by {made_by}; {base}; switch ports: {ports}"
    )


def packet_line(record: RunRecord) -> str:
    """Where the data packets of the run went."""
    if record.books is None:
        plain = record.environment.get("switch_ports") != "port program"
        return "not counted by class: switch ports are plain shapers" if plain else "not known: the run ended early"
    try:
        ledger = balance(record.plan, record.books, record.cut_links)
    except KeyError as error:
        return f"not known: counters.json lacks {error}"
    dropped = ", ".join(f"{count} {_DROPPED[reason]}" for reason, count in ledger.dropped.items() if count)
    marked = [f"{ledger.marked} ECN marks"] if ledger.marked else []
    spoiled = [f"{ledger.corrupted} corrupted on the way"] if ledger.corrupted else []
    notes = f" ({', '.join([*marked, *spoiled])})" if marked or spoiled else ""
    sums = f"{ledger.data_sent} data sent, {ledger.delivered} arrived whole{notes}, {ledger.trimmed} trimmed"
    return f"{sums}, {dropped or '0 dropped'}"


_DROPPED = {
    "rule": "lost by injected loss",
    "queue": "dropped by full queues",
    "shaper": "dropped by full shapers",
    "fault": "lost at dead links",
}


def fidelity_line(fidelity: Fidelity) -> str:
    """The figures that decide, against their limits."""
    if not fidelity.figures:
        return fidelity.caveat
    figures = ", ".join(_figure(figure) for figure in fidelity.figures if figure.limit is not None)
    over = f" over {fidelity.measured_s:.0f} s" if fidelity.measured_s else ""
    return f"{figures}{over}" + (f"; {fidelity.caveat}" if fidelity.caveat else "")


def _figure(figure: Figure) -> str:
    if figure.observed is None:
        return figure.why
    unit = "" if figure.unit == "packets" else f" {figure.unit}"
    limit = f" (max {number(figure.limit)})" if figure.limit else ""
    return f"{'' if figure.ok else '!! '}{figure.name} {number(figure.observed)}{unit}{limit}"


def _or_nothing(cell: Callable[[], str]) -> str:
    try:
        return cell()
    except NoData:
        return NOTHING
