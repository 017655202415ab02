"""Pipeline: micro-batches go through a chain of stages, and each stage computes on each of them. Pure.

Stage 0 computes and writes its data of a micro-batch to stage 1. A later stage waits for it, checks it, computes, XORs
its own data onto it and forwards it, so stage i receives the sum of the data of all earlier stages; the last stage
keeps it. Every micro-batch has one slot.

A stage forwards from the slot of arrival, so the slot must stay until that is acknowledged. After receiving and
computing all micro-batches of a step and getting all acknowledgements, a stage signals the previous one by an empty
message; that one ends its step only then, and rewrites the slots in the next step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mrc_testbed.testbed.workloads.collective import Collective, Hop, Part
from mrc_testbed.testbed.workloads.estimate import answer_ns, earliest_ns
from mrc_testbed.testbed.workloads.job import JsonOperation
from mrc_testbed.topos.shape import Shape


class Pipeline(Collective):
    """`micro_batches` of `size_bytes` through the ranks of a group in their order."""

    kind: ClassVar[str] = "pipeline"
    formula: ClassVar[str] = (
        "(N-1) (compute + to(size)) + (micro_batches-1) max(compute, size / line rate) + max(compute, to(1) if N > 2)"
        " + to(1), steps overlap"
    )
    __slots__ = ()

    @property
    def data_bytes(self) -> int:
        """All micro-batches."""
        return self.terms.micro_batches * self.terms.size_bytes

    @property
    def chunk_bytes(self) -> int:
        """A micro-batch."""
        return self.terms.size_bytes

    @property
    def slots(self) -> int:
        """One for each micro-batch."""
        return self.terms.micro_batches

    @property
    def sent_bytes(self) -> int:
        """All micro-batches."""
        return self.data_bytes

    def hops(self) -> Iterator[Hop]:
        """From each stage but the last to the next."""
        return (Hop(stage, stage + 1) for stage in range(self.group.size - 1))

    def operations(self, member: int, step: int) -> Iterator[JsonOperation]:
        """Receive, compute, forward; then signal and wait for the signal."""
        came, goes = Hop(member - 1, member), Hop(member, member + 1)
        first, last = member == 0, member == self.group.size - 1
        for number in range(self.terms.micro_batches):
            batch = Part(number * self.terms.size_bytes, self.terms.size_bytes)
            if not first:
                yield from self.wait(came, batch, step, number)
                yield from self.check(came, batch, number, step, self.group.ranks[:member])
            if self.terms.compute_ns:
                yield ["compute", self.terms.compute_ns]
            if first:
                yield from self.put(goes, batch, number, step, number)
            elif not last:
                yield from self.add(came, batch, number, step)
                yield from self.forward(came, goes, batch, (number, number), step, number)
        if not last:
            yield from self.drain(goes)
        if not first:
            yield self.signal(came, step)
        if not last:
            yield self.wait_for_signal(goes, step)

    def clean_ns(self, shape: Shape) -> int:
        """The first micro-batch through all stages, the others behind it at the pace of the slower of compute and
        network, and the last signal: of the last stage, which computes first, or of the one before it, which waits for
        the acknowledgement of the last micro-batch first."""
        stages, batches = self.group.size, self.terms.micro_batches
        pace = max(self.terms.compute_ns, self.wire_ns(shape, self.terms.size_bytes))
        through = (stages - 1) * (self.terms.compute_ns + self.transfer_ns(shape, self.terms.size_bytes))
        end_ns = max(self.terms.compute_ns, answer_ns(shape) if stages > 2 else 0)
        return round(through + (batches - 1) * pace) + end_ns + answer_ns(shape)

    def earliest_ns(self, shape: Shape) -> float:
        """All computation of the last stage, when all it needs was there before it began, and its word to the stage
        before."""
        links = self.links(shape, Hop(self.group.size - 1, self.group.size - 2))
        return self.terms.micro_batches * self.terms.compute_ns + earliest_ns(shape, (), links)
