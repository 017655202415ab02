"""Every metric that a run exports, declared once: the exposition, docs/metrics.md and the dashboard's test read this.

Names, types and units follow OpenMetrics 1.0: counters are sampled as `NAME_total`, a unit is the end of the name, base
units are seconds and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

RUN_PHASES = (
    "none",
    "build",
    "converge",
    "verify",
    "cold start",
    "warm up",
    "barrier",
    "run",
    "heal",
    "settle",
    "tear down",
    "done",
)
"""Of a run, as docs/architecture.md names them; `none` before the first, `done` after its verdict."""
FIDELITY_STATES = ("kept", "lost")
"""Did the machine keep time, by the verdict?"""
VERDICT_STATES = ("pass", "fail", "inconclusive", "measured", "died")


class SeriesKind(StrEnum):
    """Types of OpenMetrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    INFO = "info"
    STATESET = "stateset"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class SeriesFamily:
    """One metric. `name` is without suffixes of samples. `source`: the file of a run folder that has the same; `live`:
    it is known while a run goes on; `truth`: nobody in a real fabric could know it, so it is left out unless asked
    for."""

    name: str
    kind: SeriesKind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    source: str = ""
    live: bool = True
    truth: bool = False


_PORT = ("node", "tier", "plane", "port", "peer")
_SWITCH = ("switch", "tier", "plane")
_SWITCH_PORT, _SWITCH_SID = (*_SWITCH, "port"), (*_SWITCH, "sid")
_OF_RUN = ("run", "scenario", "world", "transport", "seed", "version")
_HISTORY, _EVENTS, _SAMPLES, _PORTS = "history.jsonl", "events.jsonl", "samples.csv", "ports.csv"
_COUNTERS, _VERDICT = "counters.json", "verdict.json"
_COUNTER, _GAUGE, _INFO, _STATES, _HISTOGRAM = SeriesKind


def _families() -> Iterator[SeriesFamily]:
    """In the order in which they are exposed."""
    yield SeriesFamily("mrc_run", _INFO, "What is run.", _OF_RUN, source="environment.json")
    yield SeriesFamily("mrc_run_phase", _STATES, "The phase that the run is in.", ("mrc_run_phase",), source=_HISTORY)
    clock = "Time of the run since its workload began; in virtual time and at a scale no wall clock has it."
    yield SeriesFamily("mrc_run_clock_seconds", _COUNTER, clock, unit="seconds", source=_HISTORY)
    fault = ("fault", "kind")
    yield SeriesFamily("mrc_fault_active", _GAUGE, "1 while a fault is in place.", fault, source=_HISTORY)
    yield SeriesFamily("mrc_fault_cycles", _COUNTER, "How often a fault was injected.", fault, source=_HISTORY)
    yield SeriesFamily("mrc_fault", _INFO, "What a fault breaks.", (*fault, "targets"), source=_HISTORY)
    yield from _of_hosts()
    yield from _of_ports()
    yield from _of_work()
    yield SeriesFamily(
        "mrc_fidelity", _STATES, "Whether the machine kept time.", ("mrc_fidelity",), source=_VERDICT, live=False
    )
    yield SeriesFamily("mrc_verdict", _STATES, "The verdict.", ("mrc_verdict",), source=_VERDICT, live=False)
    passed = "1 for an expectation that holds, 0 for one that does not; one that nobody knows has none."
    yield SeriesFamily("mrc_check_passed", _GAUGE, passed, ("check", "number"), source=_VERDICT, live=False)
    yield SeriesFamily("mrc_series_left_out", _GAUGE, "Series of ports that are summed up, because there are too many.")


def _of_hosts() -> Iterator[SeriesFamily]:
    for name, text, labels, unit in (
        ("sent_bytes", "Payload sent, also what is sent again.", (), "bytes"),
        ("delivered_bytes", "Payload placed in memory.", (), "bytes"),
        ("data_packets", "Data packets sent and received.", ("direction",), ""),
        ("reordered_packets", "Data packets that came after one of a higher PSN.", (), ""),
        ("retransmitted_packets", "Data packets sent again.", (), ""),
        ("timeouts", "Retransmission timers that ran out.", (), ""),
        ("nacks", "Negative acknowledgements sent and received.", ("direction",), ""),
        ("trimmed_packets", "Trimmed packets that arrived.", (), ""),
        ("probes", "Probes of paths, sent and answered.", ("what",), ""),
        ("lost_packets", "Data packets that a sender took for lost, by what told it.", ("reason",), ""),
        ("ev_changes", "EVs that a sender skipped, retired and took back.", ("change",), ""),
    ):
        yield SeriesFamily(f"mrc_host_{name}", _COUNTER, text, ("host", *labels), unit, _EVENTS)
    evs = "EVs of all pairs with a QP, by plane, uplink and state."
    yield SeriesFamily("mrc_evs", _GAUGE, evs, ("plane", "uplink", "state"), source=_EVENTS)
    up = "1 while an endpoint takes its NIC port for up."
    yield SeriesFamily("mrc_port_up", _GAUGE, up, ("host", "plane"), source=_EVENTS)
    stalled = "For how long a QP has delivered nothing, while it lasts."
    yield SeriesFamily("mrc_qp_stalled_seconds", _GAUGE, stalled, ("host", "qp", "peer"), "seconds", _EVENTS)
    late = "How late the timers of an endpoint were."
    yield SeriesFamily("mrc_daemon_lateness_seconds", _GAUGE, late, ("host", "stat"), "seconds", _EVENTS)


def _of_ports() -> Iterator[SeriesFamily]:
    for way, done in (("rx", "received at"), ("tx", "sent by")):
        for what, unit in (("bytes", "bytes"), ("packets", ""), ("drops", "")):
            text = f"Packets not {done} a port." if what == "drops" else f"{what.title()} {done} a port."
            yield SeriesFamily(f"mrc_link_{way}_{what}", _COUNTER, text, _PORT, unit, _SAMPLES)
    for done in ("marked", "trimmed", "dropped"):
        text = f"Data packets that a port {done}."
        yield SeriesFamily(f"mrc_switch_{done}_packets", _COUNTER, text, _SWITCH_PORT, source=_PORTS)
    for what, text in (
        ("data", "Data packets that came to a port to leave by it."),
        ("trimmed_through", "Packets trimmed before that left by a port."),
        ("control", "Control packets that left by a port."),
    ):
        name = f"mrc_switch_{what}_packets"
        yield SeriesFamily(name, _COUNTER, text, _SWITCH_PORT, source=_COUNTERS, live=False)
    drops, labels = "Packets that a queue of a port dropped.", (*_SWITCH_PORT, "queue")
    yield SeriesFamily("mrc_switch_queue_drops", _COUNTER, drops, labels, source=_COUNTERS, live=False)
    taken = "Packets that came for the uSID of a switch; a reboot begins again."
    yield SeriesFamily("mrc_switch_sid_packets", _COUNTER, taken, _SWITCH_SID, source=_COUNTERS, live=False)
    strange = "Packets for whose destination a switch had neither a uSID nor a route."
    yield SeriesFamily("mrc_switch_no_sid_packets", _COUNTER, strange, _SWITCH, source=_COUNTERS, live=False)
    for what, text in (
        ("lost", "Packets that a fault dropped on arrival."),
        ("corrupted", "Packets in which a fault changed a bit."),
    ):
        yield SeriesFamily(f"mrc_switch_{what}_packets", _COUNTER, text, _SWITCH_PORT, source=_PORTS, truth=True)


def _of_work() -> Iterator[SeriesFamily]:
    steps = "Steps that all ranks of a job have finished."
    yield SeriesFamily("mrc_steps", _COUNTER, steps, ("job",), source="completions.csv")
    took = "Time that steps took, warm-up included."
    yield SeriesFamily("mrc_step_duration_seconds", _HISTOGRAM, took, ("job",), "seconds", "completions.csv")
    placed = "Bytes that flows placed in memory."
    yield SeriesFamily("mrc_flow_delivered_bytes", _COUNTER, placed, ("entry",), "bytes", "flows.csv")
    took = "Time from the post of a message to its acknowledgement."
    yield SeriesFamily("mrc_message_duration_seconds", _HISTOGRAM, took, ("entry",), "seconds", "messages.csv")


FAMILIES: Mapping[str, SeriesFamily] = {family.name: family for family in _families()}
"""By name, in the order in which they are exposed."""
