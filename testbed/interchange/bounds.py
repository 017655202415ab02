"""How much a file of others may become: known by its size before anything is built, so that little input takes little
time and memory. Pure."""

from __future__ import annotations

from typing import NamedTuple

from mrc_testbed.testbed.workloads.graph import MAX_NODES

_FREE_OPERATIONS, _FREE_FIELDS, _FREE_UNPACKED = 150_000, 2_000_000, 256 << 20
"""Operations, fields and unpacked bytes that any file may have, however small it is."""
_BYTES_AN_OPERATION, _FIELDS_A_BYTE, _UNPACKED_A_BYTE = 7, 3, 64
_WAITS_AN_OPERATION = 2


class Bounds(NamedTuple):
    """The most of a file. `waits`: that operations have for others; `fields`: of the messages in a trace, and
    `unpacked`: its bytes behind gzip."""

    operations: int
    waits: int
    fields: int
    unpacked: int


def bounds_of(size: int) -> Bounds:
    """The bounds of files with `size` bytes in all."""
    operations = min(MAX_NODES, max(_FREE_OPERATIONS, size // _BYTES_AN_OPERATION))
    return Bounds(
        operations,
        _WAITS_AN_OPERATION * operations,
        max(_FREE_FIELDS, size * _FIELDS_A_BYTE),
        max(_FREE_UNPACKED, size * _UNPACKED_A_BYTE),
    )
