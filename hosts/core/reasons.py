"""Why something was lost, ignored or ended. Every value is a counter name or an event text."""

from __future__ import annotations

from enum import Enum


class LossReason(Enum):
    """Why a transmitted packet is taken for lost (digest 3.8, 3.9, 5.4)."""

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


BLAMES_PATH = frozenset({LossReason.OVERTAKEN, LossReason.REORDERED, LossReason.PROBED, LossReason.TIMEOUT})
"""Losses nobody explained: they retire the EV. A NACK explains the loss, so the path is not at fault (digest 3.9)."""


class Ignored(Enum):
    """Why a well-formed packet had no effect."""

    UNKNOWN_PEER = "unknown_peer"
    UNKNOWN_QP = "unknown_qp"
    WRONG_PEER = "wrong_peer"
    QP_STATE = "qp_state"
    PSN_WINDOW = "psn_window"
    REMOTE_ACCESS = "remote_access"
    TOO_MANY_WIMM = "too_many_wimm"
    ACKS_UNSENT = "acks_unsent"
    UNKNOWN_PROBE = "unknown_probe"
    UNKNOWN_OPERATION = "unknown_operation"
    UNKNOWN_REASON = "unknown_reason"
    NOT_OUTSTANDING = "not_outstanding"


class QpFailure(Enum):
    """Why a QP went to ERROR."""

    RETRY_EXCEEDED = "retry counter exceeded"
    INVALID_REQUEST = "invalid request"
    REMOTE_ACCESS = "remote access error"
    REMOTE_OPERATION = "remote operation error"
