"""The life of a QP as a table (states: API; docs/protocol.md, "A QP")."""

from __future__ import annotations

from enum import Enum

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.memory import QpTerms, ReadableMemory
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
    CLOSING = "CLOSING"
    """Its program has destroyed it: it answers for what has come, and takes nothing new."""
    ERROR = "ERROR"


class QpInput(Enum):
    """What moves a QP."""

    OPEN = "open"
    LEARN_PEER = "learn the peer's attributes"
    ENABLE_SEND = "enable sending"
    FAIL = "fail"
    RESET = "reset"
    CLOSE = "close"


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
    (QpState.RTR, QpInput.CLOSE): QpState.CLOSING,
    (QpState.RTS, QpInput.CLOSE): QpState.CLOSING,
    (QpState.CLOSING, QpInput.RESET): QpState.RESET,
}


_RECEIVES = frozenset({QpState.RTR, QpState.RTS, QpState.CLOSING})


class QueuePair:
    """One QP, whatever its protocol. For the hot path: `live` is RTS, `receives` says whether it takes packets in.

    `region`: the memory registered with it; a program's QPs have that of their domain.
    """

    __slots__ = ("live", "receives", "region", "state")

    def __init__(self, region_bytes: int) -> None:
        self.region = memoryview(bytearray(region_bytes))
        self.state = QpState.RESET
        self.live = self.receives = False

    def advance(self, qpn: int, event: QpInput) -> None:
        """Take the table's step. Raises `QpStateError` where it has none."""
        new = step(TRANSITIONS, self.state, event)
        if new is None:
            raise QpStateError(qpn, self.state.value, event.value)
        self.state = new
        self.live = new is QpState.RTS
        self.receives = new in _RECEIVES

    def post(
        self, data: ReadableMemory, address: int, wr_id: int, immediate: int | None, rkey: int | None = None
    ) -> None:
        """Queue a write; without `rkey` into the peer's region. Raises `QpStateError` unless the QP is in RTS."""
        raise NotImplementedError

    def enable_send(self, psn: int, terms: QpTerms) -> None:
        """RTR -> RTS, for a program's QP: its first packet has `psn`, and its peer may not be ready yet."""
        raise NotImplementedError

    def post_receives(self, count: int) -> None:
        """Take in `count` more writes with immediate. A program's QP takes in none that was not asked for."""
        raise NotImplementedError

    def fail(self, reason: QpFailure) -> None:
        """Any live state -> ERROR: drop what is queued and tell the application."""
        raise NotImplementedError

    def close(self) -> None:
        """RTR, RTS -> CLOSING."""
        raise NotImplementedError

    def destroy(self) -> None:
        """Let go of the region and of all that is under way. The QP must not be used any more."""
        raise NotImplementedError
