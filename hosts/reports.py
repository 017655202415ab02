"""Events of the core and reports of programs as lines to the runner (docs/architecture.md, "The control channel")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from mrc_testbed.hosts.common.events import QpError, StallEnded
from mrc_testbed.hosts.control import Fields
from mrc_testbed.hosts.mrc.events import EvChanged, FloorHeld, PlaneChanged, PortChanged
from mrc_testbed.hosts.program_io import CompletedReport, FlowsReport, IntervalReport, Report, StepReport
from mrc_testbed.hosts.rc.port_events import PortMoved


def describe(event: object, peers: Mapping[int, str], qps: Mapping[int, str]) -> tuple[str, Fields]:
    """Name and fields of the line of an event that goes to the runner; the others go to the program.

    `peers`: host number to name, `qps`: QP number to name. Raises TypeError for what is no event.
    """
    match event:
        case EvChanged():
            return "ev_state", _ev_state(event, peers[event.peer])
        case PlaneChanged():
            return "plane_state", {"peer": peers[event.peer], "plane": event.plane, "usable": event.usable}
        case PortChanged():
            peer = None if event.peer is None else peers[event.peer]
            return "port_state", {"peer": peer, "plane": event.plane, "state": event.state.value}
        case FloorHeld():
            where = {"peer": peers[event.peer], "plane": event.plane, "uplink": event.uplink}
            return "floor", {**where, "in_use": event.in_use, "trigger": event.trigger}
        case QpError():
            return "qp_error", {"qp": qps[event.qpn], "peer": peers[event.peer], "reason": str(event.reason)}
        case PortMoved():
            moved = {"plane": event.plane, "state": event.state, "carrier": event.carrier}
            return "failover", {"qp": qps[event.qpn], "peer": peers[event.peer], **moved}
        case StallEnded():
            when = {"begin_ns": event.begin_ns, "end_ns": event.end_ns}
            return "stall", {"qp": qps[event.qpn], "peer": peers[event.peer], **when}
        case _:
            raise TypeError(f"{event!r} is no event that a runner hears")


def _ev_state(event: EvChanged, peer: str) -> Fields:
    return {
        "peer": peer,
        "plane": event.plane,
        "uplink": event.uplink,
        "from": event.old.value,
        "to": event.new.value,
        "trigger": event.trigger,
        "first_lost_tx_ns": event.first_lost_tx_ns,
        "last_tx_ns": event.last_tx_ns,
    }


def describe_report(report: Report) -> tuple[str, Fields]:
    """Name and fields of the line for what a program reports."""
    match report:
        case StepReport():
            fields = {"step": report.step, "begin_ns": report.begin_ns, "end_ns": report.end_ns}
            moved = {"bytes": report.sent_bytes, "bytes_wrong": report.wrong_bytes}
            return "step", {**fields, **moved, "waits": report.waits}
        case IntervalReport():
            return "received", {"qp": report.qp, **report.interval._asdict()}
        case CompletedReport():
            return "completed", {"qp": report.qp, "messages": report.completed}
        case FlowsReport():
            return "flows_done", {"peer": report.peer, "flows": report.flows}
        case _:
            assert_never(report)
