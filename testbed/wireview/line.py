"""One packet as one line, or as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from mrc_testbed.hosts.rc.wire import SYNDROME_NAK_SEQUENCE
from mrc_testbed.testbed.wireview.names import RC_SYNDROMES, address_name, class_name, still_to_go
from mrc_testbed.testbed.wireview.packet import FieldValues, Packet
from mrc_testbed.testbed.wireview.runs import runs, runs_text
from mrc_testbed.testbed.wireview.ways import TierWays

HEADING = f"{'time s':>11}  {'from':>4}    {'to':<4}  {'EV':<5} {'class':<11} {'packet':<17} what it says"


def line(packet: Packet, begin_ns: int) -> str:
    """A line for people. Times count from `begin_ns`; the uSIDs left in the outer address come last, behind `>`."""
    frame = packet.frame
    hosts = f"{address_name(frame.source):>4} -> {address_name(frame.destination):<4}"
    text = (
        f"{(frame.time_ns - begin_ns) / 1e9:11.6f}  {hosts}  {packet.ev:<5} "
        f"{class_name(frame.traffic_class):<11} {packet.kind:<17} {_SAYS.get(packet.kind, _data)(packet.values)}"
    )
    if frame.cut:
        text += f"  ({frame.cut} B not captured)"
    if packet.marks:
        text += f"  ({', '.join(packet.marks)})"
    left = still_to_go(frame.outer)
    return f"{text}  > {' '.join(left)}" if left else text


def hosts_of(packet: Packet) -> tuple[str, str]:
    """Its sender and its receiver."""
    return address_name(packet.frame.source), address_name(packet.frame.destination)


def as_json(packet: Packet, comments: Sequence[str], ways: TierWays | None = None) -> str:
    """For programs: addresses as host names, times in ns as in the file, ranges as pairs, all header values. `ways`: of
    the fabric, where they are known."""
    frame = packet.frame
    ends = hosts_of(packet)
    about: dict[str, Any] = {
        "time_ns": frame.time_ns,
        "from": ends[0],
        "to": ends[1],
        "still_to_go": still_to_go(frame.outer),
        "class": class_name(frame.traffic_class),
        "type": packet.kind,
        "ev": packet.ev,
        **({"way": ways.way(packet, *ends)} if ways else {}),
        "not_captured_bytes": frame.cut,
        **({"marks": packet.marks} if packet.marks else {}),
        **({"comments": comments} if comments else {}),
    }
    return json.dumps(about | packet.values)


def _data(v: FieldValues) -> str:
    message = f" msg {v['message']}" if "message" in v else ""
    text = f"qp {v['qp']:#x} psn {v['psn']}{message} {v['payload_bytes']} B"
    if "immediate" in v:
        text += f" imm {v['immediate']:#x}"
    return text + _flags(v, ack_request="ACKREQ", rtx="RTX", trimmed="TRIMMED")


def _sack(v: FieldValues) -> str:
    text = f"qp {v['qp']:#x} cack {v['cack']}"
    text += "".join(f" {offsets}" for offsets in _beyond(v["sack_offset"], int(v["bitmap"], 0)))
    text += f" probe {v['probe_id']}" if "probe_id" in v else f" for psn {v['trigger']} on {v['of_ev']}"
    if v["mark"] != "NONE":
        text += f" {v['mark']}"
    if v["ports_down"]:
        text += f" ports down {runs_text(v['ports_down'])}"
    if v["penalty"]:
        text += f" penalty {v['penalty']}"
    return text + _flags(v, rtx="RTX")


def _beyond(sack_offset: int, bitmap: int) -> list[str]:
    """A bitmap as PSNs relative to cack, because full PSNs are long: `+3`, `+6..8`."""
    pairs = [(first + sack_offset, last + sack_offset) for first, last in runs(bitmap)]
    return [f"{first:+d}" if first == last else f"{first:+d}..{last}" for first, last in pairs]


def _nack(v: FieldValues) -> str:
    return f"qp {v['qp']:#x} psn {v['psn']} {v['reason']} on {v['of_ev']}" + _flags(v, rtx="RTX")


def _probe(v: FieldValues) -> str:
    return f"qp {v['qp']:#x} probe {v['probe_id']}"


def _request(v: FieldValues) -> str:
    return f"{v['op']} id {v['request_id']} ports up {runs_text(v['ports_up'])}"


def _response(v: FieldValues) -> str:
    text = f"{v['op']} id {v['request_id']} ports up {runs_text(v['ports_up'])} for {v['of_ev']}"
    return text if v["mark"] == "NONE" else f"{text} {v['mark']}"


def _ack(v: FieldValues) -> str:
    # With selective recovery this field of a NAK is the PSN of the packet that came, and nothing tells which it is.
    field = "msn" if v["syndrome"] == RC_SYNDROMES[SYNDROME_NAK_SEQUENCE] else "msg"
    return f"qp {v['qp']:#x} psn {v['psn']} {v['syndrome']} {field} {v['message']}"


def _notification(v: FieldValues) -> str:
    return f"qp {v['qp']:#x} slow down"


def _read(v: FieldValues) -> str:
    return f"qp {v['qp']:#x} psn {v['psn']} {v['read_bytes']} B from {v['address']:#x}"


def _send(v: FieldValues) -> str:
    return f"qp {v['qp']:#x} psn {v['psn']} imm {v['immediate']}"


def _plane(v: FieldValues) -> str:
    return f"qp {v['qp']:#x}"


def _flags(v: FieldValues, **words: str) -> str:
    return "".join(f" {word}" for key, word in words.items() if v.get(key))


_SAYS: dict[str, Callable[[FieldValues], str]] = {
    "SACK": _sack,
    "NACK": _nack,
    "PROBE": _probe,
    "ENDPOINT_REQUEST": _request,
    "ENDPOINT_RESPONSE": _response,
    "TRANSPORT_ACK": _ack,
    "RC_ACK": _ack,
    "RC_READ_REQUEST": _read,
    "RC_READ_RESPONSE_ONLY": _ack,
    "UC_SEND_ONLY_IMM": _send,
    "CNP": _notification,
    "PLANE_PROBE": _plane,
    "PLANE_ANSWER": _plane,
}
