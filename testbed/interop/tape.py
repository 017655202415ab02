"""What crossed the line between a program and its host: every packet both ways, and what each told the other.

The testbed writes it down itself, so it is no word of the program's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mrc_testbed.hosts.common.bth import ECN_CE, ECN_MASK, PSN_MASK, WRITE_FIRST
from mrc_testbed.hosts.mrc import wire


@dataclass(frozen=True, slots=True)
class Crossing:
    """One packet. `out`: from the program, at `t_ns`; else it was given to it then. `size`: of the UDP payload."""

    t_ns: int
    out: bool
    peer: int
    plane: int
    uplink: int
    traffic_class: int
    packet: bytes

    @property
    def path(self) -> tuple[int, int]:
        """(plane, uplink)."""
        return self.plane, self.uplink

    @property
    def opcode(self) -> int:
        """First byte of the BTH."""
        return self.packet[0] if self.packet else 0

    @property
    def is_data(self) -> bool:
        """A WRITE, whole or trimmed."""
        return WRITE_FIRST <= self.opcode <= wire.LAST_DATA_OPCODE

    @property
    def qpn(self) -> int:
        """The QP that it is for."""
        return int.from_bytes(self.packet[5:8], "big")

    @property
    def bits_psn(self) -> int:
        """The word of the BTH that the PSN sits in."""
        return int.from_bytes(self.packet[8:12], "big")

    @property
    def psn(self) -> int:
        """Of data; what the others have there is their own."""
        return self.bits_psn & PSN_MASK

    @property
    def again(self) -> bool:
        """Does the bit RTX say that it is sent again?"""
        return bool(self.bits_psn & wire.RETRANSMISSION)

    @property
    def marked(self) -> bool:
        """Congestion was met on its way."""
        return self.traffic_class & ECN_MASK == ECN_CE


@dataclass(slots=True)
class Tape:
    """In the order of time. `told`: (when, what, fields) of requests that change something, and of events."""

    packets: list[Crossing] = field(default_factory=list)
    told: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)

    def sent(self, which: Callable[[Crossing], bool] = lambda _: True) -> Iterator[Crossing]:
        """What the program sent."""
        return (each for each in self.packets if each.out and which(each))

    def came(self, which: Callable[[Crossing], bool] = lambda _: True) -> Iterator[Crossing]:
        """What it was given."""
        return (each for each in self.packets if not each.out and which(each))

    def data_sent(self) -> list[Crossing]:
        """Its data, sent for the first time or again."""
        return list(self.sent(lambda each: each.is_data))

    def of(self, what: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """When something was told, and its fields."""
        return ((t_ns, fields) for t_ns, name, fields in self.told if name == what)
