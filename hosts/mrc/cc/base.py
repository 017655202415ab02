"""The seam between a sender and its congestion control."""

from __future__ import annotations

from typing import Protocol


class CongestionControl(Protocol):
    """Decides how many bytes one QP may have under way. It is made with the `Timing` towards the QP's peer when the QP
    is connected, and lives as long as the QP.

    Sizes are counted bytes: UDP length + 40 for each packet (spec 8.3.1, by a reader). Times are integer ns of the
    endpoint's clock. A sender sends while what is under way plus one full packet fits `window`, and always while
    nothing is under way; beside the window a token bucket per plane holds the port rate. No method may wait or read a
    clock. Of `Timing` it may read `t_ns` (T), `base_ns`, `smallest_rtt_ns`, `smoothed_rtt_ns`, `forwarding_ns` (a full
    packet's time on four links, not in T), `bdp_bytes` (of all planes), `t_bytes` (what they carry in T alone),
    `packet_bytes` (a full packet), `window_bytes` (1.5 BDP, or of 14 packets a plane if that is more), `least_t_ns`
    (what a port takes to send those), `trimming` and `trims_tell`.
    """

    window: int
    """Bytes that may be under way. The sender reads it before every packet."""

    def begin(self) -> None:
        """A write was posted, perhaps after a long pause: T may have been measured since."""

    def on_sack(self, acked: int, rtt_ns: int | None, ecn: bool, under_way: int, now_ns: int) -> None:
        """A SACK: `acked` bytes are news since the last one, by this one or by Transport ACKs (0 if nothing is),
        `rtt_ns` is the round trip of its trigger if that is known, `ecn` says that the trigger was marked, `under_way`
        is what is still unacknowledged. Losses that the same SACK shows come after it."""

    def on_trim(self, size: int, under_way: int, now_ns: int) -> None:
        """A NACK said that a packet of `size` bytes was trimmed; `under_way` is without it."""

    def on_loss(self, size: int) -> None:
        """A packet of `size` bytes is taken for lost without explanation. Not called for one that a NACK explains or
        that was under way on a plane which lost a port."""

    def on_penalty(self, penalty: int, restore: bool, acked: int) -> None:
        """The receiver asks for less (`penalty` / 128 packets per packet acknowledged), or to go back (`restore`).
        Called before `on_sack` of the same SACK, with the same `acked`."""
