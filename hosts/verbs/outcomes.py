"""What a program hears of the end of a QP (ibv_wc_status and ibv_event_type of the verbs API)."""

from __future__ import annotations

from typing import NamedTuple

from mrc_testbed.hosts.common.events import QpFailure

FLUSHED = 5
QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR = 1, 2, 3
PORT_ACTIVE, PORT_ERR = 9, 10


class QpOutcome(NamedTuple):
    """`status` of the oldest write that is outstanding; `event`: an asynchronous one, 0 for none."""

    status: int
    event: int


OUTCOMES: dict[str, QpOutcome] = {
    QpFailure.RETRY_EXCEEDED: QpOutcome(12, 0),
    QpFailure.ALL_PORTS_DOWN: QpOutcome(12, 0),
    QpFailure.INVALID_REQUEST: QpOutcome(9, 0),
    QpFailure.REMOTE_ACCESS: QpOutcome(10, 0),
    QpFailure.REMOTE_OPERATION: QpOutcome(11, 0),
    QpFailure.LOCAL_PROTECTION: QpOutcome(4, 0),
    QpFailure.PEER_INVALID_REQUEST: QpOutcome(FLUSHED, QP_REQ_ERR),
    QpFailure.PEER_OUTSIDE_REGION: QpOutcome(FLUSHED, QP_ACCESS_ERR),
    QpFailure.NO_RECEIVE: QpOutcome(FLUSHED, QP_FATAL),
    QpFailure.OWN_MEMORY: QpOutcome(FLUSHED, QP_FATAL),
    QpFailure.BY_PROGRAM: QpOutcome(FLUSHED, 0),
}


def outcome_of(reason: str, outstanding: int) -> QpOutcome:
    """A failure that no outstanding write tells of is an event."""
    outcome = OUTCOMES[reason]
    told = outstanding or outcome.event or reason == QpFailure.BY_PROGRAM
    return outcome if told else outcome._replace(event=QP_FATAL)
