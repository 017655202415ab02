"""What each rank sends and awaits in a collective. Ranks write to each other directly: two halves of T for an
all-reduce, however many ranks there are, and each byte crosses a NIC as often as in a ring."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

from mrc_testbed.torch.engine import Steps
from mrc_testbed.torch.links import Link, Sending, Transfer

Tensor = Any
"""torch.Tensor."""
Reduce = Callable[[Sequence[Tensor]], Tensor]
"""The tensors of all ranks, in their order, to one."""


class Ranks:
    """A rank among those of its group. All tensors are contiguous."""

    def __init__(self, rank: int, size: int, links: dict[int, Link]) -> None:
        self.rank, self.size = rank, size
        self._links = links

    def all_reduce(self, stream: int, tensor: Tensor, reduce: Reduce) -> Steps:
        """Each rank reduces a part, and sends it to all others."""
        parts = in_parts(tensor, self.size)
        yield from self.reduce_scatter(stream, parts[self.rank], parts, reduce)
        yield from self.all_gather(stream, parts, parts[self.rank])

    def reduce_scatter(self, stream: int, into: Tensor, parts: Sequence[Tensor], reduce: Reduce) -> Steps:
        """`into` becomes this rank's part, reduced."""
        all_ranks = [torch.empty_like(into) if rank != self.rank else parts[rank] for rank in range(self.size)]
        yield [*self._send(stream, parts), *self._receive(stream, all_ranks)]
        into.copy_(reduce(all_ranks))

    def all_gather(self, stream: int, into: Sequence[Tensor], tensor: Tensor) -> Steps:
        """`into` becomes the tensors of all ranks."""
        yield [*self._send(stream, [tensor] * self.size), *self._receive(stream, into)]
        into[self.rank].copy_(tensor)

    def all_to_all(self, stream: int, into: Sequence[Tensor], tensors: Sequence[Tensor]) -> Steps:
        """Each rank sends each other one a tensor of its own."""
        yield [*self._send(stream, tensors), *self._receive(stream, into)]
        into[self.rank].copy_(tensors[self.rank])

    def broadcast(self, stream: int, tensor: Tensor, root: int) -> Steps:
        """The root sends each other rank a part, which hands it on, and all of them its own part."""
        parts = in_parts(tensor, self.size)
        others = [rank for rank in self._links if rank != root]
        if self.rank == root:
            sent = [self._links[rank].send(stream, bytes_of(parts[rank])) for rank in others]
            yield sent + [self._links[rank].send(stream, bytes_of(parts[root])) for rank in others]
            return
        mine = self._links[root].receive(stream, bytes_of(parts[self.rank]))
        came = [self._links[rank].receive(stream, bytes_of(parts[rank])) for rank in (root, *others)]
        yield [mine]
        yield came + [self._links[rank].send(stream, bytes_of(parts[self.rank])) for rank in others]

    def gather(self, stream: int, into: Sequence[Tensor], tensor: Tensor, root: int) -> Steps:
        """At the root `into` becomes the tensors of all ranks."""
        if self.rank != root:
            yield [self._links[root].send(stream, bytes_of(tensor))]
            return
        yield self._receive(stream, into)
        into[root].copy_(tensor)

    def reduce(self, stream: int, tensor: Tensor, reduce: Reduce, root: int) -> Steps:
        """At the root `tensor` becomes that of all ranks, reduced."""
        of_all = [torch.empty_like(tensor) if rank != root else tensor for rank in range(self.size)]
        yield from self.gather(stream, of_all, tensor, root)
        if self.rank == root:
            tensor.copy_(reduce(of_all))

    def scatter(self, stream: int, into: Tensor, tensors: Sequence[Tensor], root: int) -> Steps:
        """Each rank gets its tensor of the root's."""
        if self.rank != root:
            yield [self._links[root].receive(stream, bytes_of(into))]
            return
        yield self._send(stream, tensors)
        into.copy_(tensors[root])

    def barrier(self, stream: int) -> Steps:
        """A byte from each rank to each other."""
        bytes_of_all = torch.zeros(self.size, 1, dtype=torch.uint8)
        yield from self.all_gather(stream, list(bytes_of_all), torch.zeros(1, dtype=torch.uint8))

    def send(self, stream: int, tensor: Tensor, to: int) -> Steps:
        """Over when it has arrived."""
        yield [self._links[to].send(stream, bytes_of(tensor), arrives=True)]

    def receive(self, stream: int, tensor: Tensor, source: int) -> Steps:
        """The next of a stream."""
        yield [self._links[source].receive(stream, bytes_of(tensor))]

    def _send(self, stream: int, tensors: Sequence[Tensor]) -> list[Sending]:
        """To each other rank the one at its place."""
        return [link.send(stream, bytes_of(tensors[rank])) for rank, link in self._links.items()]

    def _receive(self, stream: int, into: Sequence[Tensor]) -> list[Transfer]:
        return [link.receive(stream, bytes_of(into[rank])) for rank, link in self._links.items()]


def in_parts(tensor: Tensor, count: int) -> list[Tensor]:
    """As equal as can be; views of the tensor, some of them empty where it is short."""
    return list(torch.tensor_split(tensor.view(-1), count))


def bytes_of(tensor: Tensor) -> memoryview:
    """Its memory. The tensor must be contiguous, and be kept."""
    length = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_char * length).from_address(tensor.data_ptr() if length else 0)).cast("B")
