"""How long a clean workload takes, from the shape alone. Pure; used to refuse faults that would come too late."""

from __future__ import annotations

from math import ceil

from topos.shape import HEADER_BYTES, PAYLOAD_BYTES, WIRE_BYTES, Shape

HOPS_AFTER_FIRST = 3
"""Host -> T0 -> T1 -> T0 -> host: three links on which a packet is stored and forwarded again."""


def train_step_ns(shape: Shape, ranks: int, compute_ns: int, allreduce_bytes: int) -> int:
    """Clean duration of one training step: compute, then a ring allreduce of 2(N-1) phases over all planes."""
    phases = 2 * (ranks - 1)
    return compute_ns + phases * _phase_ns(shape, ceil(allreduce_bytes / ranks))


def train_ns(shape: Shape, ranks: int, steps: int, compute_ns: int, allreduce_bytes: int) -> int:
    """Clean duration of a whole training run."""
    return steps * train_step_ns(shape, ranks, compute_ns, allreduce_bytes)


def _phase_ns(shape: Shape, chunk_bytes: int) -> int:
    """Every rank sends one chunk to its neighbour: serialisation on all planes, half a T, and store-and-forward."""
    wire_bytes = chunk_bytes + ceil(chunk_bytes / PAYLOAD_BYTES) * HEADER_BYTES
    serialise = wire_bytes * 8e9 / (shape.planes * shape.port_rate_bps)
    forward = HOPS_AFTER_FIRST * min(wire_bytes, WIRE_BYTES) * 8e9 / shape.port_rate_bps
    return round(serialise + shape.rtt_ns / 2 + forward)
