"""The packets of MRC in the captures of a row: read once, those that are judged kept as plain values."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrc_testbed.hosts.common import bth
from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.frame import Frame, unwrap
from mrc_testbed.testbed.wireview.names import OPCODES, address_name
from mrc_testbed.testbed.wireview.packet import Packet, parse
from mrc_testbed.testbed.wireview.record import OF_ANY_INTERFACE, Record

MOST_PACKETS = 200_000
"""Of a row: each is kept, and takes about 500 B."""
_BROKEN = {
    bth.Refusal.TOO_SHORT: "shorter than a BTH",
    bth.Refusal.BAD_VERSION: "transport version not 0",
    bth.Refusal.BAD_LENGTH: "not as long as its opcode says",
    bth.Refusal.BAD_TIMESTAMP: "no time stamp where TS says that there is one",
}
"""What is wrong with a packet to the port of MRC. Other opcodes there are other transports."""


@dataclass(frozen=True, slots=True)
class SeenPacket:
    """A packet of MRC, seen at `t_ns`. `source`, `destination`: names of hosts of ours, else addresses. `path`: what is
    the same for all packets that switches forward alike; `ev`: its EV; `values`: as `mrc-testbed decode` names them, of
    data only those below."""

    t_ns: int
    source: str
    destination: str
    path: tuple[bytes, int, int, int]
    ev: str
    kind: str
    is_data: bool
    values: dict[str, Any]

    @property
    def qp(self) -> int:
        """The QP that it is for."""
        return int(self.values["qp"])

    @property
    def psn(self) -> int:
        """Of data and NACKs."""
        return int(self.values["psn"])

    @property
    def again(self) -> bool:
        """Does it say that it is sent again?"""
        return bool(self.values["rtx"])

    @property
    def trimmed(self) -> bool:
        """Did a switch cut it?"""
        return bool(self.values.get("trimmed"))


@dataclass(slots=True)
class Captured:
    """All that the files of a row say. `host`: whose packets are judged, empty for those of both ends. `broken`:
    packets that are no MRC and should be, by what is wrong with them; `odd`: marks of those that can be read.
    `repeats`: a packet may be there twice; `incomplete`: why it may lack packets, or nothing."""

    host: str = ""
    packets: list[SeenPacket] = field(default_factory=list)
    broken: Counter[str] = field(default_factory=Counter)
    odd: Counter[str] = field(default_factory=Counter)
    repeats: bool = False
    incomplete: list[str] = field(default_factory=list)

    def sent(self, which: Callable[[SeenPacket], bool] = lambda _: True) -> Iterator[SeenPacket]:
        """By whom is judged."""
        return (each for each in self.packets if self._is_of(each.source) and which(each))

    def came(self, which: Callable[[SeenPacket], bool] = lambda _: True) -> Iterator[SeenPacket]:
        """To whom is judged."""
        return (each for each in self.packets if self._is_of(each.destination) and which(each))

    def _is_of(self, end: str) -> bool:
        return self.host in ("", end)

    def notes(self) -> tuple[str, ...]:
        """For people: how much there was, and what is odd about it."""
        found = (f"{count} of {len(self.packets)} packets: {mark}" for mark, count in self.odd.items())
        return (f"{len(self.packets)} packets of MRC in the capture", *found, *self.incomplete)


def read_captures(files: Iterable[Path], host: str = "") -> Captured:
    """Raises UsageError for a file that is no capture."""
    captured = Captured(host)
    readers = [(file, CaptureReader(file)) for file in files]
    for record in heapq.merge(*(reader for _, reader in readers), key=lambda record: record.time_ns):
        _take(captured, record)
        if len(captured.packets) == MOST_PACKETS:
            captured.incomplete.append(f"only the first {MOST_PACKETS} packets were judged")
            break
    captured.incomplete += [f"{file.name} is damaged: {reader.damage}" for file, reader in readers if reader.damage]
    return captured


def _take(captured: Captured, record: Record) -> None:
    captured.repeats |= record.link_type in OF_ANY_INTERFACE
    frame = unwrap(record)
    if not isinstance(frame, Frame):
        return
    packet = parse(frame)
    if isinstance(packet, Packet):
        if packet.opcode in OPCODES:
            captured.odd.update(packet.marks)
            captured.packets.append(_seen(frame, packet))
    elif packet in _BROKEN:
        captured.broken[_BROKEN[packet]] += 1


def _seen(frame: Frame, packet: Packet) -> SeenPacket:
    values = packet.values
    if packet.is_data:
        values = {key: values[key] for key in ("qp", "psn", "rtx", "trimmed")}
    path = bytes(frame.outer), frame.flow_label, frame.source_port, frame.traffic_class >> 2
    return SeenPacket(
        frame.time_ns,
        address_name(bytes(frame.source)),
        address_name(bytes(frame.destination)),
        path,
        packet.ev,
        packet.kind,
        packet.is_data,
        values,
    )
