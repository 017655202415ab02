"""The ranks of a job, connected: `join`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, closing
from typing import Any, Final, Literal

from mrc_testbed.hosts.verbs import client
from mrc_testbed.hosts.verbs.client_meeting import Meeting, Place
from mrc_testbed.hosts.verbs.client_memory import Address, Region
from mrc_testbed.hosts.verbs.client_qp import Completion, QueuePair

_RECEIVES: Final = 64


class Link:
    """To one other rank: a QP, and the region that rank has for writes of ours."""

    def __init__(self, rank: int, qp: QueuePair, region: Region) -> None:
        self.rank, self.qp = rank, qp
        self._region = region
        self.remote: Address | None = None

    def write(self, offset: int, length: int, remote_offset: int, immediate: int | None = None) -> int:
        """Write bytes from `offset` of our region into the other rank's at `remote_offset`. With an `immediate` that
        rank is told (`receive`). Do not change the bytes before `wait_writes`."""
        if self.remote is None:
            raise ValueError(f"rank {self.rank} is not connected yet")
        return self.qp.write(self._region, offset, length, self.remote, remote_offset, immediate)

    def receive(self, timeout: float | None = None) -> Completion:
        """The next write with immediate from that rank: its `immediate` and `byte_len`. Another receive is posted in
        its place. Raises TimedOut, QueuePairError and DeviceLost."""
        came = self.qp.wait_receive(timeout)
        self.qp.post_receive()
        return came

    def wait_writes(self, timeout: float | None = None) -> None:
        """Until all writes to that rank have arrived. Raises TimedOut, QueuePairError and DeviceLost."""
        self.qp.wait_writes(timeout)


class Job:
    """This rank among all. Made by `join`; a context manager, which waits for the other ranks at its end."""

    def __init__(self, place: Place, meeting: Meeting, device: client.Device, region: Region) -> None:
        self.rank, self.size = place.rank, place.size
        self.device, self.region = device, region
        self.links: dict[int, Link] = {}
        """By rank."""
        self._meeting = meeting

    @property
    def next(self) -> Link:
        """To the rank after this one in the ring."""
        return self.links[(self.rank + 1) % self.size]

    @property
    def previous(self) -> Link:
        """To the rank before. In a ring of two that is the one after, too."""
        return self.links[(self.rank - 1) % self.size]

    def all_gather(self, value: Any, timeout: float | None = None) -> list[Any]:
        """What each rank gives, by rank, over TCP: for what is small. Raises TimedOut, VerbsError."""
        return self._meeting.all_gather(value, timeout)

    def barrier(self, timeout: float | None = None) -> None:
        """Until all ranks are here. Raises TimedOut, and VerbsError when one has gone."""
        self._meeting.all_gather(self.rank, timeout)

    def close(self) -> None:
        """Leave without waiting for anybody."""
        self._meeting.close()
        self.device.close()

    def connect(self, ranks: Iterable[int], receives: int, timeout: float) -> None:
        """Make the links, with receives posted. All ranks call it at the same time."""
        for rank in ranks:
            self.links[rank] = Link(rank, self.device.queue_pair(most_receives=receives), self.region)
            self.links[rank].qp.post_receive(receives)
        mine = {rank: link.qp.address(self.region).to_json() for rank, link in self.links.items()}
        told = self.all_gather(mine, timeout)
        for rank, link in self.links.items():
            link.remote = Address.from_json(told[rank][str(self.rank)])
            link.qp.connect(link.remote)
        self.barrier(timeout)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                for link in self.links.values():
                    link.wait_writes()
                self.barrier()
        finally:
            self.close()


def join(
    buffer: Any = 1 << 20, to: Literal["all", "ring"] = "all", receives: int = _RECEIVES, timeout: float = 60
) -> Job:
    """Meet the other ranks of the job, and connect to all of them or to the neighbours in the ring of ranks.

    Each rank has one region: `buffer`, or as many bytes as `buffer` says. `receives` writes with immediate may come
    from a rank before `receive` takes one. The environment tells rank, size and hosts (MRC_RANK, MRC_WORLD_SIZE,
    MRC_HOSTS), and where rank 0 is met (MASTER_ADDR, MASTER_PORT). Raises NoDevice, TimedOut when not all ranks come
    within `timeout` seconds, and VerbsError.
    """
    place = Place.of()
    with ExitStack() as undo:
        device = undo.enter_context(client.open())
        meeting = undo.enter_context(closing(Meeting(place, timeout)))
        region = device.register(bytearray(buffer) if isinstance(buffer, int) else buffer)
        job = Job(place, meeting, device, region)
        others = {rank for rank in range(place.size) if rank != place.rank}
        near = {(place.rank + 1) % place.size, (place.rank - 1) % place.size}
        job.connect(sorted(others & near if to == "ring" else others), receives, timeout)
        undo.pop_all()
    return job
