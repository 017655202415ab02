"""The ring and the training job, run by real interpreters over a fabric that is a few lists."""

from __future__ import annotations

import random
from collections import deque
from itertools import pairwise

import pytest

from hosts.program import Job, Program, StepReport
from testbed.workloads.job import JobPlan
from testbed.workloads.ring import Ring
from testbed.workloads.train import plan_train


class Wire:
    """All hosts of a job in one process. Writes arrive, and later complete, in the order of their QP.

    Until a write completes the memory it was posted from must not change: the endpoint may have to send it again.
    Completions on the QP `slow` come only when nothing else can happen.
    """

    def __init__(self, job: JobPlan, seed: int = 1, slow: str = "") -> None:
        self.rng = random.Random(seed)
        self.slow = slow
        self.qps = {qp.id: qp for qp in job.qps}
        self.memory = {(end, qp.id): bytearray(qp.region_bytes) for qp in job.qps for end in (qp.src, qp.dst)}
        self.posted = {qp.id: deque() for qp in job.qps}
        self.arrived = {qp.id: deque() for qp in job.qps}
        self.now_ns = self.idle = 0
        self.corrupt: set[tuple[str, int]] = set()
        self.programs = {
            host: Program(Job(job.rank_of(host), len(job.ranks), job.buffers, 7, program), End(self, host))
            for host, program in job.programs.items()
        }
        for program in self.programs.values():
            program.start(0)

    def arrive(self, qp: str) -> None:
        source, offset, immediate = self.posted[qp].popleft()
        region = memoryview(self.memory[self.qps[qp].dst, qp])
        region[offset : offset + len(source)] = source
        if (qp, immediate) in self.corrupt:
            region[offset] ^= 0x10
        self.arrived[qp].append((source, bytes(source)))
        self.programs[self.qps[qp].dst].immediate(qp, immediate)

    def complete(self, qp: str) -> None:
        source, content = self.arrived[qp].popleft()
        assert bytes(source) == content, "memory changed under a write"
        self.programs[self.qps[qp].src].written(qp)

    def move(self) -> bool:
        moves = [(self.arrive, qp) for qp, writes in self.posted.items() if writes]
        moves += [(self.complete, qp) for qp, writes in self.arrived.items() if writes and qp != self.slow]
        if moves:
            act, qp = self.rng.choice(moves)
            act(qp)
        return bool(moves)

    def run(self) -> dict[int, list[StepReport]]:
        """Random interleaving until every program is done; the reports of every host."""
        reports: dict[int, list[StepReport]] = {host: [] for host in self.programs}
        while not all(program.done for program in self.programs.values()):
            host = self.rng.choice(list(self.programs))
            program = self.programs[host]
            for _ in range(self.rng.randrange(20)):
                program.advance(self.now_ns)
            while (report := program.poll_report()) is not None:
                reports[host].append(report)
            self.idle = 0 if self.move() else self.idle + 1
            if self.idle > 100 and self.arrived.get(self.slow):
                self.complete(self.slow)
            self.now_ns += 1_000
            assert self.now_ns < 100_000_000, "the job hangs"
        return reports


class End:
    """One host's side of the wire: writes are kept by reference, as the endpoint keeps them."""

    def __init__(self, wire: Wire, host: int) -> None:
        self.wire = wire
        self.host = host

    def region(self, qp: str) -> memoryview:
        return memoryview(self.wire.memory[self.host, qp])

    def post_write(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        assert self.wire.qps[qp].src == self.host
        self.wire.posted[qp].append((data, remote_offset, immediate))


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("extra", [0, 1, 1000])
def test_every_rank_ends_every_step_with_the_exact_sum(ranks, extra):
    hosts = [3 * rank for rank in range(ranks)]
    reports = Wire(plan_train(hosts, 4, 10_000, ranks + extra), seed=ranks).run()
    for host in hosts:
        assert [report.step for report in reports[host]] == [0, 1, 2, 3]
        assert [report.wrong_bytes for report in reports[host]] == [0] * 4
        assert all(before.end_ns <= after.begin_ns for before, after in pairwise(reports[host]))
    sent = sum(report.sent_bytes for host in hosts for report in reports[host])
    assert sent == 4 * 2 * (ranks - 1) * (ranks + extra)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_no_memory_changes_under_a_write_even_when_one_neighbour_acknowledges_late(ranks):
    reports = Wire(plan_train(range(ranks), 4, 0, 1000), slow="1>0" if ranks == 2 else "1>2").run()
    assert [report.wrong_bytes for host in reports.values() for report in host] == [0] * 4 * ranks


def test_a_corrupted_byte_is_counted_where_it_ends_up():
    job = plan_train([0, 1, 2], 2, 0, 300)
    wire = Wire(job)
    # Phase 3, the last of step 0: rank 2 gets a complete chunk that it does not pass on.
    wire.corrupt = {("1>2", 3)}
    reports = wire.run()
    assert [report.wrong_bytes for report in reports[2]] == [1, 0]
    assert [report.wrong_bytes for host in (0, 1) for report in reports[host]] == [0] * 4


def test_a_corrupted_contribution_spoils_one_byte_on_every_rank():
    wire = Wire(plan_train([0, 1, 2], 1, 0, 300))
    wire.corrupt = {("0>1", 0)}
    assert [report.wrong_bytes for reports in wire.run().values() for report in reports] == [1, 1, 1]


def test_qps_go_round_and_programs_touch_only_their_own():
    job = plan_train([4, 5, 9], 1, 0, 10)
    assert [(qp.id, qp.src, qp.dst) for qp in job.qps] == [("4>5", 4, 5), ("5>9", 5, 9), ("9>4", 9, 4)]
    assert {qp.id for qp in job.qps_of(5)} == {"4>5", "5>9"}
    assert job.rank_of(9) == 2
    for host, (program,) in job.programs.items():
        own = {qp.id for qp in job.qps if qp.src == host}
        assert {op[1] for op in program if op[0] in ("write", "drain")} == own


def test_a_step_never_uses_the_slots_of_the_step_before():
    def slots(step: int) -> set[int]:
        return {op[5] for op in Ring((0, 1, 2, 3), 4096).all_reduce(0, step) if op[0] == "write"}

    assert len(slots(0)) == 6
    assert not slots(0) & slots(1)
    assert slots(0) == slots(2)


@pytest.mark.parametrize(
    ("hosts", "steps", "size", "message"),
    [
        ([0], 1, 10, "at least 2 hosts"),
        ([0, 1, 0], 1, 10, "only once"),
        ([0, 1, 2], 1, 2, "2 bytes cannot be cut into 3 chunks"),
        ([0, 1], 0, 10, "at least 1 step"),
    ],
)
def test_impossible_trainings_are_refused(hosts, steps, size, message):
    with pytest.raises(ValueError, match=message):
        plan_train(hosts, steps, 0, size)
