"""Ring files made by hand, laid out as the kernel's own headers say (linux/if_packet.h)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mrc_testbed.testbed.pcap.raw import About, FrameKind, frame_header, head

WALL_AHEAD_NS = 1_700_000_000_000_000_000
"""Wall time less CLOCK_MONOTONIC."""


class Passing(NamedTuple):
    """A packet that passes the port at `t_ns` of CLOCK_MONOTONIC."""

    t_ns: int
    frame: bytes
    outgoing: bool = True
    wire_bytes: int = 0


def block(packets: Sequence[Passing], ahead_ns: int = WALL_AHEAD_NS) -> bytes:
    """A block of TPACKET_V3."""
    body, first = b"", 48
    for packet in packets:
        seconds, nanoseconds = divmod(packet.t_ns + ahead_ns, 10**9)
        size = -(-(82 + len(packet.frame)) // 8) * 8
        wire = packet.wire_bytes or len(packet.frame)
        header = struct.pack("=IIIIIIHH", size, seconds, nanoseconds, len(packet.frame), wire, 1, 82, 96)
        address = struct.pack("=HHiHBB8s", 17, 0, 1000, 1, 4 if packet.outgoing else 0, 6, bytes(8))
        whole = header.ljust(48, b"\0") + address
        body += whole.ljust(82, b"\0") + packet.frame
        body += bytes(-len(body) % 8)
    used = first + len(body)
    return struct.pack("=IIIIIIQIIII", 3, 48, 1, len(packets), first, used, 1, 0, 0, 0, 0) + body


class RingFile:
    """What a capture writes, piece by piece."""

    def __init__(self, about: About) -> None:
        self.content = head(about)

    def mark(self, kind: FrameKind, t_ns: int, lost: int = 0) -> RingFile:
        self.content += frame_header(kind, 0, lost, (t_ns, t_ns + WALL_AHEAD_NS))
        return self

    def packets(self, packets: Sequence[Passing], lost: int = 0, ahead_ns: int = WALL_AHEAD_NS) -> RingFile:
        whole, t_ns = block(packets, ahead_ns), packets[-1].t_ns
        self.content += frame_header(FrameKind.BLOCK, len(whole), lost, (t_ns, t_ns + ahead_ns)) + whole
        return self

    def write(self, path: Path) -> Path:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self.content)
        return path
