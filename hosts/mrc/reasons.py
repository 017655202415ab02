"""Why something was lost or ignored, and what ends a QP. Every value is a counter name or an event text."""

from __future__ import annotations

from enum import Enum

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.mrc import wire


class LossReason(Enum):
    """Why a transmitted packet is taken for lost (docs/protocol.md, "Loss and recovery")."""

    OVERTAKEN = "overtaken"
    """A later packet of the same EV and class arrived; a static path is first in, first out."""
    REORDERED = "reordered"
    """A packet sent at least R later arrived, and one at least 3 PSNs above."""
    PROBED = "probed"
    """Still missing in the answer to a reliability probe sent at least R after it."""
    TIMEOUT = "timeout"
    """Not acknowledged within the retransmission timeout."""
    TRIMMED = "trimmed"
    TRIMMED_LASTHOP = "trimmed_lasthop"
    NO_BITMAP = "no_bitmap"
    NO_PKT_BUFFER = "no_pkt_buffer"
    NO_RESOURCE = "no_resource"
    PSN_OOR_WINDOW = "psn_oor_window"
    PORT_DOWN = "port_down"
    """It was under way on a plane that has just lost a port; nobody waits to find out."""


BLAMES_PATH = frozenset({LossReason.OVERTAKEN, LossReason.REORDERED, LossReason.PROBED, LossReason.TIMEOUT})
"""Losses without an explanation: they retire the EV (P1 2.1). A NACK explains the loss, so the path is not at fault."""


class Ignored(Enum):
    """Why a well-formed packet had no effect."""

    UNKNOWN_PEER = "unknown_peer"
    UNKNOWN_QP = "unknown_qp"
    WRONG_PEER = "wrong_peer"
    WRONG_QP = "wrong_qp"
    """A SACK, NACK or probe that names another QP as its sender's than the one this QP is connected to."""
    QP_STATE = "qp_state"
    PSN_WINDOW = "psn_window"
    REMOTE_ACCESS = "remote_access"
    TOO_MANY_WIMM = "too_many_wimm"
    LONGER_THAN_LENGTH = "longer_than_length"
    """A payload that is longer than the DMA length of its whole operation."""
    RQMSN_TWICE = "rqmsn_twice"
    """Two messages with the same number of an immediate."""
    NO_RECEIVE = "no_receive"
    """An immediate for which the program has posted no receive."""
    OWN_MEMORY = "own_memory"
    """A program's memory that is registered and cannot be written."""
    ACKS_UNSENT = "acks_unsent"
    COUNTS_UNSENT = "counts_unsent"
    """A SACK whose byte counter is ahead by more than was sent; its acknowledgements count, its holes do not."""
    UNKNOWN_PROBE = "unknown_probe"
    UNKNOWN_OPERATION = "unknown_operation"
    UNKNOWN_REASON = "unknown_reason"
    NOT_OUTSTANDING = "not_outstanding"
    OLD_UPDATE = "old_update"
    """A Port Status Update that a later one has overtaken."""
    NO_PORT_LEFT = "no_port_left"
    """Says that all ports of its sender are down, and yet it has come."""


NACK_REASONS = {
    wire.NACK_TRIMMED: LossReason.TRIMMED,
    wire.NACK_TRIMMED_LASTHOP: LossReason.TRIMMED_LASTHOP,
    wire.NACK_NO_BITMAP: LossReason.NO_BITMAP,
    wire.NACK_NO_PKT_BUFFER: LossReason.NO_PKT_BUFFER,
    wire.NACK_NO_RESOURCE: LossReason.NO_RESOURCE,
    wire.NACK_PSN_OOR_WINDOW: LossReason.PSN_OOR_WINDOW,
}
REFUSALS = {
    Ignored.REMOTE_ACCESS: (bth.AETH_NAK_REMOTE_ACCESS, QpFailure.PEER_OUTSIDE_REGION),
    Ignored.TOO_MANY_WIMM: (bth.AETH_NAK_INVALID_REQUEST, QpFailure.PEER_INVALID_REQUEST),
    Ignored.LONGER_THAN_LENGTH: (bth.AETH_NAK_INVALID_REQUEST, QpFailure.PEER_INVALID_REQUEST),
    Ignored.RQMSN_TWICE: (bth.AETH_NAK_INVALID_REQUEST, QpFailure.PEER_INVALID_REQUEST),
    Ignored.NO_RECEIVE: (bth.AETH_NAK_REMOTE_OPERATION, QpFailure.NO_RECEIVE),
    Ignored.OWN_MEMORY: (bth.AETH_NAK_REMOTE_OPERATION, QpFailure.OWN_MEMORY),
}
"""Requests that end a QP: what the peer is told, and what this side's QP fails with."""
TRIMS = frozenset({LossReason.TRIMMED, LossReason.TRIMMED_LASTHOP})
NAK_FAILURES = {
    bth.AETH_NAK_INVALID_REQUEST: QpFailure.INVALID_REQUEST,
    bth.AETH_NAK_REMOTE_ACCESS: QpFailure.REMOTE_ACCESS,
    bth.AETH_NAK_REMOTE_OPERATION: QpFailure.REMOTE_OPERATION,
}
