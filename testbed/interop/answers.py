"""What a program answers, read and checked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from mrc_testbed.hosts.common.errors import PeerAttributeError
from mrc_testbed.hosts.mrc.config import QpAttributes
from mrc_testbed.testbed.interop.program import ContractFailure, Fields

EVENTS = {
    "completed": ("qpn", "wr_id"),
    "immediate": ("qpn", "immediate"),
    "qp_error": ("qpn",),
    "ev_state": ("peer", "plane", "uplink"),
}
"""By name: the fields that are whole numbers."""
MOST_PACKETS = 64
"""That a program may send in a turn."""
_LARGEST = 9000


@dataclass(frozen=True, slots=True)
class OutgoingPacket:
    """A packet that the program wants sent."""

    peer: int
    plane: int
    uplink: int
    traffic_class: int
    packet: bytes


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """Of a `turn`: what to send, what was written to memory as (QP, offset, data), what happened, and when the next
    turn must come at the latest, None for no need. `more`: there is more to send at once."""

    transmit: list[OutgoingPacket]
    place: list[tuple[int, int, bytes]]
    events: list[Fields]
    timeout_ns: int | None
    more: bool


def read_turn(answer: Fields) -> TurnAnswer:
    """Raises ContractFailure."""
    rows = _rows(answer, "transmit")
    if len(rows) > MOST_PACKETS:
        raise ContractFailure(f"a turn has {len(rows)} packets in `transmit`, more than {MOST_PACKETS}")
    timeout_ns = answer.get("timeout_ns")
    if timeout_ns is not None and not _is_number(timeout_ns):
        raise ContractFailure(f"`timeout_ns` must be a whole number or null, not {timeout_ns!r}")
    return TurnAnswer(
        [_outgoing(row) for row in rows],
        [_placed(row) for row in _rows(answer, "place")],
        [_event(row) for row in _rows(answer, "events")],
        timeout_ns,
        answer.get("more") is True,
    )


def read_qp(answer: Fields, region_bytes: int) -> QpAttributes:
    """Raises ContractFailure."""
    try:
        attributes = QpAttributes.from_json(answer["qp"])
    except (KeyError, IndexError, TypeError) as error:
        raise ContractFailure(f"`open_qp`: missing or malformed attribute {error}") from None
    except PeerAttributeError as error:
        raise ContractFailure(f"`open_qp`: {error}") from None
    if attributes.region_bytes != region_bytes:
        raise ContractFailure(f"`open_qp`: a region of {attributes.region_bytes} B, not of {region_bytes} B")
    return attributes


def _outgoing(row: Any) -> OutgoingPacket:
    if not isinstance(row, list) or len(row) != 5 or not all(map(_is_number, row[:4])):
        raise ContractFailure("`transmit` must be [[peer, plane, uplink, class, hex], ...]")
    packet = _bytes(row[4], "transmit")
    if not 16 <= len(packet) <= _LARGEST or row[3] > 255:
        raise ContractFailure(f"`transmit`: {len(packet)} B of class {row[3]} are no packet")
    peer, plane, uplink, traffic_class = row[:4]
    return OutgoingPacket(peer, plane, uplink, traffic_class, packet)


def _placed(row: Any) -> tuple[int, int, bytes]:
    if not isinstance(row, list) or len(row) != 3 or not all(map(_is_number, row[:2])):
        raise ContractFailure("`place` must be [[qpn, offset, hex], ...]")
    return row[0], row[1], _bytes(row[2], "place")


def _event(row: Any) -> Fields:
    name = row.get("event") if isinstance(row, dict) else None
    if not isinstance(name, str) or name not in EVENTS:
        raise ContractFailure(f"an event must be one of {', '.join(EVENTS)}, not {name!r}")
    for key in EVENTS[name]:
        if not _is_number(row.get(key)):
            raise ContractFailure(f"the event {name} must have {key}, a whole number")
    return dict(row)


def _rows(answer: Fields, key: str) -> list[Any]:
    rows = answer.get(key, [])
    if not isinstance(rows, list):
        raise ContractFailure(f"`{key}` must be a list")
    return rows


def _bytes(text: Any, where: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise ContractFailure(f"`{where}`: not hex: {str(text)[:40]!r}") from None


def _is_number(value: Any) -> bool:
    return type(value) is int and value >= 0


def known(what: str, value: Any, values: Collection[Any]) -> None:
    """Raises ContractFailure unless it is one of these."""
    if value not in values:
        raise ContractFailure(f"{what} {value} is none that it was given")
