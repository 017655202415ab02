"""A packet ring as the kernel fills it: blocks of captured packets, how to read and how to make them. Pure.

Source: packet_mmap (Documentation/networking/packet_mmap.rst), TPACKET_V3; linux/if_packet.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

STATUS_OFFSET = 8
"""Bit of a block's status word: owned by user space."""
KERNEL, USER = 0, 1
_BLOCK = struct.Struct("=IIIIII")
"""version, offset of private data, status, packets, offset of the first packet, bytes used."""
_BLOCK_BYTES = 48
_PACKET = struct.Struct("=IIIIIIHH")
"""next packet (offset), seconds, nanoseconds, bytes kept, bytes on the wire, status, offsets of MAC and network."""
_PACKET_TYPE_OFFSET = 48 + 10
"""Of the packet type in the link-layer address, which follows the header of 48 bytes."""
_OUTGOING = 4
_ALIGNMENT = 8
_VERSION = 3
PACKET_OVERHEAD_BYTES = 82
"""From a packet's header to its Ethernet frame."""
CAPTURED_PER_DATA = 1.5
"""Packets that are captured for each of data: SACKs and probes are beside them."""
_NETWORK_OFFSET = PACKET_OVERHEAD_BYTES + 14


class RingDamage(ValueError):
    """A damaged block; earlier blocks are good."""


class RingPacket(NamedTuple):
    """`wall_ns`: wall time at which the kernel saw it. `outgoing`: it left by the port, else it arrived."""

    wall_ns: int
    outgoing: bool
    wire_bytes: int
    frame: memoryview | bytes


def used_bytes(block: memoryview) -> int:
    """Bytes of a block that the kernel has filled; 0 without packets."""
    _, _, _, packets, _, used = _BLOCK.unpack_from(block)
    return used if packets else 0


def stored_bytes(frame_bytes: int) -> int:
    """Bytes that a packet takes in a block, given how many of it are kept."""
    return -(-(PACKET_OVERHEAD_BYTES + frame_bytes) // _ALIGNMENT) * _ALIGNMENT


def packets_of(block: memoryview) -> Iterator[RingPacket]:
    """The packets of a block in capture order. Raises RingDamage where it is cut or corrupt."""
    if len(block) < _BLOCK_BYTES:
        raise RingDamage("a block ends within its header")
    _, _, _, packets, at, _ = _BLOCK.unpack_from(block)
    for left in range(packets, 0, -1):
        if at + _PACKET_TYPE_OFFSET >= len(block):
            raise RingDamage("a block ends within a packet")
        following, seconds, nanoseconds, kept, wire, _, mac, _ = _PACKET.unpack_from(block, at)
        frame = block[at + mac : at + mac + kept]
        if len(frame) < kept:
            raise RingDamage("a block ends within a packet")
        outgoing = block[at + _PACKET_TYPE_OFFSET] == _OUTGOING
        yield RingPacket(seconds * 1_000_000_000 + nanoseconds, outgoing, wire, frame)
        if left > 1 and following == 0:  # it is 0 in the last one
            raise RingDamage("a block holds fewer packets than it says")
        at += following


def block_of(packets: Sequence[RingPacket]) -> bytes:
    """A block that holds these packets, at least one."""
    body = b"".join([*(_stored(packet, last=False) for packet in packets[:-1]), _stored(packets[-1], last=True)])
    used = _BLOCK_BYTES + len(body)
    return _BLOCK.pack(_VERSION, _BLOCK_BYTES, USER, len(packets), _BLOCK_BYTES, used).ljust(_BLOCK_BYTES, b"\0") + body


def _stored(packet: RingPacket, last: bool) -> bytes:
    kept = len(packet.frame)
    size = stored_bytes(kept)
    clock = divmod(packet.wall_ns, 1_000_000_000)
    found = bytearray(size)
    offsets = (PACKET_OVERHEAD_BYTES, _NETWORK_OFFSET)
    _PACKET.pack_into(found, 0, 0 if last else size, *clock, kept, packet.wire_bytes, USER, *offsets)
    found[_PACKET_TYPE_OFFSET] = _OUTGOING if packet.outgoing else 0
    found[PACKET_OVERHEAD_BYTES : PACKET_OVERHEAD_BYTES + kept] = packet.frame
    return bytes(found)
