"""All hosts of a job in one process, their programs run by real interpreters over a fabric that is a few lists."""

from __future__ import annotations

import random
from collections import deque

from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.program import Program
from mrc_testbed.hosts.program_io import RankPrograms, Report
from mrc_testbed.testbed.workloads.job import JobPlan

Way = tuple[str, int]
"""A QP, and the host that writes: data go from its source, empty messages also back."""


class Wire:
    """Writes arrive, and later complete, in the order of their QP and direction.

    Until a write completes the memory it was posted from must not change: the endpoint may have to send it again.
    Completions on the QP `slow` come only when nothing else can happen. The host `lazy` goes on only then. `prompt`: as
    a daemon does, every host lets its program go on before what came is acknowledged.
    """

    def __init__(self, job: JobPlan, seed: int = 1, slow: str = "", lazy: int = -1, prompt: bool = False) -> None:
        self.rng = random.Random(seed)
        self.slow, self.lazy, self.prompt = slow, lazy, prompt
        self.qps = {qp.id: qp for qp in job.qps}
        self.memory = {qp.id: bytearray(qp.region_bytes) for qp in job.qps}
        self.placed = {qp.id: PlacedBytes() for qp in job.qps}
        self.posted: dict[Way, deque[tuple[memoryview, int, int | None]]] = {}
        self.arrived: dict[Way, deque[tuple[memoryview, bytes]]] = {}
        self.now_ns = self.idle = 0
        self.corrupt: set[tuple[str, int]] = set()
        self.programs = {
            host: Program(RankPrograms(job.rank_of(host), 7, program), End(self, host))
            for host, program in job.programs.items()
        }
        for program in self.programs.values():
            program.start(0)

    def arrive(self, way: Way) -> None:
        source, offset, immediate = self.posted[way].popleft()
        qp, spec = way[0], self.qps[way[0]]
        receiver = spec.dst if way[1] == spec.src else spec.src
        if source:
            assert receiver == spec.dst, "data went back on a QP"
            region = memoryview(self.memory[qp])
            region[offset : offset + len(source)] = source
            self.placed[qp].note(len(source), self.now_ns)
            if (qp, immediate) in self.corrupt:
                region[offset] ^= 0x10
        self.arrived.setdefault(way, deque()).append((source, bytes(source)))
        if immediate is not None:
            self.programs[receiver].immediate(qp, immediate)
        if self.prompt:
            self.programs[receiver].advance(self.now_ns)

    def complete(self, way: Way) -> None:
        source, content = self.arrived[way].popleft()
        assert bytes(source) == content, "memory changed under a write"
        self.programs[way[1]].written(way[0])

    def move(self) -> bool:
        moves = [(self.arrive, way) for way, writes in self.posted.items() if writes]
        moves += [(self.complete, way) for way, writes in self.arrived.items() if writes and way[0] != self.slow]
        if moves:
            act, way = self.rng.choice(moves)
            act(way)
        return bool(moves)

    def run(self) -> dict[int, list[Report]]:
        """Random interleaving until every program is done; the reports of every host."""
        reports: dict[int, list[Report]] = {host: [] for host in self.programs}
        diligent = [host for host in self.programs if host != self.lazy]
        while not all(program.done for program in self.programs.values()):
            host = self.rng.choice(diligent) if self.idle <= 100 else self.rng.choice(list(self.programs))
            program = self.programs[host]
            for _ in range(self.rng.randrange(20)):
                program.advance(self.now_ns)
            while (report := program.poll_report()) is not None:
                reports[host].append(report)
            self.idle = 0 if self.move() else self.idle + 1
            if self.idle > 100:
                for way in [way for way, writes in self.arrived.items() if writes and way[0] == self.slow]:
                    self.complete(way)
            self.now_ns += 1_000
            assert self.now_ns < 1_000_000_000, "the job hangs"
        for host, program in self.programs.items():
            while (report := program.poll_report()) is not None:
                reports[host].append(report)
        return reports


class End:
    """One host's side of the wire: writes are kept by reference, as the endpoint keeps them."""

    def __init__(self, wire: Wire, host: int) -> None:
        self.wire = wire
        self.host = host

    def region(self, qp: str) -> memoryview:
        mine = self.wire.qps[qp].dst == self.host
        return memoryview(self.wire.memory[qp]) if mine else memoryview(b"")

    def peer(self, qp: str) -> str:
        spec = self.wire.qps[qp]
        return f"h{spec.src if spec.dst == self.host else spec.dst}"

    def take_placed(self, qp: str, mark_ns: int) -> int:
        return self.wire.placed[qp].take(mark_ns)

    def post_write(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        assert self.host in (self.wire.qps[qp].src, self.wire.qps[qp].dst)
        self.wire.posted.setdefault((qp, self.host), deque()).append((data, remote_offset, immediate))
