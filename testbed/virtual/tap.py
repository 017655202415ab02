"""A tap on a virtual port: what testbed.fabric.tap.Tap hears on the kernel, in blocks of the same format."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from testbed.fabric.ring import BLOCK_BYTES, RingPacket, block_of, stored
from testbed.virtual.frames import LinkFrames
from testbed.virtual.packet import VirtualPacket
from testbed.virtual.port import Hear, Port

_RETIRE_NS = 100_000_000
"""A block that is older is released with the next packet, as the kernel does: the most that a kill can lose."""
_BLOCK_ROOM_BYTES = BLOCK_BYTES - 64


class VirtualTap:
    """Muted at first. A packet passes when its last bit does.

    `leaving`, `coming`: frames of what leaves by the port, and of what comes over its link. `ahead_ns`: of wall time.
    `ready` is called when `blocks` has data.
    """

    def __init__(
        self,
        port: Port,
        leaving: LinkFrames,
        coming: LinkFrames,
        snap_bytes: int,
        ahead_ns: int,
        ready: Callable[[], None],
    ) -> None:
        self.port = port.interface
        self._snap_bytes = snap_bytes
        self._ahead_ns = ahead_ns
        self._ready = ready
        self._sides = ((port, self._hear(leaving, True)), (port.peer, self._hear(coming, False)))
        self._packets: list[bytes] = []
        self._used_bytes = self._since_ns = 0
        self._released: list[memoryview] = []

    def listen(self) -> None:
        """Hear from now on."""
        for port, hear in self._sides:
            port.listen(hear)

    def mute(self) -> None:
        """Hear nothing more, and release what was heard."""
        for port, _ in self._sides:
            port.listen(None)
        self._release()

    def blocks(self) -> Iterator[memoryview]:
        """Each block that was released since the last call."""
        while self._released:
            yield self._released.pop(0)

    def lost(self) -> int:
        """None: there is always room."""
        return 0

    def close(self) -> None:
        """Nothing is open."""

    def _hear(self, frames: LinkFrames, outgoing: bool) -> Hear:
        def hear(packet: VirtualPacket, now_ns: int) -> None:
            frame = frames.of(packet, self._snap_bytes)
            self._keep(stored(RingPacket(now_ns + self._ahead_ns, outgoing, packet.size_bytes, frame)), now_ns)

        return hear

    def _keep(self, packet: bytes, now_ns: int) -> None:
        full = self._used_bytes + len(packet) > _BLOCK_ROOM_BYTES
        if full or now_ns - self._since_ns >= _RETIRE_NS:
            self._release()
            self._since_ns = now_ns
        self._packets.append(packet)
        self._used_bytes += len(packet)

    def _release(self) -> None:
        if self._packets:
            self._released.append(block_of(self._packets))
            self._packets, self._used_bytes = [], 0
            self._ready()
