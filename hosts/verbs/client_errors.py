"""What a program's verbs raise. All are RuntimeErrors with one clear line."""

from __future__ import annotations

from typing import Final

STATUS_NAMES: Final = {
    2: "local operation error",
    4: "local memory cannot be read",
    5: "flushed",
    9: "the peer refused the request",
    10: "the peer refused the access to its memory",
    11: "the peer failed to carry it out",
    12: "no acknowledgement after all retries",
}
"""Of completions, by the numbers that ibv_wc_status has."""
FLUSHED: Final = 5


class VerbsError(RuntimeError):
    """Anything that went wrong below the verbs."""


class NoDevice(VerbsError):
    """Nobody listens where MRC_TESTBED_SOCKET says, or it is not set: this program runs on no host of a run."""


class DeviceLost(VerbsError):
    """The daemon of the host has gone, or this process is a fork of the one that opened the device."""


class Refused(VerbsError):
    """The daemon refused a request. `errno` says why as a number."""

    def __init__(self, text: str, errno: int) -> None:
        super().__init__(text)
        self.errno = errno


class QueuePairError(VerbsError):
    """A QP is in ERROR. `status` is that of its oldest write (ibv_wc_status)."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class TimedOut(VerbsError):
    """What was waited for did not come in the time given."""


def status_name(status: int) -> str:
    """In words."""
    return STATUS_NAMES.get(status, f"status {status}")
