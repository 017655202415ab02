"""The comments of a pcapng file's first section, which scapy's reader drops."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path

_SECTION = b"\x0a\x0d\x0d\x0a"
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_FIXED_BYTES = 24
"""Type, length, magic, version and section length, which come before the options."""
_LARGEST_BYTES = 1 << 20
_END, _COMMENT = 0, 1


def section_comment(path: Path) -> str:
    """The section comment; empty if there is none, the file is not pcapng, or it cannot be read twice (a pipe)."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            return "\n".join(_comments(file.read(_LARGEST_BYTES)))
    except (OSError, EOFError, struct.error):  # the reader of the packets reports the damage
        return ""


def _comments(content: bytes) -> Iterator[str]:
    order = _ORDERS.get(content[8:12])
    if content[:4] != _SECTION or order is None:
        return
    end = struct.unpack_from(f"{order}I", content, 4)[0] - 4
    at = _FIXED_BYTES
    while at + 4 <= min(end, len(content)):
        code, size = struct.unpack_from(f"{order}HH", content, at)
        if code == _END:
            return
        if code == _COMMENT:
            yield content[at + 4 : at + 4 + size].decode(errors="replace")
        at += 4 + size + -size % 4
