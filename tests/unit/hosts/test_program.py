"""The interpreter alone: timing, waiting, checking, and every mistake that `load` must refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.blocks import PERIOD, Block, random_period, summed_period
from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.operations import PARAMETERS, REPEAT, TAGS, TOGETHER, ProgramError
from mrc_testbed.hosts.program import _OPERATIONS, SLICE_BYTES, Program
from mrc_testbed.hosts.program_io import RankPrograms, StepReport


class Memory:
    """A transport that keeps what was written and lets the test complete it."""

    def __init__(self, **regions: int) -> None:
        self.regions = {name: memoryview(bytearray(size)) for name, size in regions.items()}
        self.placed = {name: PlacedBytes() for name in regions}
        self.writes: list[tuple[str, bytes, int, int | None]] = []

    def region(self, qp: str) -> memoryview:
        return self.regions[qp]

    def peer(self, qp: str) -> str:
        return f"host-{qp}"

    def post_write(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        self.writes.append((qp, bytes(data), remote_offset, immediate))

    def take_placed(self, qp: str, mark_ns: int) -> int:
        return self.placed[qp].take(mark_ns)

    def complete(self, program: Program) -> None:
        for qp, *_ in self.writes:
            program.written(qp)


def make(operations: list[list[Any]], memory: Memory | None = None, rank: int = 0) -> Program:
    return Program(RankPrograms(rank, 7, [operations]), memory or Memory(a=64))


def settle(program: Program, now_ns: int) -> int | None:
    """Advance until the program waits for something that is not there at `now_ns`."""
    for _ in range(1000):
        at_ns = program.advance(now_ns)
        if at_ns is None or at_ns > now_ns:
            return at_ns
    raise AssertionError("the program never waits")


def report_of(program: Program) -> StepReport:
    report = program.poll_report()
    assert isinstance(report, StepReport)
    return report


def own(step: int, place: int, length: int, rank: int = 0) -> bytes:
    return bytes(Block(random_period(7, rank), length).at(step, place, length))


def test_every_operation_that_is_described_can_be_done() -> None:
    assert {*_OPERATIONS, REPEAT} == {*PARAMETERS, TOGETHER}


def test_begins_at_the_start_time_and_computes_for_the_time_given() -> None:
    program = make([["begin", 0], ["compute", 500], ["end", 0]])
    program.start(1000)
    assert settle(program, 0) == 1000
    assert settle(program, 1000) == 1500
    assert settle(program, 1499) == 1500
    assert settle(program, 1507) is None
    assert program.done
    assert report_of(program) == StepReport(0, 1000, 1507, 0, 0, {})
    assert program.poll_report() is None


def test_does_nothing_before_it_is_started() -> None:
    program = make([["end", 0]])
    program.immediate("a", 1)
    assert settle(program, 10**12) is None
    assert not program.done


def test_an_input_does_not_cut_a_computation_short() -> None:
    program = make([["compute", 500]])
    program.start(0)
    assert settle(program, 0) == 500
    program.immediate("a", 1)
    assert settle(program, 400) == 500


def test_immediates_may_come_early_and_each_is_used_once() -> None:
    program = make([["wait", "a", 2, 5], ["wait", "a", 2, 6]])
    program.immediate("a", 2 * TAGS + 5)
    program.start(0)
    assert settle(program, 0) is None
    assert not program.done
    program.immediate("a", 2 * TAGS + 6)
    settle(program, 1)
    assert program.done


def test_a_wrong_immediate_ends_the_program() -> None:
    program = make([["wait", "a", 0, 5]])
    program.immediate("a", 6)
    program.start(0)
    with pytest.raises(ProgramError, match="immediate 6 arrived on a instead of 5"):
        settle(program, 0)


def test_immediates_count_on_after_the_last_of_32_bits() -> None:
    memory = Memory(a=64)
    program = make([["signal", "a", (1 << 32) // TAGS + 1, 3]], memory)
    program.start(0)
    settle(program, 0)
    assert memory.writes == [("a", b"", 0, TAGS + 3)]


def test_a_put_is_cut_into_messages_and_the_last_one_speaks_for_all() -> None:
    memory = Memory(a=64)
    program = make([["begin", 1], ["put", "a", 1, 50, 10, 8, 4, 9], ["end", 1]], memory)
    program.start(0)
    settle(program, 0)
    data = own(1, 50, 10)
    assert memory.writes == [
        ("a", data[:4], 8, None),
        ("a", data[4:8], 12, None),
        ("a", data[8:], 16, TAGS + 9),
    ]
    assert report_of(program).sent_bytes == 10


def test_a_long_put_does_not_keep_the_sockets_waiting() -> None:
    memory = Memory(a=64)
    program = make([["put", "a", 0, 0, 1000, 0, 1, 0]], memory)
    program.start(0)
    turns = 0
    while program.advance(1) is not None:
        turns += 1
    assert len(memory.writes) == 1000
    assert turns > 10


def test_forward_sends_what_came() -> None:
    memory = Memory(a=64, b=64)
    memory.regions["a"][8:12] = b"abcd"
    program = make([["forward", "b", 0, "a", 8, 4, 20, 100, 1]], memory)
    program.start(0)
    settle(program, 0)
    assert memory.writes == [("b", b"abcd", 20, 1)]


def test_drain_waits_for_every_write_of_its_qp() -> None:
    memory = Memory(a=64, b=64)
    program = make([*(["signal", qp, 0, 0] for qp in "aab"), ["drain", "a"], ["end", 0]], memory)
    program.start(0)
    settle(program, 0)
    program.written("a")
    program.written("b")
    settle(program, 1)
    assert program.poll_report() is None
    program.written("a")
    settle(program, 2)
    assert report_of(program).end_ns == 2


def test_a_program_is_not_done_before_all_it_wrote_is_complete() -> None:
    program = make([["signal", "a", 0, 0], ["end", 0]])
    program.start(0)
    settle(program, 0)
    assert report_of(program).step == 0
    assert not program.done
    program.written("a")
    assert program.done


def test_xor_adds_ones_own_data_in_slices_and_check_knows_the_sum() -> None:
    size = 3 * SLICE_BYTES
    memory = Memory(a=size)
    memory.regions["a"][:] = own(5, 17, size, rank=1)
    operations = [["begin", 5], ["xor", "a", 0, size, 5, 17], ["check", "a", 0, size, 5, 17, [0, 1]], ["end", 5]]
    program = make(operations, memory)
    program.start(0)
    turns = 0
    while not program.done:
        program.advance(1)
        turns += 1
    assert turns >= 3
    assert report_of(program).wrong_bytes == 0


@pytest.mark.parametrize(
    ("step", "place", "ranks"), [(4, 17, [1]), (5, 18, [1]), (5, 17, [0]), (5, 17, [0, 1]), (5, 17 + 4096, [1])]
)
def test_data_of_another_step_place_or_rank_are_wrong_and_counted_exactly(
    step: int, place: int, ranks: list[int]
) -> None:
    memory = Memory(a=1000)
    memory.regions["a"][:] = own(5, 17, 1000, rank=1)
    program = make([["begin", 5], ["check", "a", 0, 1000, step, place, ranks], ["end", 5]], memory)
    program.start(0)
    settle(program, 0)
    right = Block(summed_period(7, tuple(ranks)), 1000).at(step, place, 1000)
    differing = sum(a != b for a, b in zip(right, memory.regions["a"], strict=True))
    assert differing > 900
    assert report_of(program).wrong_bytes == differing


def test_take_finds_its_immediate_behind_others() -> None:
    program = make([["begin", 0], ["take", "a", 0, 6], ["compute", 5], ["take", "a", 0, 5], ["end", 0]])
    program.start(0)
    assert settle(program, 0) is None
    program.immediate("a", 5)
    assert settle(program, 10) is None
    program.immediate("a", 6)
    assert settle(program, 20) == 25
    assert settle(program, 25) is None
    assert report_of(program) == StepReport(0, 0, 25, 0, 0, {"host-a": 20})


def test_a_branch_goes_on_when_a_later_one_has_set_its_mark() -> None:
    branches = [[["until", 3], ["compute", 10]], [["compute", 100], ["mark", 3], ["compute", 1]]]
    turn = [["begin", 0], ["together", *branches], ["end", 0]]
    program = make([["repeat", 2, 1, turn]])
    program.start(0)
    assert settle(program, 0) == 100
    assert settle(program, 100) == 101
    assert settle(program, 101) == 110
    assert settle(program, 110) == 210
    assert settle(program, 210) == 211
    assert settle(program, 220) is None
    assert (report_of(program).end_ns, report_of(program).end_ns) == (110, 220)


def test_waiting_is_put_down_to_the_peer_and_to_the_step() -> None:
    waits = [["wait", "a", 0, 0], ["wait", "b", 0, 0], ["wait", "a", 0, 1]]
    program = make([["begin", 0], *waits, ["end", 0], ["begin", 1], ["end", 1]], Memory(a=64, b=64))
    program.start(0)
    settle(program, 0)
    for now_ns, qp, value in ((100, "a", 0), (130, "b", 0), (135, "a", 1)):
        program.immediate(qp, value)
        settle(program, now_ns)
    assert report_of(program).waits == {"host-a": 105, "host-b": 30}
    assert report_of(program).waits == {}


def test_a_repetition_counts_steps_on() -> None:
    memory = Memory(a=64)
    body = [["begin", 0], ["put", "a", 0, 0, 4, 0, 4, 1], ["end", 0], ["begin", 1], ["end", 1]]
    program = make([["repeat", 3, 2, body], ["begin", 6], ["end", 6]], memory)
    program.start(0)
    settle(program, 0)
    memory.complete(program)
    assert program.done
    assert [write[1:] for write in memory.writes] == [(own(step, 0, 4), 0, step * TAGS + 1) for step in (0, 2, 4)]
    assert [report_of(program).step for _ in range(7)] == list(range(7))


def test_branches_begin_together_and_the_step_ends_with_the_last() -> None:
    branches = [[["compute", 300]], [["wait", "a", 1, 0], ["compute", 100]], [["signal", "a", 1, 0]]]
    memory = Memory(a=64)
    body = [["begin", 1], ["together", *branches], ["end", 1]]
    program = make([["repeat", 2, 1, body]], memory)
    program.start(0)
    assert settle(program, 0) == 300
    assert len(memory.writes) == 1
    program.immediate("a", TAGS)
    assert settle(program, 250) == 300
    assert settle(program, 300) == 350
    assert settle(program, 350) == 650
    report = report_of(program)
    assert (report.end_ns, report.waits) == (350, {"host-a": 250})
    program.immediate("a", 2 * TAGS)
    assert settle(program, 700) == 800
    settle(program, 800)
    memory.complete(program)
    assert program.done
    assert report_of(program).step == 2


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20), st.integers(1, 5000))
def test_a_block_repeats_after_its_period_and_never_ends(place: int, step: int, length: int) -> None:
    block = Block(random_period(3, "x"), length)
    found = block.at(step, place, length)
    assert len(found) == length
    assert found == block.at(step, place + PERIOD, length)
    assert block.wrong_bytes(found, step, place) == 0
    spoiled = bytearray(found)
    spoiled[length // 2] ^= 1
    assert block.wrong_bytes(memoryview(spoiled), step, place) == 1


def test_the_sum_is_the_xor_of_all_ranks() -> None:
    blocks = [random_period(3, rank) for rank in range(3)]
    assert summed_period(3, (0, 1, 2)) == bytes(a ^ b ^ c for a, b, c in zip(*blocks, strict=True))
    assert len(set(blocks)) == 3


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (["jump", 1], "unknown operation; known operations: begin, "),
        (["begin"], "takes 1 arguments: step"),
        (["begin", -1], "step must be an integer of 0 or more"),
        (["begin", 1.5], "step must be an integer of 0 or more"),
        (["begin", None], "step must be an integer of 0 or more"),
        (["wait", 1, 1, 0], "qp must be a string"),
        (["wait", "a", 1, TAGS], "tag must be less than 4096"),
        (["take", "a", 1, TAGS], "tag must be less than 4096"),
        (["mark", -1], "number must be an integer of 0 or more"),
        (["until"], "takes 1 arguments: number"),
        (["wait", "nowhere", 1, 0], "unknown QP 'nowhere'"),
        (["drain", "nowhere"], "unknown QP 'nowhere'"),
        (["put", "a", 0, 0, 4, 0, 0, 0], "message_bytes must be an integer of 1 or more"),
        (["forward", "a", 0, "b", 0, 4, 0, 4, 0], "unknown QP 'b'"),
        (["forward", "a", 0, "a", 61, 4, 0, 4, 0], "the operation ends at byte 65, but the region has 64 bytes"),
        (["xor", "a", 60, 5, 0, 0], "the operation ends at byte 65, but the region has 64 bytes"),
        (["check", "a", 60, 5, 0, 0, [0]], "the operation ends at byte 65, but the region has 64 bytes"),
        (["check", "a", 0, 5, 0, 0, []], "ranks must be a list of integers of 0 or more"),
        (["check", "a", 0, 5, 0, 0, [-1]], "ranks must be a list of integers of 0 or more"),
        (["repeat", 2, 2, [["repeat", 2, 2, []]]], "repeat must not contain another repeat"),
        (["repeat", 2, 2, [["together", [["repeat", 2, 2, []]]]]], "repeat must not contain another repeat"),
        (["repeat", 2, 0, []], "every must be an integer of 1 or more"),
        (["repeat", 2, 2, 7], "must be a list of operations"),
        (["together", [["drain", "b"]]], "branch 0, operation 0 ['drain', 'b']: unknown QP 'b'"),
        (["together", 7], "branch 0 must be a list of operations"),
        ([], "must be a list of its name and its arguments"),
        (7, "must be a list of its name and its arguments"),
        ([["begin"], 0], "must be a list of its name and its arguments"),
    ],
)
def test_a_mistake_in_a_program_is_refused_when_it_is_loaded(operation: Any, message: str) -> None:
    with pytest.raises(ProgramError, match="operation 1") as caught:
        make([["end", 0], operation])
    assert message in str(caught.value)
