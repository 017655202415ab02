"""Send and receive: every rank sends to the next one and receives from the previous one. Pure.

A rank knows nothing about the step of the rank it sends to, which may be many steps behind. So a receiver that has
received and checked signals its sender by an empty message, and the sender ends its step only then and may rewrite the
one slot. Nothing is forwarded, so nothing is ever resent from a slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mrc_testbed.testbed.workloads.collective import Collective, Hop, Part
from mrc_testbed.testbed.workloads.estimate import answer_ns
from mrc_testbed.testbed.workloads.job import JsonOperation
from mrc_testbed.topos.shape import Shape


class SendRecv(Collective):
    """`size_bytes` from each rank of a group to the next."""

    kind: ClassVar[str] = "sendrecv"
    formula: ClassVar[str] = "to(size) + to(1)"
    __slots__ = ()

    @property
    def chunk_bytes(self) -> int:
        """All of it."""
        return self.terms.size_bytes

    @property
    def slots(self) -> int:
        """One."""
        return 1

    @property
    def sent_bytes(self) -> int:
        """All of it."""
        return self.terms.size_bytes

    def hops(self) -> Iterator[Hop]:
        """From each rank to the next."""
        return (Hop(member, member + 1) for member in range(self.group.size))

    def operations(self, member: int, step: int) -> Iterator[JsonOperation]:
        """Send, receive, signal, wait for the signal."""
        came, goes, all_of_it = Hop(member - 1, member), Hop(member, member + 1), Part(0, self.terms.size_bytes)
        yield from self.put(goes, all_of_it, 0, step, 0)
        yield from self.wait(came, all_of_it, step, 0)
        yield from self.check(came, all_of_it, 0, step, (self.group.ranks[member - 1],))
        yield self.signal(came, step)
        yield self.wait_for_signal(goes, step)
        yield from self.drain(goes)

    def clean_ns(self, shape: Shape) -> int:
        """The transfer, and the signal back."""
        return self.transfer_ns(shape, self.sent_bytes) + answer_ns(shape)

    def earliest_ns(self, shape: Shape) -> float:
        """What the last member to begin sends."""
        return min(self.chunk_ns(shape, hop, self.sent_bytes) for hop in self.hops())
