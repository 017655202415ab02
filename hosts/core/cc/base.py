"""The seam between a sender and its congestion control."""

from __future__ import annotations

from typing import Protocol


class CongestionControl(Protocol):
    """Sizes are counted bytes (UDP length + 40, digest 3.11), times ns. A sender may send while what is under way plus
    one packet fits `window`, and always if nothing is under way."""

    window: int

    def begin(self) -> None:
        """New work was posted."""

    def on_sack(self, acked: int, rtt_ns: int | None, ecn: bool, under_way: int, now_ns: int) -> None:
        """A SACK: `acked` bytes are news, `rtt_ns` is the round trip of its trigger if that is known, `ecn` says that
        the trigger was marked, `under_way` is what is still unacknowledged."""

    def on_trim(self, size: int, under_way: int, now_ns: int) -> None:
        """A NACK said that a packet was trimmed."""

    def on_loss(self, size: int) -> None:
        """A packet is taken for lost without explanation."""

    def on_penalty(self, penalty: int, restore: bool, acked: int) -> None:
        """The receiver asks for less (`penalty` / 128 packets per packet acknowledged), or to go back (`restore`).
        Called before `on_sack` of the same SACK."""
