"""A tap on one port: the kernel writes each packet, cut to a length, into a ring shared with this process.

There is no work per packet outside the kernel and no extra process (docs/decisions/0042-captures-by-a-ring.md). The
socket outlives its port: it captures nothing while the port is down and resumes when it is up.
"""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
from collections.abc import Iterator
from math import ceil

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.sandbox import network_of
from mrc_testbed.testbed.switching.ring import CAPTURED_PER_DATA, KERNEL, STATUS_OFFSET, USER, stored_bytes, used_bytes
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.shape import WIRE_BYTES

_SOL_PACKET = 263
_PACKET_RX_RING = 5
_PACKET_STATISTICS = 6
_PACKET_VERSION = 10
_TPACKET_V3 = 2
_SO_ATTACH_FILTER = 26
_ETH_P_ALL = 0x0003
_BLOCK_BYTES = 1 << 16
_FRAME_BYTES = 1 << 11
"""Unused in a ring of this version, but the numbers must be consistent."""
_RETIRE_MS = 100
"""A partly filled block is released after this time: the most that a kill can lose."""
_HELD_S = 2
"""How long a full port, both ways, may go unread: reading the fabric back takes a quarter of a second."""
_MAX_BLOCKS = 512
FLUSH_S = 2.5 * _RETIRE_MS / 1000
"""After this the last packets have been released."""

_STATUS = struct.Struct("=I")


def ring_blocks(rate_bps: int, snap_bytes: int) -> int:
    """Number of blocks that hold _HELD_S of a full port, with the last of each _RETIRE_MS half empty."""
    packets = CAPTURED_PER_DATA * 2 * _HELD_S * rate_bps / 8 / WIRE_BYTES
    needed = ceil(packets * stored_bytes(min(snap_bytes, WIRE_BYTES)) / _BLOCK_BYTES)
    return min(needed + _HELD_S * 1000 // _RETIRE_MS, _MAX_BLOCKS)


class Tap:
    """Muted at first. `socket` is readable when `blocks` has data. Multicast, which comes from the kernel only, is
    excluded."""

    def __init__(self, pid: int, port: Interface, snap_bytes: int, blocks: int) -> None:
        """Raises FabricError when the kernel refuses."""
        self.port = port
        self._snap_bytes = snap_bytes
        self._bound = False
        try:
            with network_of(pid, port.node):
                self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V3)
            frames = blocks * _BLOCK_BYTES // _FRAME_BYTES
            ring = struct.pack("=7I", _BLOCK_BYTES, blocks, _FRAME_BYTES, frames, _RETIRE_MS, 0, 0)
            self.socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
            self._ring = memoryview(mmap.mmap(self.socket.fileno(), blocks * _BLOCK_BYTES))
        except OSError as error:
            raise FabricError(port.node, f"capture at {port.name}", str(error.strerror or error)) from error
        self._blocks = blocks
        self._next = 0

    def listen(self) -> None:
        """Start capturing. Raises FabricError."""
        self._filter(self._snap_bytes)
        if not self._bound:
            try:
                self.socket.bind((self.port.name, _ETH_P_ALL))
            except OSError as error:
                raise FabricError(self.port.node, f"capture at {self.port.name}", str(error.strerror)) from error
            self._bound = True

    def mute(self) -> None:
        """Stop capturing. The socket stays bound: unbinding would block this process for milliseconds."""
        self._filter(0)

    def blocks(self) -> Iterator[memoryview]:
        """Yields the used part of each block that the kernel has released; a block is returned when the next is
        requested."""
        # A port that went down leaves an error on its socket, which would be readable for ever.
        self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        while True:
            begin = self._next * _BLOCK_BYTES
            if not _STATUS.unpack_from(self._ring, begin + STATUS_OFFSET)[0] & USER:
                return
            block = self._ring[begin : begin + _BLOCK_BYTES]
            if used := used_bytes(block):
                yield block[:used]
            _STATUS.pack_into(self._ring, begin + STATUS_OFFSET, KERNEL)
            self._next = (self._next + 1) % self._blocks

    def lost(self) -> int:
        """Packets that found no room in the ring since the last call."""
        counts = self.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 12)
        return int(struct.unpack("=III", counts)[1])

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def _filter(self, snap_bytes: int) -> None:
        attach_filter(self.socket, snap_bytes)


def attach_filter(tap: socket.socket, snap_bytes: int) -> None:
    """Keep the first `snap_bytes` bytes of each unicast frame; 0 drops all frames."""
    program = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (0x30, 0, 0, 0),  # the first byte of the frame
            (0x45, 1, 0, 1),  # its group bit: on to the last line
            (0x06, 0, 0, snap_bytes),
            (0x06, 0, 0, 0),
        )
    )
    held = ctypes.create_string_buffer(program)
    tap.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", 4, ctypes.addressof(held)))
