"""Did the machine keep time? Compares fidelity.json with named limits. Pure.

Every limit concerns an effect of a slow or loaded machine that a transport cannot cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mrc_testbed.testbed.checks.conservation import Gap
from mrc_testbed.testbed.checks.fault_drops import Ignorance, ledger_of
from mrc_testbed.testbed.checks.frame_balance import frame_gaps
from mrc_testbed.testbed.checks.programs import cpu_shares
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import NOBODY_SENT, Fidelity, FidelityFigure
from mrc_testbed.testbed.checks.scale import amount, number
from mrc_testbed.testbed.checks.senders import surpluses_of
from mrc_testbed.testbed.checks.wire_time import wire_times
from mrc_testbed.testbed.checks.world_time import base_rtt, clean_step
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.rundir.lines import Party
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind

MAX_LATENESS_P99_T = 0.25
"""Limit of timer lateness (p99), as a part of T: RTTs and timeouts are then still those of the network."""
MIN_LATENESS_LIMIT_NS = 1_250_000
"""A quarter of 5 ms, the shortest retransmission timer: for a smaller T, less lateness changes nothing."""
MAX_LATENESS_T = 5
MIN_STANDSTILL_LIMIT_NS = 100_000_000
"""A daemon that pauses, even once, longer than its peers' retransmission timers (4 T, rounded up) loses packets, paths
and in the end QPs, without any fault of the network."""
MAX_UDP_RCVBUF_ERRORS = 0
"""A datagram dropped by a full socket buffer is a loss without a link: the daemon was too slow."""
MAX_SOFTNET_DROPS = 0
"""A packet dropped by the kernel's input queue is a loss without a link: the machine was too slow."""
MAX_KERNEL_DELAY_DROPS = 0
"""A packet that the kernel's delay line dropped, or held too long for want of a time stamp: no link did that."""
MAX_RUN_DELAY = 0.25
"""Share of wall time that a daemon may be ready without a CPU; above it hosts wait for each other."""
MAX_CPU_PRESSURE = 0.75
"""Share of wall time in which any task waited for a CPU, including the kernel's own forwarding, which no daemon
notices.

Runs at the packet budget have 0.2 to 0.5. A light run beside 16 busy processes on two cores had every other figure
inside its limit and steps that took a fifth longer.
"""
# Programs of the user run under SCHED_IDLE and count here like any task: with them this figure decides nothing.
MAX_PACKETS_LATE = 0.02
"""Share of a host's packets that its endpoint may be given more than half a T after they arrived.

Timers say when a host wakes, this says whether it came to the end of what there was to do. A host that is a second
behind an incast has few late timers in half a minute, and answers all of it late.
"""
MAX_LATE_ON_LINKS = 0.02
"""Share of the packets of a link that came out of it more than T/4 late (`late_ns` in testbed/fabric/port_program.py).
A shaper that lost more time than its burst makes good is behind its link until its queue is empty: the link was slower
than the scenario says."""
MAX_UNEXPLAINED = 0
"""An unexplained packet was lost or created by something unknown to the run; so was one that nobody sent."""
_GAPS_SHOWN = 3
_ABSURD = 1e18
"""No figure is as large; NaN and infinity are not smaller."""
MAX_SHAPED_RATE_ERROR = 0.05
"""How far a port may exceed its rate in any second; above it the fabric was faster than the scenario says."""
MAX_AHEAD_OF_WIRE = 0.01
"""By which part of its earliest time a step or message may be faster than the wire allows: the clocks of two processes
differ by microseconds. Above it a shaper let packets go before their time."""

NO_FILE = "no fidelity figures were recorded: the run ended early"


def evaluate_fidelity(record: RunRecord) -> Fidelity:
    """All figures against their limits. A figure that is missing without an explanation is not ok."""
    caveat = f"the run was interrupted: {record.interrupted}" if record.interrupted else ""
    caveat = caveat or (f"its folder lacks {', '.join(record.missing)}" if record.missing else "")
    virtual = record.scenario.world is WorldKind.VIRTUAL
    raw = record.fidelity
    end = next((line for line in record.history if line.op == "interrupt"), None)
    told = Fidelity(
        *((), None, caveat, record.ended_by_machine, virtual),
        who=Party(end.who) if end and end.who in set(Party) else Party.MACHINE,
        next_step=end.fix if end else "",
        lacks=bool(end and end.fix),
    )
    if raw is None:
        return told if end else replace(told, caveat=NO_FILE)
    if virtual:
        figures = [*_times(record), _shaped_rate(raw), _nobody_sent(record), _accounts(record, raw)]
        figures.append(_ahead_of_wire(record))
    else:
        *figures, pressure = machine_figures(raw, record.scenario)
        if record.scenario.job.programs:
            figures.append(_programs_took(record))
        figures += [
            *_times(record),
            *_packets_late(record),
            *_late_on_links(raw),
            *_kernel_delay(record, raw),
            _nobody_sent(record),
            _accounts(record, raw),
            _ahead_of_wire(record),
            pressure,
        ]
    read = _number(1)
    measured_s, stolen = read(raw.get("measured_s")), read(raw.get("cpu_stolen"))
    return replace(told, figures=tuple(figures), measured_s=measured_s, late=False, stolen=stolen)


def _times(record: RunRecord) -> tuple[FidelityFigure, ...]:
    return *base_rtt(record), *clean_step(record)


def machine_figures(raw: Mapping[str, Any], scenario: Scenario) -> tuple[FidelityFigure, ...]:
    """The machine's figures against the limits, most serious first and CPU pressure last. With programs of the user
    that one decides nothing."""
    hosts = scenario.host_names
    limit_ns, standstill_ns = _lateness_limits_ns(scenario.shape().rtt_ns)
    pressure = _limited(raw, "cpu_pressure_some", MAX_CPU_PRESSURE * 100, "%", _number(100))
    return (
        _limited(raw, "lateness_p99_ns", limit_ns / 1e6, "ms", _worst(hosts, 1e-6)),
        _limited(raw, "lateness_max_ns", standstill_ns / 1e6, "ms", _worst(hosts, 1e-6)),
        _limited(raw, "run_delay", MAX_RUN_DELAY * 100, "%", _worst(hosts, 100)),
        _limited(raw, "udp_rcvbuf_errors", MAX_UDP_RCVBUF_ERRORS, "packets", _number(1)),
        _limited(raw, "softnet_drops", MAX_SOFTNET_DROPS, "packets", _number(1)),
        _limited(raw, "wall_clock_step_ns", limit_ns / 1e6, "ms", _number(1e-6)),
        _shaped_rate(raw),
        replace(pressure, limit=None, ok=True, why="") if scenario.job.programs else pressure,
    )


def _shaped_rate(raw: Mapping[str, Any]) -> FidelityFigure:
    return _limited(raw, "shaped_rate_error", MAX_SHAPED_RATE_ERROR * 100, "%", _number(100))


def _programs_took(record: RunRecord) -> FidelityFigure:
    """For information: they run only while nobody else wants the CPU."""
    shares = cpu_shares(record)
    observed = sum(shares.values()) * 100 if shares else None
    return FidelityFigure("CPU of programs", observed, None, "%", True)


def _kernel_delay(record: RunRecord, raw: Mapping[str, Any]) -> tuple[FidelityFigure, ...]:
    """The figures of the kernel's delay line, where it made T (testbed/fabric/delay.py)."""
    if record.environment.get("delay") != "nfqueue":
        return ()
    told = raw.get("kernel_delay")
    figures = {f"kernel_delay_{name}": value for name, value in told.items()} if isinstance(told, Mapping) else {}
    limit_ns, standstill_ns = _lateness_limits_ns(record.scenario.shape().rtt_ns)
    return (
        _limited(figures, "kernel_delay_dropped", MAX_KERNEL_DELAY_DROPS, "packets", _number(1)),
        _limited(figures, "kernel_delay_unstamped", MAX_KERNEL_DELAY_DROPS, "packets", _number(1)),
        _limited(figures, "kernel_delay_late_p99_ns", limit_ns / 1e6, "ms", _number(1e-6)),
        _limited(figures, "kernel_delay_late_max_ns", standstill_ns / 1e6, "ms", _number(1e-6)),
    )


def _packets_late(record: RunRecord) -> tuple[FidelityFigure, ...]:
    """Of endpoints that make their own packets; runs from before it was counted have none."""
    counted = [host for host in record.counters.values() if "packets_late" in host]
    if not counted:
        return ()
    worst = max(host["packets_late"] / max(host.get("packets_in", 0), 1) for host in counted)
    return (_limited({"packets_late": worst}, "packets_late", MAX_PACKETS_LATE * 100, "%", _number(100)),)


def _late_on_links(raw: Mapping[str, Any]) -> tuple[FidelityFigure, ...]:
    """Of the link where it is the most; runs from before it was counted have none."""
    name, told = "late_on_links", raw.get("late_on_links")
    if told is None and not _excuse(raw, name):
        return ()
    share = told.get("share") if isinstance(told, Mapping) else None
    figure = _limited({**raw, name: share}, name, MAX_LATE_ON_LINKS * 100, "%", _number(100))
    if figure.ok or not isinstance(told, Mapping) or figure.observed is None:
        return (figure,)
    latest = _number(1e-6)(told.get("most_ns"))
    most = f", up to {number(latest)} ms late" if latest else ""
    return (replace(figure, why=f"of what came in by {told.get('port')} of {told.get('node')}{most}"),)


def _lateness_limits_ns(rtt_ns: int) -> tuple[float, int]:
    """Of the 99th percentile and of the worst."""
    return max(MAX_LATENESS_P99_T * rtt_ns, MIN_LATENESS_LIMIT_NS), max(
        MAX_LATENESS_T * rtt_ns, MIN_STANDSTILL_LIMIT_NS
    )


Read = Callable[[Any], float | None]


def _number(scale: float) -> Read:
    def read(value: Any) -> float | None:
        usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _ABSURD
        return value * scale if usable else None

    return read


def _worst(hosts: tuple[str, ...], scale: float) -> Read:
    """The largest value over the hosts; None if one of `hosts` has none."""

    def read(value: Any) -> float | None:
        if not isinstance(value, Mapping) or not value or not set(hosts) <= value.keys():
            return None
        numbers = [_number(scale)(reading) for reading in value.values()]
        known = [reading for reading in numbers if reading is not None]
        return max(known) if len(known) == len(numbers) else None

    return read


def _limited(raw: Mapping[str, Any], name: str, limit: float, unit: str, read: Read) -> FidelityFigure:
    observed = read(raw.get(name))
    label = _label(name)
    if observed is None:
        excuse = _excuse(raw, name)
        why = f"unknown on this machine: {excuse}" if excuse else "not measured"
        return FidelityFigure(label, None, limit, unit, bool(excuse), why)
    return FidelityFigure(label, observed, limit, unit, observed <= limit)


def _ahead_of_wire(record: RunRecord) -> FidelityFigure:
    """The step or message that was too fast by the greatest part of its earliest time."""
    name, limit = _label("ahead_of_wire"), MAX_AHEAD_OF_WIRE * 100
    if record.scenario.transport.of_kernel:
        why = "not known here: TCP gets packets when shapers let them go, with their credit after a pause"
        return FidelityFigure(name, None, limit, "%", True, why)
    fastest = max(wire_times(record), key=lambda one: one.ahead, default=None)
    if fastest is None:
        return FidelityFigure(name, None, limit, "%", True, "not known here: nothing came to its end")
    observed = fastest.ahead * 100
    took, earliest = (amount(Dimension.TIME, ns) for ns in (fastest.took_ns, fastest.earliest_ns))
    why = f"{fastest.what} took {took}, never under {earliest}" if observed > limit else ""
    return FidelityFigure(name, observed, limit, "%", observed <= limit, why)


def _accounts(record: RunRecord, raw: Mapping[str, Any]) -> FidelityFigure:
    """Packets that no link, queue, rule or fault accounts for."""
    name = "unexplained_packets"
    if record.books is None and record.frame_books is None:
        return _limited(raw, name, MAX_UNEXPLAINED, "packets", lambda _: None)
    gaps = _unexplained(record)
    if isinstance(gaps, Ignorance):
        return FidelityFigure(_label(name), None, MAX_UNEXPLAINED, "packets", False, gaps.why)
    count = sum(abs(gap.missing) for gap in gaps)
    return FidelityFigure(_label(name), float(count), MAX_UNEXPLAINED, "packets", not count, _first(gaps))


def _unexplained(record: RunRecord) -> Sequence[Gap] | Ignorance:
    """By the port program's counts, else by the kernel's own."""
    if record.frame_books is None:
        ledger = ledger_of(record)
        return ledger if isinstance(ledger, Ignorance) else ledger.unexplained
    try:
        gaps = frame_gaps(record.plan, record.frame_books, record.cut_links, record.copied_links)
    except KeyError as error:
        return Ignorance(f"counters.json lacks {error}")
    return [gap for gap in gaps if not gap.excused]


def _nobody_sent(record: RunRecord) -> FidelityFigure:
    """Packets that came from no endpoint, by the books of the fabric and by those of the endpoints."""
    surpluses = surpluses_of(record)
    if surpluses is None:
        why = "not known here: nobody counted what was sent"
        return FidelityFigure(NOBODY_SENT, None, MAX_UNEXPLAINED, "packets", True, why)
    count = max((surplus.packets for surplus in surpluses), default=0)
    why = _first(surpluses) if count else ""
    return FidelityFigure(NOBODY_SENT, float(count), MAX_UNEXPLAINED, "packets", not count, why)


def _first(found: Sequence[object]) -> str:
    return "; ".join(map(str, found[:_GAPS_SHOWN])) + ("; and more" if len(found) > _GAPS_SHOWN else "")


def _excuse(raw: Mapping[str, Any], name: str) -> str:
    reasons = raw.get("unavailable")
    return str(reasons.get(name) or "") if isinstance(reasons, Mapping) else ""


def _label(name: str) -> str:
    return _LABELS.get(name, name)


_LABELS = {
    "lateness_p99_ns": "timers late (p99)",
    "lateness_max_ns": "timers late (worst)",
    "run_delay": "waiting for a CPU",
    "udp_rcvbuf_errors": "socket drops",
    "softnet_drops": "kernel input drops",
    "wall_clock_step_ns": "wall clock jumps",
    "packets_late": "packets handled late",
    "late_on_links": "packets late on a link",
    "kernel_delay_dropped": "drops of the kernel delay",
    "kernel_delay_unstamped": "packets without a time of arrival",
    "kernel_delay_late_p99_ns": "kernel delay late (p99)",
    "kernel_delay_late_max_ns": "kernel delay late (worst)",
    "shaped_rate_error": "port rate error",
    "ahead_of_wire": "faster than the wire",
    "unexplained_packets": "unexplained packets",
    "cpu_pressure_some": "CPU pressure",
}
