"""Synchronous training: every rank computes, all ranks reduce their gradients, and again. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.workloads.job import JobPlan, Operation
from testbed.workloads.ring import RESULT, Ring


def plan_train(hosts: Sequence[int], steps: int, compute_ns: int, allreduce_bytes: int) -> JobPlan:
    """The job of `steps` training steps over `hosts` (host numbers, in rank order).

    Raises ValueError when there are no steps, or when a ring over these hosts cannot carry `allreduce_bytes`.
    """
    if steps < 1:
        raise ValueError(f"a training needs at least 1 step, not {steps}")
    ring = Ring(tuple(hosts), allreduce_bytes)
    programs = {host: [list(_program(ring, rank, steps, compute_ns))] for rank, host in enumerate(ring.hosts)}
    return JobPlan(ring.qps(), programs, ring.buffers, ring.hosts)


def _program(ring: Ring, rank: int, steps: int, compute_ns: int) -> Iterator[Operation]:
    for step in range(steps):
        yield ["begin", step]
        yield ["compute", compute_ns]
        yield from ring.all_reduce(rank, step)
        yield ["check", RESULT, step]
        yield ["end", step]
