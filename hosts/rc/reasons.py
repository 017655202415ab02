"""Why a packet had no effect, and what ends a QP. Every value is part of a counter's name."""

from __future__ import annotations

from enum import Enum

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.events import QpFailure


class RcIgnored(Enum):
    """Why a well-formed packet had no effect."""

    UNKNOWN_PEER = "unknown_peer"
    UNKNOWN_QP = "unknown_qp"
    WRONG_PEER = "wrong_peer"
    QP_STATE = "qp_state"
    PSN_WINDOW = "psn_window"
    """A PSN too far from what is awaited: of another connection."""
    REMOTE_ACCESS = "remote_access"
    OUT_OF_MESSAGE = "out_of_message"
    """A packet in the middle of a message that has not begun, or the beginning of another in one that has not ended."""
    WRONG_LENGTH = "wrong_length"
    """More or fewer bytes than the message has by its DMA length."""
    NO_RECEIVE = "no_receive"
    """An immediate for which the program has posted no receive."""
    OWN_MEMORY = "own_memory"
    """A program's memory that is registered and cannot be written."""
    ACKS_UNSENT = "acks_unsent"
    OLD_NAK = "old_nak"
    """It asks for what has been acknowledged since."""
    UNKNOWN_PLANE = "unknown_plane"
    """Of a QP that spreads over planes: the source port is that of none of them."""
    ONE_PLANE = "one_plane"
    """A probe of a plane for a QP that keeps to one."""
    UNKNOWN_SYNDROME = "unknown_syndrome"


REFUSED_REQUESTS = {
    RcIgnored.REMOTE_ACCESS: (bth.AETH_NAK_REMOTE_ACCESS, QpFailure.PEER_OUTSIDE_REGION),
    RcIgnored.OUT_OF_MESSAGE: (bth.AETH_NAK_INVALID_REQUEST, QpFailure.PEER_INVALID_REQUEST),
    RcIgnored.WRONG_LENGTH: (bth.AETH_NAK_INVALID_REQUEST, QpFailure.PEER_INVALID_REQUEST),
    RcIgnored.NO_RECEIVE: (bth.AETH_NAK_REMOTE_OPERATION, QpFailure.NO_RECEIVE),
    RcIgnored.OWN_MEMORY: (bth.AETH_NAK_REMOTE_OPERATION, QpFailure.OWN_MEMORY),
}
"""Requests that end a QP: what the peer is told, and what this side's QP fails with."""
NAK_FAILURES = {
    bth.AETH_NAK_INVALID_REQUEST: QpFailure.INVALID_REQUEST,
    bth.AETH_NAK_REMOTE_ACCESS: QpFailure.REMOTE_ACCESS,
    bth.AETH_NAK_REMOTE_OPERATION: QpFailure.REMOTE_OPERATION,
}
