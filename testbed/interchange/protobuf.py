"""Messages of Protocol Buffers, decoded by hand: fields as numbers and bytes, and streams of messages behind their
lengths. Source: protobuf.dev, "Encoding"."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from mrc_testbed.testbed.interchange.bounds import Bounds

MOST_MESSAGE_BYTES = 16 << 20
_MOST_VARINT_BYTES = 10
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no message. `at`: where, counted from the begin of the message or stream."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at


class Meter:
    """How much of a stream, or of several, is still read."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds, self._fields, self._bytes = bounds, bounds.fields, bounds.unpacked

    def fields(self, count: int) -> None:
        """These are read, too. Raises WireError."""
        self._fields -= count
        if self._fields < 0:
            raise WireError(0, f"more than {self._bounds.fields} fields, too many for a file of its size")

    def bytes(self, count: int) -> None:
        """These are read, too. Raises WireError."""
        self._bytes -= count
        if self._bytes < 0:
            raise WireError(0, f"more than {self._bounds.unpacked >> 20} MiB behind its gzip")


class WireField(NamedTuple):
    """A field: a varint as `number`, all else as `content`."""

    key: int
    number: int
    content: bytes | None

    @property
    def signed(self) -> int:
        """A number of two's complement."""
        return self.number - (1 << 64) if self.number >> 63 else self.number

    @property
    def zigzag(self) -> int:
        """A number of the types sint32 and sint64."""
        return (self.number >> 1) ^ -(self.number & 1)

    def fixed(self, form: str) -> float:
        """A number of fixed size, in a form of the module struct. Raises WireError."""
        if self.content is None or len(self.content) != struct.calcsize(form):
            raise WireError(0, "a number of another size than its type has")
        return float(struct.unpack(form, self.content)[0])

    def numbers(self) -> list[int]:
        """Of a repeated number: packed, or one alone. Raises WireError."""
        if self.content is None:
            return [self.number]
        found, place = [], 0
        while place < len(self.content):
            number, place = varint(self.content, place)
            found.append(number)
        return found


def varint(content: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place behind it. Raises WireError."""
    value = 0
    for place in range(_MOST_VARINT_BYTES):
        if at + place >= len(content):
            raise WireError(at, "the end comes in the middle of a number")
        byte = content[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & ((1 << 64) - 1), at + place + 1
    raise WireError(at, f"a number of more than {_MOST_VARINT_BYTES} bytes")


def fields(content: bytes) -> Iterator[WireField]:
    """The fields of a message in their order. Raises WireError."""
    at = 0
    while at < len(content):
        tag, behind = varint(content, at)
        key, kind = tag >> 3, tag & 7
        if not key:
            raise WireError(at, "a field with the number 0")
        if kind == _VARINT:
            number, at = varint(content, behind)
            yield WireField(key, number, None)
            continue
        if kind not in (_FIXED64, _BYTES, _FIXED32):
            raise WireError(at, f"a field of the unknown wire type {kind}")
        size, behind = varint(content, behind) if kind == _BYTES else (8 if kind == _FIXED64 else 4, behind)
        if behind + size > len(content):
            raise WireError(at, f"a field of {size} bytes, and only {len(content) - behind} are left")
        at = behind + size
        yield WireField(key, 0, content[behind:at])


def messages(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The messages of a stream, each behind its length as a varint, and where each begins. Raises WireError, and what
    the stream raises."""
    at = 0
    while head := stream.read(1):
        begin, size_bytes = at, head
        while size_bytes[-1] >= 0x80 and len(size_bytes) < _MOST_VARINT_BYTES and (more := stream.read(1)):
            size_bytes += more
        try:
            size, _ = varint(size_bytes, 0)
        except WireError as error:
            raise WireError(begin, str(error)) from None
        if size > MOST_MESSAGE_BYTES:
            raise WireError(begin, f"a message of {size} bytes; at most {MOST_MESSAGE_BYTES} are read")
        content = stream.read(size)
        if len(content) < size:
            raise WireError(begin, f"a message of {size} bytes, and only {len(content)} are left")
        at += len(size_bytes) + size
        yield begin, content
