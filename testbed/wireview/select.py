"""Selects the packets of a capture that the user wants to see."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.wireview.packet import Packet

PSN_DIGITS = 10
"""What a number of 32 bits may have."""
_NUMBER = rf"\d{{1,{PSN_DIGITS}}}"


@dataclass(frozen=True)
class PacketFilter:
    """Packets about one of these PSNs, and on or about this EV; None: all."""

    psns: tuple[int, int] | None = None
    ev: str | None = None

    def __contains__(self, packet: Packet) -> bool:
        if self.ev is not None and self.ev not in (packet.ev, packet.values.get("of_ev")):
            return False
        return self.psns is None or any(self.psns[0] <= psn <= self.psns[1] for psn in _psns(packet))

    @property
    def everything(self) -> bool:
        """True if no packet is excluded."""
        return self.psns is None and self.ev is None


def selection(psn: str | None, ev: str | None) -> PacketFilter:
    """From `--psn 41` or `--psn 41-60`, and `--ev 1/0`. Raises UsageError."""
    return PacketFilter(_psn_range(psn) if psn is not None else None, _ev(ev) if ev is not None else None)


def _psns(packet: Packet) -> list[int]:
    """PSNs that a packet concerns: its own, the refused one, the one a SACK answers."""
    return [packet.values[key] for key in ("psn", "trigger") if key in packet.values]


def _psn_range(text: str) -> tuple[int, int]:
    match = re.fullmatch(rf"({_NUMBER})(?:-({_NUMBER}))?", text, re.ASCII)
    if match is None:
        raise UsageError(f"--psn {text}: must be a number or a range, such as 41 or 41-60")
    first, last = int(match[1]), int(match[2] or match[1])
    if first > last:
        raise UsageError(f"--psn {text}: no PSN is in it; write the smaller one first, {last}-{first}")
    return first, last


def _ev(text: str) -> str:
    match = re.fullmatch(rf"({_NUMBER})/({_NUMBER})", text, re.ASCII)
    if match is None:
        raise UsageError(f"--ev {text}: must be plane/uplink, such as 1/0")
    return f"{int(match[1])}/{int(match[2])}"
