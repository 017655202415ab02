"""Duration of a clean transfer, from the shape alone. Pure; for time limits, and to refuse late faults."""

from __future__ import annotations

from math import ceil

from topos.shape import HEADER_BYTES, Shape

HOPS_AFTER_FIRST = 3
"""Host -> T0 -> T1 -> T0 -> host: three store-and-forward links."""


def wire_ns(shape: Shape, size_bytes: int) -> float:
    """How long all ports of a host together are busy with so many bytes of payload."""
    return _wire_bytes(shape, size_bytes) * 8e9 / (shape.planes * shape.port_rate_bps)


def delay_ns(shape: Shape, size_bytes: int) -> float:
    """One-way delay of a packet with so many bytes of payload, at most a full one."""
    forward = HOPS_AFTER_FIRST * min(_wire_bytes(shape, size_bytes), shape.wire_bytes) * 8e9 / shape.port_rate_bps
    return shape.rtt_ns / 2 + forward


def transfer_ns(shape: Shape, size_bytes: int) -> int:
    """From posting so many bytes to their arrival: serialisation on all planes, half a T, store-and-forward."""
    return round(wire_ns(shape, size_bytes) + delay_ns(shape, size_bytes))


def answer_ns(shape: Shape) -> int:
    """From the arrival of data to the arrival of an empty message in return."""
    return transfer_ns(shape, 1)


def _wire_bytes(shape: Shape, size_bytes: int) -> int:
    return size_bytes + ceil(size_bytes / shape.payload_bytes) * HEADER_BYTES
