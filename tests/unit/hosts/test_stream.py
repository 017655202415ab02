"""Both ends of a stream, and the tracks of a program that drive them."""

from __future__ import annotations

from typing import Any

import pytest

from mrc_testbed.hosts.blocks import PERIOD
from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.operations import ProgramError
from mrc_testbed.hosts.program import Program
from mrc_testbed.hosts.program_io import CompletedReport, IntervalReport, RankPrograms
from mrc_testbed.hosts.stream import GRAIN_NS, LAST, Content, Incoming, Outgoing, StreamError
from tests.unit.hosts.test_program import Memory

MS = 1_000_000


def outgoing(depth: int = 2, until_ns: int | None = None, messages: int = 0) -> Outgoing:
    return Outgoing(Content(7, "a", 10), 10, 4 * depth, depth, until_ns, messages)


def incoming(slots: int = 4, placed: PlacedBytes | None = None) -> tuple[Incoming, memoryview]:
    region = memoryview(bytearray(10 * slots))
    return Incoming(Content(7, "a", 10), region, 10, slots, (placed or PlacedBytes()).take, 0), region


def take(stream: Incoming, immediate: int) -> None:
    assert list(stream.take(immediate, lambda: True)) == [], "a short message is checked at one go"


def program(*tracks: list[list[Any]], memory: Memory | None = None) -> Program:
    made = Program(RankPrograms(0, 7, tracks), memory or Memory(a=400, b=400))
    made.start(0)
    return made


def test_messages_near_each_other_and_of_other_streams_differ() -> None:
    mine, others = Content(7, "a", 16), [Content(7, "b", 16), Content(8, "a", 16)]
    found = {bytes(mine.of(index, 16)) for index in range(1000)}
    assert len(found) == 1000
    assert not found & {bytes(other.of(index, 16)) for other in others for index in range(1000)}
    assert Content(7, "a", 16).of(123, 16) == mine.of(123, 16)


def test_a_sender_keeps_depth_messages_queued_and_no_more() -> None:
    stream = outgoing(depth=2)
    assert [(offset, immediate) for _, offset, immediate in stream.writes(0)] == [(0, 0), (10, 1)]
    assert list(stream.writes(5)) == []
    stream.complete(20, outstanding=1)
    assert [(offset, immediate) for _, offset, immediate in stream.writes(20)] == [(20, 2)]
    assert stream.completed == [(20, 20)]
    stream.complete(50, outstanding=0)
    assert stream.completed == [(20, 20), (50, 50), (50, 30)]


def test_slots_come_round() -> None:
    stream = outgoing(depth=1)
    offsets = []
    for now in range(6):
        stream.complete(now, 0)
        offsets += [offset for _, offset, _ in stream.writes(now)]
    assert offsets == [0, 10, 20, 30, 0, 10]


def test_a_sender_stops_at_its_time_and_says_how_many_it_sent() -> None:
    stream = outgoing(depth=2, until_ns=100)
    list(stream.writes(0))
    stream.complete(100, outstanding=0)
    ((data, offset, immediate),) = stream.writes(100)
    assert (len(data), offset, immediate) == (0, 0, LAST | 2)
    assert not stream.done
    stream.complete(120, outstanding=0)
    assert stream.done
    assert len(stream.completed) == 2, "the empty message at the end is not counted"


def test_a_sender_stops_after_its_messages() -> None:
    stream = outgoing(depth=8, messages=3)
    assert [immediate for _, _, immediate in stream.writes(0)] == [0, 1, 2, LAST | 3]


def test_a_receiver_counts_right_and_wrong_bytes() -> None:
    stream, region = incoming()
    region[0:10], region[10:20] = Content(7, "a", 10).of(0, 10), Content(7, "a", 10).of(1, 10)
    region[15] ^= 1
    take(stream, 0)
    take(stream, 1)
    (first,) = stream.intervals(GRAIN_NS)
    assert (first.messages, first.bytes_wrong) == (2, 1)
    assert list(stream.intervals(GRAIN_NS)) == []


def test_bytes_of_a_message_that_is_not_whole_count_in_the_stretch_in_which_they_arrived() -> None:
    placed = PlacedBytes()
    stream, _ = incoming(placed=placed)
    placed.take(GRAIN_NS)
    placed.note(4, GRAIN_NS - 1)
    placed.note(3, GRAIN_NS)  # of a packet that came before the daemon's next turn
    (first,) = stream.intervals(GRAIN_NS + 2)
    placed.note(3, GRAIN_NS + 5)
    take(stream, 0)
    (second,) = stream.intervals(2 * GRAIN_NS)
    assert [(one.bytes, one.messages) for one in (first, second)] == [(4, 0), (6, 1)]


def test_an_old_message_left_in_the_slot_is_wrong() -> None:
    stream, region = incoming(slots=2)
    content = Content(7, "a", 10)
    for index in range(3):
        if index < 2:
            region[10 * index : 10 * index + 10] = content.of(index, 10)
        take(stream, index)
    (interval,) = stream.intervals(GRAIN_NS)
    assert interval.bytes_wrong >= 8


def test_stretches_without_data_are_reported_too_and_the_last_ends_when_the_stream_does() -> None:
    stream, _ = incoming()
    assert [(row.begin_ns, row.bytes) for row in stream.intervals(2 * GRAIN_NS + 1)] == [(0, 0), (GRAIN_NS, 0)]
    take(stream, LAST)
    assert list(stream.intervals(2 * GRAIN_NS + 7)) == [(2 * GRAIN_NS, 2 * GRAIN_NS + 7, 0, 0, 0, True)]


@pytest.mark.parametrize("immediate", [1, LAST | 1])
def test_a_lost_message_cannot_pass(immediate: int) -> None:
    stream, _ = incoming()
    with pytest.raises(StreamError, match="message 1 arrived instead of 0"):
        take(stream, immediate)


def test_tracks_go_on_side_by_side_and_each_waits_for_its_own_qp() -> None:
    memory = Memory(a=400, b=400)
    made = program([["wait", "a", 0, 5], ["end", 1]], [["wait", "b", 0, 6], ["end", 2]], memory=memory)
    made.advance(0)
    made.immediate("b", 6)
    made.advance(1)
    assert made.poll_report().step == 2  # type: ignore[union-attr]
    assert made.poll_report() is None
    assert not made.done
    made.immediate("a", 5)
    made.advance(2)
    assert made.done


def test_a_program_waits_for_the_earliest_of_its_tracks() -> None:
    made = program([["compute", 500]], [["compute", 300]], [["wait", "a", 0, 1]])
    assert made.advance(0) == 300
    assert made.advance(300) == 500
    assert made.advance(500) is None


def test_an_early_immediate_does_not_start_a_program_early() -> None:
    made = Program(RankPrograms(0, 7, [[["wait", "a", 0, 0], ["end", 3]]]), Memory(a=400))
    made.start(1000)
    made.advance(0)
    made.immediate("a", 0)
    assert made.advance(1) == 1000
    assert made.poll_report() is None
    made.advance(1000)
    assert made.done


def test_send_begins_after_its_offset_and_reports_completions_in_batches() -> None:
    made = program([["send", "a", 10, 8, 2, 5 * MS, None, 4]], memory=(memory := Memory(a=400)))
    assert made.advance(0) == 5 * MS
    made.advance(5 * MS)
    assert len(memory.writes) == 2
    for now_ns in (6 * MS, 7 * MS):
        made.written("a")
        made.advance(now_ns)
    assert len(memory.writes) == 4
    assert made.poll_report() == CompletedReport("a", [(6 * MS, MS)])
    assert made.poll_report() is None, "the next ones when the grain is over"
    for _ in range(3):
        made.written("a")
        made.advance(8 * MS)
    assert made.poll_report() == CompletedReport("a", [(7 * MS, 2 * MS), (8 * MS, 2 * MS), (8 * MS, MS)])
    assert made.done


def test_receive_takes_all_that_came_before_the_daemon_may_acknowledge_it() -> None:
    made = program([["receive", "a", 10, 8, 2]], memory=(memory := Memory(a=400)))
    made.advance(0)
    for index in range(5):
        memory.region("a")[10 * index : 10 * index + 10] = Content(7, "a", 10).of(index, 10)
        memory.placed["a"].note(10, 1)
        made.immediate("a", index)
    made.immediate("a", LAST | 5)
    made.advance(3)
    assert made.done
    assert made.poll_report() == IntervalReport("a", (0, 3, 50, 5, 0, True))  # type: ignore[arg-type]


def test_a_long_message_is_checked_in_turns_until_the_next_one_is_there() -> None:
    size = 4 * PERIOD
    memory = Memory(a=2 * size)
    made = program([["receive", "a", size, 2, 1]], memory=memory)
    made.advance(0)
    content = Content(7, "a", size)
    for index in (0, 1):
        memory.region("a")[index * size : (index + 1) * size] = content.of(index, size)
    made.immediate("a", 0)
    assert made.advance(1) == 0, "more to do at once"
    made.immediate("a", 1)
    made.advance(2)
    # From now on the sender may write message 2 where message 0 was.
    memory.region("a")[:size] = content.of(2, size)
    for value in (2, LAST | 3):
        made.immediate("a", value)
    while not made.done:
        made.advance(3)
    report = made.poll_report()
    assert isinstance(report, IntervalReport)
    assert report.interval[3:] == (3, 0, True)


def test_receive_reports_at_its_time_though_nothing_comes() -> None:
    made = program([["receive", "a", 10, 8, 2]])
    assert made.advance(0) == GRAIN_NS
    made.advance(GRAIN_NS + 5)
    assert made.poll_report() == IntervalReport("a", (0, GRAIN_NS, 0, 0, 0, False))  # type: ignore[arg-type]


def test_a_message_out_of_order_ends_the_program() -> None:
    made = program([["receive", "a", 10, 8, 2]])
    made.immediate("a", 1)
    with pytest.raises(ProgramError, match="a: message 1 arrived instead of 0"):
        made.advance(0)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (["receive", "a", 10, 41, 2], "the slots end at byte 410, but the region has 400 bytes"),
        (["receive", "a", 0, 4, 2], "message_bytes must be an integer of 1 or more"),
        (["send", "a", 10, 4, 4, 0, None, 1], "slots must be greater than depth"),
        (["send", "a", 10, 4, 0, 0, None, 1], "depth must be an integer of 1 or more"),
        (["send", "a", 10, 4, 1, None, None, 1], "after_ns must be an integer of 0 or more"),
        (["send", "c", 10, 4, 1, 0, None, 1], "unknown QP 'c'"),
    ],
)
def test_a_mistake_in_a_stream_is_refused_when_it_is_loaded(operation: list[Any], message: str) -> None:
    with pytest.raises(ProgramError, match="track 1, operation 0") as caught:
        program([["wait", "a", 0, 1]], [operation])
    assert message in str(caught.value)


def test_a_track_is_a_list() -> None:
    with pytest.raises(ProgramError, match="track 0 must be a list of operations"):
        program({"send": 1})  # type: ignore[arg-type]
