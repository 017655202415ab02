"""What happens to QPs, as every kind of endpoint tells its application."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class QpFailure(StrEnum):
    """Why a QP went to ERROR."""

    RETRY_EXCEEDED = "retries exceeded"
    ALL_PORTS_DOWN = "all ports down"
    INVALID_REQUEST = "invalid request"
    REMOTE_ACCESS = "remote access error"
    REMOTE_OPERATION = "remote operation error"
    PEER_INVALID_REQUEST = "the peer's request was invalid"
    PEER_OUTSIDE_REGION = "the peer's request was outside of the region"
    NO_RECEIVE = "the peer's immediate found no posted receive"
    OWN_MEMORY = "memory that the peer wrote to is not there"
    LOCAL_PROTECTION = "memory of a posted write is not there"
    BY_PROGRAM = "its program put it in ERROR"


@dataclass(slots=True)
class ImmediateDelivered:
    """A WRITE-with-immediate, and every message sent before it, is whole in the memory of `qpn`. `length`: its bytes,
    where the transport's packets say so."""

    qpn: int
    immediate: int
    msn: int
    length: int = 0


@dataclass(slots=True)
class WriteCompleted:
    """The peer's Transport ACK covers the last packet of this write; its buffer may be reused."""

    qpn: int
    wr_id: int


@dataclass(slots=True)
class QpError:
    """The QP went to ERROR; nothing more is sent or completed on it. `reason` is a `QpFailure`, or what the kernel
    said of a connection of its own."""

    qpn: int
    peer: int
    reason: str


@dataclass(slots=True)
class StallEnded:
    """A QP delivered nothing from `begin_ns` to `end_ns`, when something was acknowledged again."""

    qpn: int
    peer: int
    begin_ns: int
    end_ns: int


QpEvent = ImmediateDelivered | WriteCompleted | QpError | StallEnded
"""What endpoints of all transports say."""
