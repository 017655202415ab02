"""Both ends of flows that arrive over time, and the operations of a program that drive them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mrc_testbed.hosts.arrivals import FIRST, FlowDone, IncomingFlows, OutgoingFlows
from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.operations import ProgramError
from mrc_testbed.hosts.program import Program
from mrc_testbed.hosts.program_io import FlowsReport, RankPrograms
from mrc_testbed.hosts.stream import LAST, Content, StreamError
from tests.unit.hosts.test_program import Memory

SIZE = 10
MS = 1_000_000


def outgoing(flows: list[tuple[int, int]], qps: int = 1, depth: int = 2) -> OutgoingFlows:
    contents = [(f"a/{number}", Content(7, f"a/{number}", SIZE)) for number in range(qps)]
    return OutgoingFlows(contents, SIZE, 2 * depth, depth, flows)


def incoming(sizes: list[int], slots: int = 4, qp: str = "a/0") -> IncomingFlows:
    region = memoryview(bytearray(SIZE * slots))
    return IncomingFlows(Content(7, qp, SIZE), region, SIZE, slots, PlacedBytes().take, 0, sizes)


def take(stream: IncomingFlows, immediate: int) -> None:
    assert list(stream.take(immediate, lambda: True)) == []


def sent(stream: OutgoingFlows, now_ns: int) -> list[tuple[str, int, int, int]]:
    return [(qp, len(data), offset, immediate) for qp, data, offset, immediate in stream.writes(now_ns)]


def test_a_flow_is_cut_into_messages_of_which_the_last_is_short() -> None:
    stream = outgoing([(5, 25)], depth=4)
    assert sent(stream, 4) == []
    assert stream.next_ns == 5
    assert sent(stream, 5) == [("a/0", 10, 0, FIRST), ("a/0", 10, 10, 1), ("a/0", 5, 20, 2)]
    assert stream.next_ns is None
    stream.complete(9, {"a/0": 0}.__getitem__)
    assert sent(stream, 9) == [("a/0", 0, 0, LAST | 3)], "nothing goes beside the last message of a flow"


def test_a_flow_ends_when_its_last_message_is_acknowledged_and_begins_when_it_arrives() -> None:
    stream = outgoing([(0, 25), (1, 10)])
    assert len(sent(stream, 3)) == 2
    stream.complete(20, {"a/0": 0}.__getitem__)
    assert sent(stream, 20) == [("a/0", 5, 20, 2), ("a/0", 10, 30, FIRST | 1)]
    stream.complete(30, {"a/0": 1}.__getitem__)
    assert stream.completed == [FlowDone(0, 30, 30)]
    assert sent(stream, 30) == []
    stream.complete(50, {"a/0": 0}.__getitem__)
    assert stream.completed == [FlowDone(0, 30, 30), FlowDone(1, 50, 49)], "waiting behind the first one counts"
    assert not stream.done
    assert sent(stream, 50) == [("a/0", 0, 0, LAST | 4)]
    stream.complete(60, {"a/0": 0}.__getitem__)
    assert stream.done


def test_a_flow_takes_the_lane_with_the_least_before_it() -> None:
    stream = outgoing([(0, 30), (0, 10), (0, 10), (9, 10)], qps=2, depth=1)
    assert [write[0] for write in sent(stream, 0)] == ["a/0", "a/1"]
    stream.complete(9, {"a/0": 1, "a/1": 0}.__getitem__)
    assert sent(stream, 9) == [("a/1", 10, 10, FIRST | 2)], "flows 1, 2 and 3 wait behind each other, 0 behind none"
    stream.complete(12, {"a/0": 1, "a/1": 0}.__getitem__)
    assert sent(stream, 12) == [("a/1", 10, 0, FIRST | 3)]


@pytest.mark.parametrize("qps", [1, 3])
def test_what_one_end_sends_the_other_takes_whatever_the_sizes(qps: int) -> None:
    dice = random.Random(3)
    flows = sorted((dice.randrange(1000), dice.choice([1, 9, 10, 11, 95])) for _ in range(200))
    sender = outgoing(flows, qps)
    ends = {f"a/{number}": incoming([size for _, size in flows], qp=f"a/{number}") for number in range(qps)}
    unwritten = dict.fromkeys(ends, 0)
    for now_ns in range(100_000):
        for qp, data, offset, immediate in sender.writes(now_ns):
            ends[qp]._region[offset : offset + len(data)] = data
            take(ends[qp], immediate)
            unwritten[qp] += 1
        for qp in unwritten:
            unwritten[qp] = max(0, unwritten[qp] - (dice.random() < 0.3))
        sender.complete(now_ns, unwritten.__getitem__)
        if sender.done:
            break
    assert sorted(done.number for done in sender.completed) == list(range(200))
    assert all(end.done and end._wrong == 0 for end in ends.values())
    assert all(done.end_ns - done.took_ns == flows[done.number][0] for done in sender.completed)


def test_wrong_bytes_are_counted() -> None:
    stream = incoming([15])
    stream._region[:] = bytes(len(stream._region))
    take(stream, FIRST)
    take(stream, 1)
    assert stream._wrong >= 14


@pytest.mark.parametrize(
    ("immediates", "message"),
    [
        ([1], "message 1 of a flow arrived, whose other end has 0 B left"),
        ([FIRST, 2], "message 2 of a flow arrived, whose other end has 20 B left"),
        ([FIRST, FIRST | 1], "flow 1 began, 20 B of the one before it missing"),
        ([FIRST | 2], "flow 2 began, 0 B of the one before it missing"),
        ([FIRST, LAST | 1], "the stream ended after 1 messages, 20 B of a flow missing"),
        ([FIRST | 1, LAST | 3], "the stream ended after 1 messages, 0 B of a flow missing"),
    ],
)
def test_a_message_that_is_not_due_is_an_error(immediates: list[int], message: str) -> None:
    stream = incoming([30, 10])
    for immediate in immediates[:-1]:
        take(stream, immediate)
    with pytest.raises(StreamError) as caught:
        take(stream, immediates[-1])
    assert str(caught.value) == message


def program(*tracks: list[list[Any]], memory: Memory) -> Program:
    made = Program(RankPrograms(0, 7, tracks), memory)
    made.start(0)
    return made


def test_a_program_sends_flows_over_several_qps_and_reports_them() -> None:
    operation = ["send_flows", ["a", "b"], 10, 8, 2, [[5 * MS, 20], [5 * MS, 10], [7 * MS, 10]]]
    made = program([operation], memory=(memory := Memory(a=400, b=400)))
    assert made.advance(0) == 5 * MS
    assert made.advance(5 * MS) == 7 * MS
    assert [write[0] for write in memory.writes] == ["a", "a", "b"]
    made.written("b")
    made.advance(6 * MS)
    assert made.poll_report() == FlowsReport(memory.peer("a"), [FlowDone(1, 6 * MS, MS)])
    made.advance(7 * MS)
    assert [write[0] for write in memory.writes] == ["a", "a", "b", "b"]
    for qp in ("a", "a", "b"):
        made.written(qp)
    made.advance(8 * MS)
    assert [write[0] for write in memory.writes[4:]] == ["a", "b"], "the last messages"
    for qp in ("a", "b"):
        made.written(qp)
    made.advance(9 * MS)
    assert made.done
    done = [FlowDone(0, 8 * MS, 3 * MS), FlowDone(2, 8 * MS, MS)]
    assert made.poll_report() == FlowsReport(memory.peer("a"), done)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (["send_flows", [], 10, 4, 1, [[0, 1]]], "qps must be a list of strings"),
        (["send_flows", ["c"], 10, 4, 1, [[0, 1]]], "unknown QP 'c'"),
        (["send_flows", ["a"], 10, 4, 1, []], "flows must be a list of [start_ns, bytes]"),
        (["send_flows", ["a"], 10, 4, 1, [[0, 0]]], "flows must be a list of [start_ns, bytes]"),
        (["send_flows", ["a"], 10, 4, 4, [[0, 1]]], "slots must be greater than depth"),
        (["receive_flows", "a", 10, 41, 2, [1]], "the slots end at byte 410, but the region has 400 bytes"),
        (["receive_flows", "a", 10, 4, 2, [0]], "sizes must be a list of integers of 1 or more"),
    ],
)
def test_a_mistake_in_flows_is_refused_when_they_are_loaded(operation: list[Any], message: str) -> None:
    with pytest.raises(ProgramError, match="track 0, operation 0") as caught:
        program([operation], memory=Memory(a=400))
    assert message in str(caught.value)
