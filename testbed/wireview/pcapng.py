"""The packets of a pcapng file, and its comments. Source: draft-ietf-opsawg-pcapng."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mrc_testbed.testbed.wireview.record import MOST_PACKET_BYTES, Record
from mrc_testbed.testbed.wireview.stream import ByteStream, Damage

SECTION = b"\x0a\x0d\x0d\x0a"
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_END, _COMMENT, _RESOLUTION, _OFFSET = 0, 1, 9, 14
_FRAME_BYTES = 12
"""Type, length, and the length once more behind the block."""
_SECTION_BYTES = 16
"""Magic number, version and length of a section, before its options."""
_MOST_BLOCK_BYTES = 16 << 20
"""Of a block, which is read at once; Wireshark has the same bound."""
_MOST_INTERFACES = 1 << 16


class CapturedOn(NamedTuple):
    """What its packets need. `ticks`: in a second. `snap_bytes` 0: all of a packet is kept."""

    link_type: int
    snap_bytes: int
    ticks: int = 1_000_000
    offset_s: int = 0


class PcapngReader:
    """A file whose first four bytes have been read. `comment`: of its first section."""

    def __init__(self, stream: ByteStream, magic: bytes) -> None:
        """Raises ValueError for another format, Damage."""
        if magic != SECTION:
            raise ValueError("not pcapng")
        self._stream, self._order, self._number = stream, "", 1
        self._interfaces: list[CapturedOn] = []
        self._begin = 0
        size, order = stream.take(4), stream.take(4)
        if order not in _ORDERS:
            raise ValueError("no byte order")
        self.comment = "\n".join(self._section(size, order))

    def __iter__(self) -> Iterator[Record]:
        """Raises Damage."""
        while True:
            self._begin, self._number = self._stream.at, self._number + 1
            kind = self._stream.take(4)
            if not kind:
                return
            size = self._exactly(4) if len(kind) == 4 else self._ended()
            if kind == SECTION:
                self._section(size, self._exactly(4))
                continue
            (number,) = struct.unpack(f"{self._order}I", kind)
            body = self._body(size, b"")
            try:
                if number == _INTERFACE:
                    self._add_interface(body)
                elif number in _PACKETS:
                    yield _PACKETS[number](self, body)
            except struct.error:
                raise self._damage(f"it is too short for its type, {number}") from None

    def _section(self, size: bytes, order: bytes) -> list[str]:
        """Begin a section. Returns its comments."""
        if order not in _ORDERS:
            raise self._damage("a section has no byte order")
        self._order = _ORDERS[order]
        self._interfaces.clear()
        body = self._body(size, order)
        if len(body) < _SECTION_BYTES:
            raise self._damage("a section is too short")
        return self._comments(body[_SECTION_BYTES:])

    def _body(self, size: bytes, begun: bytes) -> bytes:
        """What is between the two lengths of a block; `begun` was read already."""
        (length,) = struct.unpack(f"{self._order}I", size)
        if length % 4 or length < _FRAME_BYTES + len(begun):
            raise self._damage(f"it says that it is {length} bytes long, which no block is")
        if length > _MOST_BLOCK_BYTES:
            raise self._damage(f"it says that it is {length} bytes long, and {_MOST_BLOCK_BYTES} are the most")
        body = begun + self._exactly(length - _FRAME_BYTES - len(begun))
        if self._exactly(4) != size:
            raise self._damage(f"its {length} bytes do not end with its length")
        return body

    def _exactly(self, size: int) -> bytes:
        got = self._stream.take(size)
        return got if len(got) == size else self._ended()

    def _ended(self) -> bytes:
        raise self._damage(f"the file ends after {self._stream.at - self._begin} bytes of it")

    def _damage(self, what: str) -> Damage:
        return Damage(f"byte {self._begin}, block {self._number}: {what}")

    def _add_interface(self, body: bytes) -> None:
        if len(self._interfaces) == _MOST_INTERFACES:
            raise self._damage(f"a section has at most {_MOST_INTERFACES} interfaces")
        link_type, _, snap_bytes = struct.unpack_from(f"{self._order}HHI", body)
        found = CapturedOn(link_type, snap_bytes)
        for code, value in self._options(body[8:]):
            if code == _RESOLUTION and len(value) == 1:
                found = found._replace(ticks=(2 if value[0] & 0x80 else 10) ** (value[0] & 0x7F))
            elif code == _OFFSET and len(value) == 8:
                found = found._replace(offset_s=struct.unpack(f"{self._order}q", value)[0])
        self._interfaces.append(found)

    def _packet(self, body: bytes) -> Record:
        number, *about = struct.unpack_from(f"{self._order}5I", body)
        return self._made(number, about, body[20:])

    def _old_packet(self, body: bytes) -> Record:
        number, _, *about = struct.unpack_from(f"{self._order}HH4I", body)
        return self._made(number, about, body[20:])

    def _simple_packet(self, body: bytes) -> Record:
        """It has no time, and is of the first interface."""
        (wire,) = struct.unpack_from(f"{self._order}I", body)
        interface = self._interface(0)
        kept = min(wire, interface.snap_bytes or wire)
        return Record(0, interface.link_type, self._frame(body[4:], kept), wire)

    def _made(self, number: int, about: list[int], rest: bytes) -> Record:
        high, low, kept, wire = about
        interface = self._interface(number)
        frame = self._frame(rest, kept)
        time_ns = (high << 32 | low) * 1_000_000_000 // interface.ticks + interface.offset_s * 1_000_000_000
        return Record(time_ns, interface.link_type, frame, wire, tuple(self._comments(rest[kept + -kept % 4 :])))

    def _interface(self, number: int) -> CapturedOn:
        if number >= len(self._interfaces):
            raise self._damage(f"its packet is of interface {number}, and the section has {len(self._interfaces)}")
        return self._interfaces[number]

    def _frame(self, rest: bytes, kept: int) -> bytes:
        if kept > len(rest) or kept > MOST_PACKET_BYTES:
            most = min(len(rest), MOST_PACKET_BYTES)
            raise self._damage(f"its packet says that it is {kept} bytes long, and {most} are the most")
        return rest[:kept]

    def _comments(self, options: bytes) -> list[str]:
        return [value.decode(errors="replace") for code, value in self._options(options) if code == _COMMENT]

    def _options(self, content: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at < len(content):
            if at + 4 > len(content):
                raise self._damage("it ends within an option")
            code, size = struct.unpack_from(f"{self._order}HH", content, at)
            if code == _END:
                return
            value = content[at + 4 : at + 4 + size]
            if len(value) < size:
                raise self._damage("it ends within an option")
            yield code, value
            at += 4 + size + -size % 4


_PACKETS: dict[int, Callable[[PcapngReader, bytes], Record]] = {
    _PACKET: PcapngReader._packet,
    _OLD_PACKET: PcapngReader._old_packet,
    _SIMPLE_PACKET: PcapngReader._simple_packet,
}
