"""A tap on one link of the virtual network: what testbed.fabric.tap.Tap is on the kernel, without a socket."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.fabric.ring import RingPacket, block_of
from testbed.virtual.frames import Frames
from testbed.virtual.packet import VirtualPacket
from testbed.virtual.port import Port
from topos.plan import Interface

_BLOCK_PACKETS = 64


class VirtualTap:
    """Both ways of a link, seen at its end nearer to the hosts; muted at first.

    A packet is seen when its last bit passes, before rules take or change it; it is kept until `blocks` is asked for.
    `wall_ahead_ns`: wall time less that of the scheduler.
    """

    def __init__(self, near: Port, frames: Frames, snap_bytes: int, wall_ahead_ns: int) -> None:
        self.port: Interface = near.interface
        self._near = near
        self._frames = frames
        self._snap_bytes = snap_bytes
        self._wall_ahead_ns = wall_ahead_ns
        self._seen: list[RingPacket] = []

    def listen(self) -> None:
        """Start capturing."""
        self._near.watch(self._see)
        self._near.peer.watch(self._see)

    def mute(self) -> None:
        """Stop capturing."""
        self._near.watch(None)
        self._near.peer.watch(None)

    def _see(self, port: Port, packet: VirtualPacket, now_ns: int) -> None:
        frame = memoryview(self._frames.leaving(port, packet))[: self._snap_bytes]
        self._seen.append(RingPacket(now_ns + self._wall_ahead_ns, port is self._near, packet.size_bytes, frame))

    def blocks(self) -> Iterator[memoryview]:
        """What was captured since the last call, in the layout of a ring."""
        seen, self._seen = self._seen, []
        for first in range(0, len(seen), _BLOCK_PACKETS):
            yield memoryview(block_of(seen[first : first + _BLOCK_PACKETS]))

    def lost(self) -> int:
        """Nothing: there is always room."""
        return 0

    def close(self) -> None:
        """As `mute`."""
        self.mute()
