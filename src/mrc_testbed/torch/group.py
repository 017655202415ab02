"""A process group of torch.distributed, whose ranks write into each other's memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from typing import Any

import torch
from torch.distributed import ProcessGroup

from mrc_testbed import verbs
from mrc_testbed.torch.collectives import Ranks, Tensor
from mrc_testbed.torch.engine import Engine, Steps
from mrc_testbed.torch.links import Link
from mrc_testbed.torch.reductions import reduction
from mrc_testbed.torch.work import Alive, MrcWork

_COLLECTIVES = 1 << 31
"""Streams from here on are of collectives, by their number; those below of send and recv, by their tag."""


class MrcGroup(ProcessGroup):  # type: ignore[misc]
    """Calls return at once with a Work; a thread of the group does them. Errors are RuntimeErrors at its `wait`: a QP
    that failed, or what was not done within the `timeout` of the group. Raises NoDevice, Refused, and what `store`
    raises."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        device = verbs.open() if size > 1 else None
        links = _connected(device, store, rank, size) if device else {}
        self._ranks = Ranks(rank, size, links)
        self._engine = Engine(device, links, timeout.total_seconds())
        self._numbers = count()
        self._alive = Alive()
        self._end = weakref.finalize(self, self._engine.close)

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's name
        return "mrc"

    def shutdown(self) -> None:
        """For destroy_process_group."""
        self._end()

    def allreduce(self, tensors: Sequence[Tensor], opts: Any = None) -> Any:
        by = reduction(_of(opts, "reduceOp", torch.distributed.ReduceOp.SUM))
        return self._in_place("all_reduce", tensors, lambda stream, each: self._ranks.all_reduce(stream, each, by))

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: Sequence[Tensor], opts: Any = None) -> Any:
        root = _of(opts, "rootRank", 0)
        return self._in_place("broadcast", tensors, lambda stream, each: self._ranks.broadcast(stream, each, root))

    def reduce(self, tensors: Sequence[Tensor], opts: Any = None) -> Any:
        by, root = reduction(_of(opts, "reduceOp", torch.distributed.ReduceOp.SUM)), _of(opts, "rootRank", 0)
        return self._in_place("reduce", tensors, lambda stream, each: self._ranks.reduce(stream, each, by, root))

    def allgather(self, into: Sequence[Sequence[Tensor]], tensors: Sequence[Tensor], opts: Any = None) -> Any:
        return self._spread("all_gather", into[0], tensors[0])

    def _allgather_base(self, into: Tensor, tensor: Tensor, opts: Any = None) -> Any:
        return self._spread("all_gather_into_tensor", into.chunk(self._ranks.size), tensor)

    def reduce_scatter(self, into: Sequence[Tensor], tensors: Sequence[Sequence[Tensor]], opts: Any = None) -> Any:
        return self._reduce_scatter("reduce_scatter", into[0], tensors[0], opts)

    def _reduce_scatter_base(self, into: Tensor, tensor: Tensor, opts: Any = None) -> Any:
        return self._reduce_scatter("reduce_scatter_tensor", into, tensor.chunk(self._ranks.size), opts)

    def gather(self, into: Sequence[Sequence[Tensor]], tensors: Sequence[Tensor], opts: Any = None) -> Any:
        whole, root = _whole(tensors[0]), _of(opts, "rootRank", 0)
        outputs = list(into[0]) if into else []
        copies = [_whole(each) for each in outputs]
        steps = self._ranks.gather(self._collective(), copies, whole, root)
        return self._work("gather", steps, list(zip(outputs, copies, strict=True)), [whole])

    def scatter(self, into: Sequence[Tensor], tensors: Sequence[Sequence[Tensor]], opts: Any = None) -> Any:
        whole, root = _whole(into[0]), _of(opts, "rootRank", 0)
        parts = [_whole(each) for each in tensors[0]] if tensors else []
        return self._work(
            "scatter", self._ranks.scatter(self._collective(), whole, parts, root), [(into[0], whole)], parts
        )

    def alltoall(self, into: Sequence[Tensor], tensors: Sequence[Tensor], opts: Any = None) -> Any:
        copies, parts = [_whole(each) for each in into], [_whole(each) for each in tensors]
        steps = self._ranks.all_to_all(self._collective(), copies, parts)
        return self._work("all_to_all", steps, list(zip(into, copies, strict=True)), parts)

    def alltoall_base(
        self, into: Tensor, tensor: Tensor, into_sizes: Sequence[int], sizes: Sequence[int], opts: Any = None
    ) -> Any:
        outputs = into.split(list(into_sizes)) if into_sizes else into.chunk(self._ranks.size)
        return self.alltoall(outputs, tensor.split(list(sizes)) if sizes else tensor.chunk(self._ranks.size))

    all_gather_single, reduce_scatter_single, all_to_all_single = _allgather_base, _reduce_scatter_base, alltoall_base
    """Their names from PyTorch 2.11 on."""

    def barrier(self, opts: Any = None) -> Any:
        return self._work("barrier", self._ranks.barrier(self._collective()), [], [])

    def send(self, tensors: Sequence[Tensor], to: int, tag: int = 0) -> Any:
        whole = _whole(tensors[0])
        return self._work("send", self._ranks.send(_tag(tag), whole, to), [], [whole])

    def recv(self, tensors: Sequence[Tensor], source: int, tag: int = 0) -> Any:
        whole = _whole(tensors[0])
        return self._work("recv", self._ranks.receive(_tag(tag), whole, source), [(tensors[0], whole)], [])

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Any:
        raise ValueError("backend mrc receives from a rank that is named, not from any")

    def _spread(self, name: str, into: Sequence[Tensor], tensor: Tensor) -> Any:
        copies, whole = [_whole(each) for each in into], _whole(tensor)
        steps = self._ranks.all_gather(self._collective(), copies, whole)
        return self._work(name, steps, list(zip(into, copies, strict=True)), [whole])

    def _reduce_scatter(self, name: str, into: Tensor, tensors: Sequence[Tensor], opts: Any) -> Any:
        by = reduction(_of(opts, "reduceOp", torch.distributed.ReduceOp.SUM))
        parts, whole = [_whole(each) for each in tensors], _whole(into)
        return self._work(
            name, self._ranks.reduce_scatter(self._collective(), whole, parts, by), [(into, whole)], parts
        )

    def _in_place(self, name: str, tensors: Sequence[Tensor], steps: Callable[[int, Tensor], Steps]) -> Any:
        """One after the other where there are several."""
        copies = [_whole(each) for each in tensors]
        stream = self._collective()

        def all_steps() -> Steps:
            for each in copies:
                yield from steps(stream, each)

        return self._work(name, all_steps(), list(zip(tensors, copies, strict=True)), [])

    def _work(self, name: str, steps: Steps, outputs: list[tuple[Tensor, Tensor]], kept: list[Tensor]) -> Any:
        """Have it done. Copies of `outputs` go back to where they were made of."""
        work = MrcWork()
        self._alive.add(work)

        def finish(error: str | None) -> None:
            if error is None:
                for tensor, copy in outputs:
                    if tensor.data_ptr() != copy.data_ptr():
                        tensor.copy_(copy)
            work.finish(error, [tensor for tensor, _ in outputs])
            self._alive.over(work)
            kept.clear()

        self._engine.submit(name, steps, finish)
        return work

    def _collective(self) -> int:
        return _COLLECTIVES | next(self._numbers) % _COLLECTIVES


def _connected(device: verbs.Device, store: Any, rank: int, size: int) -> dict[int, Link]:
    """Links to all other ranks, all of them ready: addresses are exchanged through the store."""
    links = {other: Link(device) for other in range(size) if other != rank}
    store.set(f"host/{rank}", device.host_name)
    for other, link in links.items():
        store.set(f"{rank}/{other}", link.address)
    for other, link in links.items():
        link.peer = f"rank {other} ({store.get(f'host/{other}').decode()})"
        link.connect(store.get(f"{other}/{rank}"))
    store.set(f"ready/{rank}", b"1")
    store.wait([f"ready/{other}" for other in links])
    return links


def _whole(tensor: Tensor) -> Tensor:
    """In one piece: itself where it is."""
    if tensor.device.type != "cpu":
        raise ValueError(f"backend mrc has tensors on the CPU, not on {tensor.device}")
    return tensor.detach().contiguous()


def _tag(tag: int) -> int:
    if not 0 <= tag < _COLLECTIVES:
        raise ValueError(f"a tag is between 0 and {_COLLECTIVES - 1}, not {tag}")
    return tag


def _of(opts: Any, name: str, usual: Any) -> Any:
    return usual if opts is None else getattr(opts, name)
