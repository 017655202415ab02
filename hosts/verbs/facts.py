"""What a host tells its programs of itself, and the limits that hold for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MOST_PROGRAMS: Final = 64
"""Connections of a host."""
MOST_QPS: Final = 1024
"""Of a host: an end of a QP takes 136 kB (docs/protocol.md)."""
MOST_WORK: Final = 1024
"""Writes, or receives, outstanding on a QP."""
MOST_COMPLETIONS: Final = 65536
MOST_REGIONS: Final = 65536
"""Of a program."""
LONGEST_WRITE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class HostFacts:
    """`gids`: host number by GID (16 bytes), this host's own among them. Times in ns."""

    number: int
    name: str
    gid: bytes
    gids: Mapping[bytes, int]
    planes: int
    payload_bytes: int
    mpr: int
    max_wimm: int
    rtt_ns: int
