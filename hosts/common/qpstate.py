"""The life of a QP as a table (states: API; docs/protocol.md, "A QP")."""

from __future__ import annotations

from enum import Enum

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.transitions import step


class QpState(Enum):
    """May this QP receive, and send?"""

    RESET = "RESET"
    INIT = "INIT"
    """Has a region, does not know its peer's QP."""
    RTR = "RTR"
    """May receive."""
    RTS = "RTS"
    """May send too."""
    ERROR = "ERROR"


class QpInput(Enum):
    """What moves a QP."""

    OPEN = "open"
    LEARN_PEER = "learn the peer's attributes"
    ENABLE_SEND = "enable sending"
    FAIL = "fail"
    RESET = "reset"


TRANSITIONS: dict[tuple[QpState, QpInput], QpState] = {
    (QpState.RESET, QpInput.OPEN): QpState.INIT,
    (QpState.INIT, QpInput.LEARN_PEER): QpState.RTR,
    (QpState.RTR, QpInput.ENABLE_SEND): QpState.RTS,
    (QpState.INIT, QpInput.FAIL): QpState.ERROR,
    (QpState.RTR, QpInput.FAIL): QpState.ERROR,
    (QpState.RTS, QpInput.FAIL): QpState.ERROR,
    (QpState.INIT, QpInput.RESET): QpState.RESET,
    (QpState.RTR, QpInput.RESET): QpState.RESET,
    (QpState.RTS, QpInput.RESET): QpState.RESET,
    (QpState.ERROR, QpInput.RESET): QpState.RESET,
}


class QueuePair:
    """One QP, whatever its protocol. `live` is RTS, for the hot path; `region`: its registered memory."""

    __slots__ = ("live", "region", "state")

    def __init__(self, region_bytes: int) -> None:
        self.region = memoryview(bytearray(region_bytes))
        self.state = QpState.RESET
        self.live = False

    def advance(self, qpn: int, event: QpInput) -> None:
        """Take the table's step. Raises `QpStateError` where it has none."""
        new = step(TRANSITIONS, self.state, event)
        if new is None:
            raise QpStateError(qpn, self.state.value, event.value)
        self.state = new
        self.live = new is QpState.RTS

    def post(self, data: memoryview, address: int, wr_id: int, immediate: int | None) -> None:
        """Queue a write. Raises `QpStateError` unless the QP is in RTS."""
        raise NotImplementedError

    def destroy(self) -> None:
        """Let go of the region and of all that is under way. The QP must not be used any more."""
        raise NotImplementedError
