"""The packets of a pcap file. Source: draft-ietf-opsawg-pcap."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mrc_testbed.testbed.wireview.record import MOST_PACKET_BYTES, Record
from mrc_testbed.testbed.wireview.stream import ByteStream, Damage

_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""Byte order, and ns in the unit of the second part of a time."""
_HEADER_BYTES = 20
"""Behind the magic number."""
_RECORD_BYTES = 16
_LINK_TYPE = 0xFFFF
"""The bits above say something else."""


class PcapReader:
    """A file whose first four bytes have been read. It has no comments."""

    comment = ""

    def __init__(self, stream: ByteStream, magic: bytes) -> None:
        """Raises ValueError for another format."""
        if magic not in _MAGICS:
            raise ValueError("not pcap")
        self._order, self._unit_ns = _MAGICS[magic]
        header = stream.take(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            raise ValueError("no header")
        self._stream = stream
        self._link_type = struct.unpack(f"{self._order}HHiIII", header)[-1] & _LINK_TYPE

    def __iter__(self) -> Iterator[Record]:
        """Raises Damage."""
        number = 0
        while True:
            number += 1
            place = f"byte {self._stream.at}, packet {number}"
            head = self._stream.take(_RECORD_BYTES)
            if not head:
                return
            if len(head) < _RECORD_BYTES:
                raise Damage(f"{place}: the file ends within the packet's header")
            seconds, parts, kept, wire = struct.unpack(f"{self._order}IIII", head)
            if kept > MOST_PACKET_BYTES:
                raise Damage(f"{place}: it says that it is {kept} bytes long, and {MOST_PACKET_BYTES} are the most")
            frame = self._stream.take(kept)
            if len(frame) < kept:
                raise Damage(f"{place}: the file ends after {len(frame)} of the packet's {kept} bytes")
            yield Record(seconds * 1_000_000_000 + parts * self._unit_ns, self._link_type, frame, wire)
