"""A tap on one link of the virtual network: what mrc_testbed.testbed.fabric.tap.Tap is on the kernel, without a
socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mrc_testbed.testbed.switching.ring import RingPacket, block_of
from mrc_testbed.testbed.virtual.frames import Frames
from mrc_testbed.testbed.virtual.packet import VirtualPacket
from mrc_testbed.testbed.virtual.port import Port
from mrc_testbed.topos.nodes import Interface

_BLOCK_PACKETS = 64
_RETIRE_NS = 100_000_000
"""An older block is released with the next packet, as on the kernel: the most that a kill can lose."""


class VirtualTap:
    """Both ways of a link, seen at its end nearer to the hosts; muted at first.

    A packet is seen when its last bit passes, before rules take or change it. `wall_ahead_ns`: wall time less that of
    the scheduler. `ready` is called when `blocks` has something.
    """

    def __init__(
        self, near: Port, frames: Frames, snap_bytes: int, wall_ahead_ns: int, ready: Callable[[], None]
    ) -> None:
        self.port: Interface = near.interface
        self._near = near
        self._frames = frames
        self._snap_bytes = snap_bytes
        self._wall_ahead_ns = wall_ahead_ns
        self._ready = ready
        self._seen: list[RingPacket] = []
        self._since_ns = 0
        self._released: list[memoryview] = []

    def listen(self) -> None:
        """Start capturing."""
        self._near.watch(self._see)
        self._near.peer.watch(self._see)

    def mute(self) -> None:
        """Stop capturing, and release what was captured."""
        self._near.watch(None)
        self._near.peer.watch(None)
        self._release()

    def _see(self, port: Port, packet: VirtualPacket, now_ns: int) -> None:
        if len(self._seen) == _BLOCK_PACKETS or now_ns - self._since_ns >= _RETIRE_NS:
            self._release()
            self._since_ns = now_ns
        frame = self._frames.leaving(port, packet, self._snap_bytes)
        self._seen.append(RingPacket(now_ns + self._wall_ahead_ns, port is self._near, packet.size_bytes, frame))

    def _release(self) -> None:
        if self._seen:
            self._released.append(memoryview(block_of(self._seen)))
            self._seen = []
            self._ready()

    def blocks(self) -> Iterator[memoryview]:
        """What was released since the last call, in the layout of a ring."""
        while self._released:
            yield self._released.pop(0)

    def lost(self) -> int:
        """Nothing: there is always room."""
        return 0

    def close(self) -> None:
        """Nothing is open."""
