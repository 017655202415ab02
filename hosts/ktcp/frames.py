"""Frames of the transport over kernel TCP: a header of 20 bytes, and behind a WRITE its payload.

What they carry is a QP's work. A WRITE is placed at `address` of the receiver's region; for each that is whole
there the receiver owes a completion, and COMPLETED pays several at once. PROBE asks for PROBED (warm-up). HELLO is the
first frame of the end that dialled: it names the QP that the connection is for. All integers are big-endian.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

_HEADER = Struct(">QIIB3s")
HEADER_BYTES = _HEADER.size
_PAD = bytes(3)
LONGEST_WRITE = 1 << 30
"""Bytes. No program posts more at once, so a header that says more is none of ours."""


class TcpFrameKind(IntEnum):
    """What a frame is. Values are those on the wire."""

    HELLO = 1
    """`number`: the QP at the host that is dialled; `address`: its key."""
    WRITE = 2
    WRITE_IMMEDIATE = 3
    """As WRITE; `number` is the immediate."""
    COMPLETED = 4
    """`number` more writes are whole."""
    PROBE = 5
    PROBED = 6


_WRITES = frozenset({TcpFrameKind.WRITE, TcpFrameKind.WRITE_IMMEDIATE})


class FrameRefused(Exception):
    """Bytes that no endpoint of ours sends. The text says what is wrong with them."""


class FrameHeader(NamedTuple):
    """What a header says. `length`: bytes of payload that follow."""

    kind: TcpFrameKind
    address: int = 0
    length: int = 0
    number: int = 0


def emit_frame(header: FrameHeader) -> bytes:
    """The header's bytes. Raises struct.error for a number that does not fit its field."""
    return _HEADER.pack(header.address, header.length, header.number, header.kind, _PAD)


def parse_frame(data: bytes | bytearray | memoryview) -> FrameHeader:
    """Inverse of `emit_frame`, from HEADER_BYTES bytes. Raises FrameRefused."""
    address, length, number, code, pad = _HEADER.unpack(data)
    try:
        kind = TcpFrameKind(code)
    except ValueError:
        raise FrameRefused(f"frame of unknown kind {code}") from None
    if pad != _PAD:
        raise FrameRefused("frame header with bytes where none belong")
    if length and kind not in _WRITES:
        raise FrameRefused(f"{kind.name} with a payload of {length} bytes")
    if length > LONGEST_WRITE:
        raise FrameRefused(f"write of {length} bytes at once")
    return FrameHeader(kind, address, length, number)
