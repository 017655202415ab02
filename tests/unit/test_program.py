"""The interpreter alone: timing, waiting, checking, and every mistake that `load` must refuse."""

from __future__ import annotations

from typing import Any

import pytest

from hosts.blocks import Rotating, base_block, reduced_block
from hosts.program import INPUT, SLICE_BYTES, Job, Program, ProgramError


class Memory:
    """A transport that keeps what was written and lets the test complete it."""

    def __init__(self, **regions: int) -> None:
        self.regions = {name: memoryview(bytearray(size)) for name, size in regions.items()}
        self.writes: list[tuple[str, bytes, int, int | None]] = []

    def region(self, qp: str) -> memoryview:
        return self.regions[qp]

    def post_write(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        self.writes.append((qp, bytes(data), remote_offset, immediate))


def make(
    operations: list[list[Any]], memory: Memory | None = None, rank: int = 0, ranks: int = 1, **sizes: int
) -> Program:
    return Program(Job(rank, ranks, sizes, 7, [operations]), memory or Memory(a=64))


def settle(program: Program, now_ns: int) -> int | None:
    """Advance until the program waits for something that is not there at `now_ns`."""
    for _ in range(1000):
        at_ns = program.advance(now_ns)
        if at_ns is None or at_ns > now_ns:
            return at_ns
    raise AssertionError("the program never waits")


def test_begins_at_the_start_time_and_computes_for_the_time_given():
    program = make([["begin", 0], ["compute", 500], ["end", 0]])
    program.start(1000)
    assert settle(program, 0) == 1000
    assert settle(program, 1000) == 1500
    assert settle(program, 1499) == 1500
    assert settle(program, 1507) is None
    assert program.done
    report = program.poll_report()
    assert report is not None
    assert (report.begin_ns, report.end_ns, report.sent_bytes, report.wrong_bytes) == (1000, 1507, 0, 0)
    assert program.poll_report() is None


def test_does_nothing_before_it_is_started():
    program = make([["end", 0]])
    program.immediate("a", 1)
    assert settle(program, 10**12) is None
    assert not program.done


def test_an_input_does_not_cut_a_computation_short():
    program = make([["compute", 500]])
    program.start(0)
    assert settle(program, 0) == 500
    program.immediate("a", 1)
    assert settle(program, 400) == 500


def test_immediates_may_come_early_and_each_is_used_once():
    program = make([["wait", "a", 5], ["wait", "a", 6]])
    program.immediate("a", 5)
    program.start(0)
    assert settle(program, 0) is None
    assert not program.done
    program.immediate("a", 6)
    settle(program, 1)
    assert program.done


def test_a_wrong_immediate_ends_the_program():
    program = make([["wait", "a", 5]])
    program.immediate("a", 6)
    program.start(0)
    with pytest.raises(ProgramError, match="immediate 6 arrived on a where 5 was due"):
        settle(program, 0)


def test_drain_waits_for_every_write_of_its_qp():
    memory = Memory(a=64, b=64)
    write = ["x", 0, 4, 8, None]
    program = make(
        [["write", "a", *write], ["write", "a", *write], ["write", "b", *write], ["drain", "a"]], memory, x=4
    )
    program.start(0)
    settle(program, 0)
    program.written("a")
    program.written("b")
    settle(program, 1)
    assert not program.done
    program.written("a")
    settle(program, 2)
    assert program.done
    assert memory.writes == [("a", bytes(4), 8, None), ("a", bytes(4), 8, None), ("b", bytes(4), 8, None)]


def test_long_work_is_done_in_slices():
    program = make([["xor", "x", 0, "y", 0, 3 * SLICE_BYTES]], x=3 * SLICE_BYTES, y=3 * SLICE_BYTES)
    program.start(0)
    turns = 0
    while not program.done:
        program.advance(1)
        turns += 1
    assert turns >= 3


def test_input_result_and_check_are_those_of_the_step():
    program = make(
        [["begin", 3], ["copy", "out", 0, INPUT, 0, 1000], ["check", "out", 3], ["end", 3]], input=1000, out=1000
    )
    program.start(0)
    settle(program, 0)
    assert program.poll_report().wrong_bytes == 0


def test_the_data_of_another_step_are_wrong_and_counted_exactly():
    program = make(
        [["begin", 3], ["copy", "out", 0, INPUT, 0, 1000], ["check", "out", 4], ["end", 4]], input=1000, out=1000
    )
    program.start(0)
    settle(program, 0)
    base = base_block(7, 0, 1000)
    differing = sum(a != b for a, b in zip(Rotating(base).at(3), Rotating(base).at(4), strict=True))
    assert differing > 900
    assert program.poll_report().wrong_bytes == differing


@pytest.mark.parametrize("size", [1, 2, 8209, 2 * 8209, 1 << 16])
def test_no_two_of_many_steps_share_a_rotation(size):
    block = base_block(1, 0, size) if size > 255 else bytes(range(size))
    steps = min(size, 40)
    assert len({bytes(Rotating(block).at(step)) for step in range(steps)}) == steps


def test_the_reduced_block_is_the_xor_of_all_ranks():
    blocks = [base_block(3, rank, 100) for rank in range(3)]
    assert reduced_block(3, 3, 100) == bytes(a ^ b ^ c for a, b, c in zip(*blocks, strict=True))
    assert len(set(blocks)) == 3


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (["jump", 1], "unknown; there are begin, "),
        (["begin"], "takes 1 arguments: step"),
        (["begin", -1], "step must be an integer of 0 or more"),
        (["begin", 1.5], "step must be an integer of 0 or more"),
        (["begin", None], "step must be an integer of 0 or more"),
        (["wait", 1, 1], "qp must be a string"),
        (["wait", "nowhere", 1], "there is no buffer or QP 'region:nowhere'"),
        (["drain", "nowhere"], "there is no buffer or QP 'region:nowhere'"),
        (["write", "a", "x", 0, 11, 0, None], "x holds 10 bytes, the operation reaches to 11"),
        (["write", "a", "nothing", 0, 1, 0, None], "there is no buffer or QP 'nothing'"),
        (["xor", "x", 0, "region:a", 60, 5], "region:a holds 64 bytes, the operation reaches to 65"),
        (["check", "x", 0], "x holds 10 bytes, input another number"),
        ([], "not enough values"),
        (7, "cannot unpack"),
        ([["begin"], 0], "unhashable"),
    ],
)
def test_a_mistake_in_a_program_is_refused_when_it_is_loaded(operation, message):
    with pytest.raises(ProgramError, match="operation 1 ") as caught:
        make([["end", 0], operation], x=10, input=12)
    assert message in str(caught.value)
