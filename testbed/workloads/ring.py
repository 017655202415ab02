"""Ring all-reduce as rank programs: reduce-scatter, then all-gather, N - 1 phases each. Pure.

The vector is cut into N chunks. In every phase each rank writes one chunk, with immediate, into the region of its right
neighbour and receives one from its left neighbour. In the first N - 1 phases it XORs its own chunk onto what came and
passes that on; then rank r holds chunk r + 1 complete, and in the last N - 1 phases the complete chunks go round
unchanged, and are copied into the result.

Every phase has its own slot in the region, and there are two banks of slots, used by even and odd steps. One bank is
not enough: chunks are forwarded from the slot they arrived in, and the left neighbour can be a step ahead and overwrite
a slot whose forwarding has arrived but is not acknowledged yet, so that a retransmission would send other bytes. Two
are: to begin step s + 2 the left neighbour must have finished step s + 1, whose result holds a chunk of every rank, so
this rank had begun step s + 1, and before that it had drained and ended step s, whose bank is the one that is reused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hosts.program import INPUT, REGION_PREFIX
from testbed.workloads.job import Operation, QpSpec

RESULT = "result"
"""The buffer that holds the reduced vector after the all-reduce."""
BANKS = 2


@dataclass(frozen=True, slots=True)
class Ring:
    """An all-reduce of `size_bytes` over `hosts` in their order.

    Raises ValueError for fewer than 2 hosts, a host named twice, or a vector with less than a byte for each rank.
    """

    hosts: tuple[int, ...]
    size_bytes: int

    def __post_init__(self) -> None:
        if self.ranks < 2:
            raise ValueError("a ring needs at least 2 hosts")
        if len(set(self.hosts)) != self.ranks:
            raise ValueError("a host can be in the ring only once")
        if self.size_bytes < self.ranks:
            raise ValueError(f"{self.size_bytes} bytes cannot be cut into {self.ranks} chunks")

    @property
    def ranks(self) -> int:
        """Number of ranks, N."""
        return len(self.hosts)

    @property
    def phases(self) -> int:
        """Writes of each rank in one all-reduce: 2 (N - 1)."""
        return 2 * (self.ranks - 1)

    @property
    def slot_bytes(self) -> int:
        """Size of a slot: that of the longest chunk."""
        return -(-self.size_bytes // self.ranks)

    @property
    def region_bytes(self) -> int:
        """What each rank offers to its left neighbour: two banks of one slot a phase."""
        return BANKS * self.phases * self.slot_bytes

    @property
    def buffers(self) -> dict[str, int]:
        """The buffers of a rank's program."""
        return {INPUT: self.size_bytes, RESULT: self.size_bytes}

    def qps(self) -> tuple[QpSpec, ...]:
        """One QP from each rank to the next."""
        return tuple(
            QpSpec(self._qp(rank), host, self.hosts[(rank + 1) % self.ranks], self.region_bytes)
            for rank, host in enumerate(self.hosts)
        )

    def all_reduce(self, rank: int, step: int) -> Iterator[Operation]:
        """The operations of one rank for one all-reduce of INPUT into RESULT, the last of them a drain."""
        for phase in range(self.phases):
            yield self._send(rank, step, phase)
            yield ["wait", self._qp(rank - 1), self._immediate(step, phase)]
            yield from self._take(rank, step, phase)
        yield ["drain", self._qp(rank)]

    def _send(self, rank: int, step: int, phase: int) -> Operation:
        offset, length = self._chunk(rank - phase)
        # Only the first chunk leaves from the input; later ones leave from where they arrived, without a copy.
        source = (INPUT, offset) if phase == 0 else (self._arrivals(rank), self._slot(step, phase - 1))
        return ["write", self._qp(rank), *source, length, self._slot(step, phase), self._immediate(step, phase)]

    def _take(self, rank: int, step: int, phase: int) -> Iterator[Operation]:
        offset, length = self._chunk(rank - phase - 1)
        slot = [self._arrivals(rank), self._slot(step, phase)]
        if phase < self.ranks - 1:
            yield ["xor", *slot, INPUT, offset, length]
        if phase >= self.ranks - 2:
            yield ["copy", RESULT, offset, *slot, length]

    def _chunk(self, index: int) -> tuple[int, int]:
        number = index % self.ranks
        begin, end = (n * self.size_bytes // self.ranks for n in (number, number + 1))
        return begin, end - begin

    def _qp(self, rank: int) -> str:
        left, right = self.hosts[rank % self.ranks], self.hosts[(rank + 1) % self.ranks]
        return f"{left}>{right}"

    def _arrivals(self, rank: int) -> str:
        return REGION_PREFIX + self._qp(rank - 1)

    def _slot(self, step: int, phase: int) -> int:
        return (step % BANKS * self.phases + phase) * self.slot_bytes

    def _immediate(self, step: int, phase: int) -> int:
        return (step * self.phases + phase) & 0xFFFFFFFF
