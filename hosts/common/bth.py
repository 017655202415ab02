"""What the packets of MRC and of RoCE share: the base transport header, the invariant CRC, classes.

InfiniBand Architecture Specification 1.4, chapter 9. Every UDP payload is `BTH 12 | extension headers | [payload,
padded to 4] | ICRC 4`, all fields big-endian. The ICRC here is CRC-32 over the UDP payload before it; off, it is sent
as 0.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct
from zlib import crc32

# --- opcodes of MRC, BTH byte 0. RoCE names the same operations by the lower five bits ---
WRITE_FIRST = 0xC6
WRITE_MIDDLE = 0xC7
WRITE_LAST = 0xC8
WRITE_LAST_IMM = 0xC9
WRITE_ONLY = 0xCA
WRITE_ONLY_IMM = 0xCB
HAS_IMMEDIATE = frozenset({WRITE_LAST_IMM, WRITE_ONLY_IMM})
ENDS_MESSAGE = frozenset({WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM})

# --- sizes, and bits of the BTH ---
BTH_BYTES = 12
IMMEDIATE_BYTES = 4
ICRC_BYTES = 4
PSN_MASK = 0xFFFFFF
QPN_MASK = 0xFFFFFF
ACK_REQUEST = 1 << 31
"""A bit of the word PSN sits in (BTH bytes 8-11)."""
PKEY = 0xFFFF

# --- syndromes, AETH byte 0 ---
AETH_ACK = 0x1F
"""Acknowledged; no credits are counted."""
AETH_NAK_INVALID_REQUEST = 0x61
AETH_NAK_REMOTE_ACCESS = 0x62
AETH_NAK_REMOTE_OPERATION = 0x63

# --- traffic classes: DSCP << 2 | ECN ---
ECN_MASK = 3
ECN_ECT0 = 2
ECN_CE = 3
CLASS_CONTROL = 46 << 2

_WORD = Struct(">I")
_pack_word, _unpack_word = _WORD.pack_into, _WORD.unpack_from


class Refusal(Enum):
    """Why a datagram is not a packet that we can read."""

    TOO_SHORT = "too_short"
    UNKNOWN_OPCODE = "unknown_opcode"
    BAD_VERSION = "bad_version"
    BAD_LENGTH = "bad_length"
    BAD_TIMESTAMP = "bad_timestamp"
    """TS = 1, and what follows is no TSETH."""
    BAD_ICRC = "bad_icrc"


def has_icrc(view: memoryview) -> bool:
    """Does the CRC of a whole packet fit it?"""
    end = len(view) - ICRC_BYTES
    return bool(crc32(view[:end]) == _unpack_word(view, end)[0])


def seal(buffer: memoryview, size: int) -> None:
    """Write the CRC over a packet of `size` bytes (trailer included) that was emitted with a zero trailer."""
    end = size - ICRC_BYTES
    _pack_word(buffer, end, crc32(buffer[:end]))


def close(buffer: memoryview, start: int, payload: memoryview) -> int:
    """Payload, padding and a zero trailer, from `start` on. Returns the size of the packet."""
    end = start + len(payload)
    buffer[start:end] = payload
    pad = -len(payload) & 3
    if pad:
        buffer[end : end + pad] = bytes(pad)
        end += pad
    _pack_word(buffer, end, 0)
    return end + ICRC_BYTES


def bytes_after_headers(payload: memoryview) -> int:
    """Size of a payload with its padding and its trailer."""
    return (len(payload) + 3 & ~3) + ICRC_BYTES


def whole(headers: bytes, payload: memoryview) -> bytes:
    """The packet that `close` makes of these headers."""
    return b"".join((headers, payload, bytes(bytes_after_headers(payload) - len(payload))))
