"""Writes pcapng: section and interfaces with names and comments, packets with direction, comments and losses. Pure.

Source: draft-ietf-opsawg-pcapng. scapy's writer (2.8) has no section comment, no name of the first interface, no
nanoseconds and no losses; our `decode`, scapy and Wireshark read this output.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Literal

_SECTION, _INTERFACE, _STATISTICS, _PACKET = 0x0A0D0D0A, 1, 5, 6
_MAGIC = 0x1A2B3C4D
_END, _COMMENT = 0, 1
_APPLICATION = 4
_NAME, _DESCRIPTION, _RESOLUTION = 2, 3, 9
_FLAGS, _DROPPED = 2, 4
_RECEIVED, _INTERFACE_DROPPED = 4, 5
_NANOSECONDS = 9
_ETHERNET = 1
PacketDirection = Literal[1, 2]
INBOUND: PacketDirection = 1
OUTBOUND: PacketDirection = 2
_MAX_OPTION_BYTES = 0xFFFF

_HEAD = struct.Struct("<II")
_EPB = struct.Struct("<IIIII")


def section(comment: str) -> bytes:
    """The first block; capinfos and Wireshark's file properties show `comment`."""
    options = [(_COMMENT, _text(comment)), (_APPLICATION, b"mrc-testbed")]
    return _block(_SECTION, struct.pack("<IHHq", _MAGIC, 1, 0, -1), options)


def interface(name: str, description: str, snap_bytes: int) -> bytes:
    """An interface; packets refer to it by its number, counted from 0 in order of writing. Times are nanoseconds."""
    options = [(_NAME, _text(name)), (_DESCRIPTION, _text(description)), (_RESOLUTION, bytes([_NANOSECONDS]))]
    return _block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, snap_bytes), options)


def packet(
    number: int,
    time_ns: int,
    frame: bytes | memoryview,
    wire_bytes: int,
    direction: PacketDirection,
    comments: Sequence[str] = (),
    lost: int = 0,
) -> bytes:
    """A packet of interface `number`. `lost`: packets that were lost before it."""
    options = [(_COMMENT, _text(comment)) for comment in comments]
    options.append((_FLAGS, struct.pack("<I", direction)))
    if lost:
        options.append((_DROPPED, struct.pack("<Q", lost)))
    body = _EPB.pack(number, time_ns >> 32, time_ns & 0xFFFFFFFF, len(frame), wire_bytes) + frame
    return _block(_PACKET, body, options)


def statistics(number: int, time_ns: int, received: int, lost: int) -> bytes:
    """Totals of interface `number`: packets received and lost."""
    options = [(_RECEIVED, struct.pack("<Q", received)), (_INTERFACE_DROPPED, struct.pack("<Q", lost))]
    return _block(_STATISTICS, struct.pack("<III", number, time_ns >> 32, time_ns & 0xFFFFFFFF), options)


def _text(text: str) -> bytes:
    return text.encode()[:_MAX_OPTION_BYTES].decode(errors="ignore").encode()


def _block(kind: int, body: bytes, options: Iterable[tuple[int, bytes]]) -> bytes:
    parts = [body + bytes(-len(body) % 4)]
    parts += [struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4) for code, value in options]
    parts.append(struct.pack("<HH", _END, 0))
    content = b"".join(parts)
    size = _HEAD.size + len(content) + 4
    return _HEAD.pack(kind, size) + content + struct.pack("<I", size)
