"""A job of torch.distributed that checks each call, by its result on each rank. Run by test_torch_backend.py."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

import mrc_testbed.torch  # noqa: F401 - it registers the backend

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8]


def values(rank: int, length: int, kind: Any = torch.float32) -> Any:
    """Small whole numbers, which every type can hold and add exactly."""
    return ((torch.arange(length) + 3 * rank) % 5 + 1).to(kind)


def equal(found: Any, expected: Any, what: str) -> None:
    if not torch.equal(found, expected):
        raise SystemExit(f"{what}: {found} is not {expected}")


def of_all(size: int, length: int, kind: Any = torch.float32) -> Any:
    return torch.stack([values(rank, length, kind) for rank in range(size)])


def check_all_reduce(rank: int, size: int) -> None:
    for length in (0, 1, 7, 5000, 700_000):
        tensor = values(rank, length)
        dist.all_reduce(tensor)
        equal(tensor, of_all(size, length).sum(0), f"sum of {length}")
    for kind in TYPES:
        tensor = values(rank, 33, kind)
        dist.all_reduce(tensor)
        equal(tensor, of_all(size, 33).sum(0).to(kind), f"sum of {kind}")
    of, every = dist.ReduceOp, of_all(size, 33)
    expected = {of.PRODUCT: every.prod(0), of.MIN: every.min(0)[0], of.MAX: every.max(0)[0]}
    for operation, right in {**expected, of.AVG: every.sum(0) / size}.items():
        tensor = values(rank, 33)
        dist.all_reduce(tensor, operation)
        equal(tensor, right, f"{operation}")
    whole = values(rank, 33, torch.int32)
    dist.all_reduce(whole, of.AVG)
    equal(whole, torch.div(every.sum(0).int(), size, rounding_mode="trunc"), "average of integers")
    strided = torch.zeros(8, 2)
    strided[:, 0] = values(rank, 8)
    dist.all_reduce(strided[:, 0])
    equal(strided, torch.stack([of_all(size, 8).sum(0), torch.zeros(8)], 1), "a tensor in pieces")


def check_others(rank: int, size: int) -> None:
    every = of_all(size, 1001)
    for root in range(size):
        for length in (1, 1001, 300_000):
            tensor = values(rank, length) if rank == root else torch.zeros(length)
            dist.broadcast(tensor, root)
            equal(tensor, values(root, length), f"broadcast from {root}")
        tensor = values(rank, 1001)
        dist.reduce(tensor, root)
        if rank == root:
            equal(tensor, every.sum(0), "reduce")
        into = [torch.zeros(1001) for _ in range(size)]
        dist.gather(values(rank, 1001), into if rank == root else None, root)
        if rank == root:
            equal(torch.stack(into), every, "gather")
        mine = torch.zeros(1001)
        dist.scatter(mine, list(every) if rank == root else None, root)
        equal(mine, every[rank], "scatter")
    into = [torch.zeros(1001) for _ in range(size)]
    dist.all_gather(into, values(rank, 1001))
    equal(torch.stack(into), every, "all_gather")
    dist.barrier()


def check_tensors(rank: int, size: int) -> None:
    every = of_all(size, 60)
    together = torch.zeros(60 * size)
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    gather(together, values(rank, 60))
    equal(together, every.flatten(), "all_gather_into_tensor")
    part = torch.zeros(60 // size)
    scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    length = 60 // size * size
    scatter(part, values(rank, 60)[:length].contiguous())
    equal(part, every.sum(0)[:length].chunk(size)[rank], "reduce_scatter_tensor")
    dist.reduce_scatter(part, list(values(rank, 60)[:length].chunk(size)))
    equal(part, every.sum(0)[:length].chunk(size)[rank], "reduce_scatter")
    to_all = torch.zeros(size)
    dist.all_to_all_single(to_all, torch.arange(size).float() + 10 * rank)
    equal(to_all, 10 * torch.arange(size).float() + rank, "all_to_all_single")
    objects: list[Any] = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    if objects != [{"rank": each} for each in range(size)]:
        raise SystemExit(f"all_gather_object: {objects}")


def check_points(rank: int, size: int) -> None:
    """Larger than all slots; receives first, so that a backend that does one after the other would hang."""
    after, before = (rank + 1) % size, (rank - 1) % size
    came, tagged = torch.zeros(400_000), torch.zeros(3)
    works = [dist.irecv(came, before), dist.irecv(tagged, before, tag=9)]
    works += [dist.isend(values(rank, 3), after, tag=9), dist.isend(values(rank, 400_000), after)]
    for work in works:
        work.wait()
    equal(came, values(before, 400_000), "irecv")
    equal(tagged, values(before, 3), "irecv with a tag")
    if rank == 0:
        dist.send(torch.ones(5), 1)
    elif rank == 1:
        dist.recv(came[:5], 0)
        equal(came[:5], torch.ones(5), "recv")


def check_groups(rank: int, size: int) -> None:
    both = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        tensor = values(rank, 10)
        dist.all_reduce(tensor, group=both)
        equal(tensor, values(0, 10) + values(size - 1, 10), "a group of two")


def check_training(rank: int, size: int) -> None:
    """DDP: the weights of all ranks stay the same, and are those of one process with all batches."""

    def model() -> Any:
        torch.manual_seed(5)
        return torch.nn.Sequential(torch.nn.Linear(40, 300), torch.nn.ReLU(), torch.nn.Linear(300, 40)).double()

    def batch(step: int, of: int) -> Any:
        torch.manual_seed(100 * step + of)
        return torch.randn(6, 40).double()

    alone, ours = model(), torch.nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.05)
    for step in range(3):
        for net, batches in ((ours, [rank]), (alone, range(size))):
            net.zero_grad()
            sum((net(batch(step, of)) ** 2).mean() for of in batches).backward()
            for weight in net.parameters():
                weight.data -= 0.1 * weight.grad / (1 if net is ours else size)
    for found, expected in zip(ours.parameters(), alone.parameters()):  # noqa: B905 - of any Python
        if not torch.allclose(found, expected, rtol=1e-12, atol=1e-12):
            raise SystemExit("DDP trains to other weights")
    flat = torch.cat([each.detach().flatten() for each in ours.parameters()])
    copies = [torch.zeros_like(flat) for _ in range(size)]
    dist.all_gather(copies, flat)
    for copy in copies:
        equal(copy, flat, "weights of another rank")


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group(sys.argv[2] if len(sys.argv) > 2 else "mrc", timeout=timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    globals()[f"check_{sys.argv[1]}"](rank, size)
    dist.barrier()
    sys.stdout.write(f"{sys.argv[1]} right, {dist.get_backend()}\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
