"""The file written during a capture: ring blocks as the kernel filled them, and marks.

A line of JSON about the port, then frames: a header, followed by the bytes of a block if it is one. Each header holds
both clocks at the moment of writing, so that packets (wall time) and events (CLOCK_MONOTONIC) can be matched even if
the wall clock is changed meanwhile. A file may end anywhere: the run may be killed.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import IO, NamedTuple

from mrc_testbed.testbed.rundir.files import MOST_CAPTURE_BYTES, open_plain, parse_json
from mrc_testbed.testbed.switching.ring import RingDamage, RingPacket, packets_of

SUFFIX = ".ring"
_MOST_HEAD_BYTES = 4096
_MOST_BLOCK_BYTES = 64 << 20
"""Of a block, which is read at once."""
_FRAME = struct.Struct("<IIQqq")
"""kind, following bytes, packets lost since the previous frame, CLOCK_MONOTONIC and wall time in ns."""


class FrameKind(IntEnum):
    """The kind of a frame."""

    BLOCK = 1
    """A block of packets follows."""
    BEGIN = 2
    """Capturing starts."""
    END = 3
    """Capturing stops until the next BEGIN."""
    FULL = 4
    """Capturing ends: the file has its maximum size."""
    DUE = 5
    """When the window is to begin whose BEGIN follows: before that, or late."""


_KINDS = frozenset(map(int, FrameKind))


@dataclass(frozen=True, slots=True)
class About:
    """The first line: link, port, and limits per packet and file."""

    link: str
    node: str
    port: str
    snap_bytes: int
    most_bytes: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A frame without a block; its time is CLOCK_MONOTONIC."""

    kind: FrameKind
    t_ns: int


class Seen(NamedTuple):
    """A packet. `t_ns`: CLOCK_MONOTONIC; `lost`: packets that the kernel had no room for at about this time."""

    t_ns: int
    lost: int
    packet: RingPacket


def raw_name(link: str) -> str:
    """File name of a link: some systems refuse a colon, and some tools take it for a host."""
    return link.replace(":", "_") + SUFFIX


def head(about: About) -> bytes:
    """The start of a file."""
    return json.dumps(asdict(about)).encode() + b"\n"


def frame_header(kind: FrameKind, size: int, lost: int, clocks: tuple[int, int]) -> bytes:
    """The header before the `size` bytes of a block, or alone. `clocks`: CLOCK_MONOTONIC and wall time now, in ns."""
    return _FRAME.pack(kind, size, lost, *clocks)


@dataclass
class RawCapture:
    """An iterable file, any number of times.

    Afterwards `damage` says what was wrong with it, `marks` has the begins and ends of its windows, `lost` is how many
    packets the kernel lost, and `late_ns` how late the latest window began, 0 if none. Packets from before a window
    that listened early are left out. Raises ValueError without a first line; OSError.
    """

    path: Path
    about: About = field(init=False)
    damage: str = field(default="", init=False)
    marks: list[Mark] = field(default_factory=list, init=False)
    lost: int = field(default=0, init=False)
    late_ns: int = field(default=0, init=False)
    _due_ns: int | None = field(default=None, init=False)
    _since_ns: int | None = field(default=None, init=False)
    """Earlier packets are of no window; None: none is."""

    def __post_init__(self) -> None:
        with open_plain(self.path, MOST_CAPTURE_BYTES) as file:
            line = file.readline(_MOST_HEAD_BYTES)
        self._begin = len(line)
        try:
            self.about = About(**parse_json(line.decode(errors="replace")))
        except (ValueError, TypeError):
            raise ValueError(f"{self.path}: not a ring capture") from None

    def __iter__(self) -> Iterator[Seen]:
        self.damage, self.lost, self.late_ns = "", 0, 0
        self._due_ns = self._since_ns = None
        self.marks.clear()
        with open_plain(self.path, MOST_CAPTURE_BYTES) as file:
            file.seek(self._begin)
            yield from self._frames(file)

    def times_ns(self) -> array[int]:
        """CLOCK_MONOTONIC of every packet."""
        return array("q", (seen.t_ns for seen in self))

    def _frames(self, file: IO[bytes]) -> Iterator[Seen]:
        while header := file.read(_FRAME.size):
            if len(header) < _FRAME.size:
                self.damage = "it ends within the header of a frame"
                return
            kind, size, lost, monotonic_ns, wall_ns = _FRAME.unpack(header)
            if kind not in _KINDS:
                self.damage = "it holds a frame of no known kind"
                return
            self.lost += lost
            if kind != FrameKind.BLOCK:
                self._take(FrameKind(kind), monotonic_ns)
                continue
            if size > _MOST_BLOCK_BYTES:
                self.damage = f"it holds a block of {size} bytes"
                return
            block = memoryview(file.read(size))
            try:
                for packet in packets_of(block):
                    t_ns = packet.wall_ns - (wall_ns - monotonic_ns)
                    if self._since_ns is None or t_ns >= self._since_ns:
                        yield Seen(t_ns, lost, packet)
                        lost = 0
            except RingDamage as damage:
                self.damage = str(damage)
                return
            if len(block) < size:
                self.damage = "it ends within a block"

    def _take(self, kind: FrameKind, t_ns: int) -> None:
        """A mark: a window that listens early begins when it is to begin."""
        if kind is FrameKind.DUE:
            self._due_ns = t_ns
            return
        if kind is FrameKind.BEGIN and self._due_ns is not None:
            self.late_ns = max(self.late_ns, t_ns - self._due_ns)
            if t_ns < self._due_ns:
                self._since_ns = t_ns = self._due_ns
            self._due_ns = None
        self.marks.append(Mark(kind, t_ns))
