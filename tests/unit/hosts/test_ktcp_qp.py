"""A QP over kernel TCP without a kernel: what its frames do, its stalls, and who dials from where."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common.ecmp import hash_of_ports, next_hop
from mrc_testbed.hosts.common.errors import PeerAttributeError, QpStateError
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, StallEnded, WriteCompleted
from mrc_testbed.hosts.common.qpstate import QpInput
from mrc_testbed.hosts.common.stalls import StallWatch
from mrc_testbed.hosts.ktcp.attributes import TcpQpAttributes
from mrc_testbed.hosts.ktcp.counters import TcpCounters, packets_of, summed
from mrc_testbed.hosts.ktcp.dialling import way_of
from mrc_testbed.hosts.ktcp.frames import FrameHeader, FrameRefused, TcpFrameKind
from mrc_testbed.hosts.ktcp.kernel import TcpInfo
from mrc_testbed.hosts.ktcp.qp import TcpQp

MS = 1_000_000
LEAST = 80 * MS
QPN, PEER = 16, 3
INFO = TcpInfo(40 * MS, 0, 0, 0, 0, 0, 0, 0, 0)


class Wire:
    """In place of a connection: what was queued, and what the kernel would say."""

    def __init__(self) -> None:
        self.queued: list[FrameHeader] = []
        self.told = INFO

    def queue(self, header: FrameHeader, payload: memoryview = memoryview(b"")) -> None:  # noqa: B008
        assert header.length == len(payload)
        self.queued.append(header)

    def flush(self) -> bool:
        return True

    def info(self) -> TcpInfo:
        return self.told


class Stage:
    """A QP in RTS with a region of 100 bytes, and its connection."""

    def __init__(self) -> None:
        self.events: deque[Any] = deque()
        self.counters = TcpCounters()
        watch = StallWatch(QPN, PEER, LEAST, self.events)
        self.qp = TcpQp(PEER, TcpQpAttributes(QPN, 77, 100), watch, self.events, self.counters)
        self.qp.learn(TcpQpAttributes(20, 88, 1000))
        self.wire = Wire()

    def connected(self) -> Stage:
        self.qp.attach(self.wire, None)  # type: ignore[arg-type]
        return self

    def post(self, size: int = 10, wr_id: int = 1, immediate: int | None = None) -> None:
        self.qp.post(memoryview(bytes(size)), 0, wr_id, immediate)

    def take(self, kind: TcpFrameKind, now_ns: int = 0, **fields: int) -> None:
        self.qp.take(FrameHeader(kind, **fields), now_ns)


@pytest.fixture
def stage() -> Stage:
    return Stage().connected()


def test_what_was_posted_before_there_is_a_connection_goes_behind_its_hello() -> None:
    stage = Stage()
    stage.post(5)
    stage.post(0, immediate=9)
    hello = FrameHeader(TcpFrameKind.HELLO, address=88, number=20)
    stage.qp.attach(stage.wire, hello)  # type: ignore[arg-type]
    write, signal = stage.wire.queued[1:]
    assert stage.wire.queued[0] == hello
    assert (write.kind, write.length) == (TcpFrameKind.WRITE, 5)
    assert (signal.kind, signal.length, signal.number) == (TcpFrameKind.WRITE_IMMEDIATE, 0, 9)


def test_writes_that_came_are_completed_together_at_the_next_flush(stage: Stage) -> None:
    stage.take(TcpFrameKind.WRITE, address=1, length=9)
    stage.take(TcpFrameKind.WRITE_IMMEDIATE, address=90, length=10, number=7)
    assert list(stage.events) == [ImmediateDelivered(QPN, 7, 0)]
    stage.qp.flush(0)
    stage.qp.flush(0)
    assert stage.wire.queued == [FrameHeader(TcpFrameKind.COMPLETED, number=2)]


def test_completions_come_in_the_order_of_the_writes(stage: Stage) -> None:
    for wr_id in (5, 6, 7):
        stage.post(wr_id=wr_id)
    stage.take(TcpFrameKind.COMPLETED, number=2)
    assert list(stage.events) == [WriteCompleted(QPN, 5), WriteCompleted(QPN, 6)]
    assert stage.qp.outstanding
    stage.take(TcpFrameKind.COMPLETED, number=1)
    assert not stage.qp.outstanding
    assert (stage.counters.messages_posted, stage.counters.messages_completed) == (3, 3)


@pytest.mark.parametrize(
    ("kind", "fields", "word"),
    [
        (TcpFrameKind.COMPLETED, {"number": 2}, "2 writes completed of 1"),
        (TcpFrameKind.HELLO, {}, "HELLO in the middle"),
    ],
)
def test_a_peer_that_breaks_the_rules_is_refused(
    stage: Stage, kind: TcpFrameKind, fields: dict[str, int], word: str
) -> None:
    stage.post()
    with pytest.raises(FrameRefused, match=word):
        stage.take(kind, **fields)


@given(st.integers(0, 1 << 64), st.integers(0, 1 << 30))
def test_a_payload_has_a_place_only_inside_of_the_region(address: int, length: int) -> None:
    qp = Stage().qp
    if address + length <= 100:
        assert len(qp.place(FrameHeader(TcpFrameKind.WRITE, address, length))) == length
    else:
        with pytest.raises(FrameRefused, match="of a region of 100 bytes"):
            qp.place(FrameHeader(TcpFrameKind.WRITE, address, length))


def test_a_probe_is_answered_and_an_answer_is_remembered(stage: Stage) -> None:
    stage.take(TcpFrameKind.PROBE)
    assert stage.wire.queued == [FrameHeader(TcpFrameKind.PROBED)]
    assert not stage.qp.probed
    stage.take(TcpFrameKind.PROBED)
    assert stage.qp.probed


def test_a_failed_qp_takes_nothing_and_says_why_once(stage: Stage) -> None:
    stage.post()
    stage.qp.fail("Connection timed out")
    assert list(stage.events) == [QpError(QPN, PEER, "Connection timed out")]
    with pytest.raises(QpStateError):
        stage.post()
    stage.qp.step(QpInput.RESET)
    stage.qp.reset(TcpQpAttributes(QPN, 78, 100))
    with pytest.raises(QpStateError):
        stage.post()


# --- stalls ---


def acknowledged(stage: Stage, count: int, ago_ns: int = 0) -> None:
    stage.wire.told = stage.wire.told._replace(bytes_acked=count, last_ack_ns=ago_ns)


def test_bytes_that_the_kernel_saw_acknowledged_are_progress(stage: Stage) -> None:
    stage.post(1000)
    stage.qp.flush(0)
    for turn in range(1, 10):
        acknowledged(stage, turn * 100)
        stage.qp.look_for_progress(turn * LEAST)
        assert not stage.qp.watch.stalled(turn * LEAST + MS)
    stage.take(TcpFrameKind.COMPLETED, 10 * LEAST, number=1)
    assert list(stage.events) == [WriteCompleted(QPN, 1)]


def test_a_silence_is_a_stall_until_the_ack_that_ended_it(stage: Stage) -> None:
    acknowledged(stage, 40)
    stage.post(1000)
    stage.qp.flush(MS)
    stage.qp.look_for_progress(3000 * MS)
    assert stage.qp.watch.stalled(3000 * MS)
    acknowledged(stage, 41, ago_ns=8 * MS)
    stage.qp.look_for_progress(3010 * MS)
    assert list(stage.events) == [StallEnded(QPN, PEER, MS, 3002 * MS)]


def test_nothing_outstanding_is_no_stall(stage: Stage) -> None:
    stage.qp.flush(0)
    stage.post()
    stage.qp.flush(0)
    stage.take(TcpFrameKind.COMPLETED, MS, number=1)
    stage.qp.look_for_progress(5000 * MS)
    assert not stage.qp.watch.stalled(5000 * MS)
    stage.post()
    stage.qp.flush(6000 * MS)
    assert not stage.qp.watch.stalled(6000 * MS + LEAST)


# --- attributes, ways, counters ---


@given(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 40))
def test_attributes_are_read_as_they_were_written(qpn: int, key: int, size: int) -> None:
    attributes = TcpQpAttributes(qpn, key, size)
    assert TcpQpAttributes.from_json(attributes.as_json()) == attributes


@pytest.mark.parametrize("wrong", [{"qpn": -1}, {"key": "7"}, {"region_bytes": None}])
def test_impossible_attributes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PeerAttributeError):
        TcpQpAttributes.from_json({"qpn": 1, "key": 2, "region_bytes": 3} | wrong)


OWN = {0: "fd00:1:0::1", 1: "fd00:1:1::1"}
THEIRS = {1: "fd00:1:1:1::1", 0: "fd00:1:0:1::1"}


def test_connections_take_turns_on_the_planes_and_keep_their_ports() -> None:
    ways = [way_of(7, (0, 4), ordinal, OWN, THEIRS) for ordinal in range(4)]
    assert [way.source for way in ways] == [OWN[0], OWN[1], OWN[0], OWN[1]]
    assert [way.destination for way in ways] == [THEIRS[0], THEIRS[1], THEIRS[0], THEIRS[1]]
    assert ways == [way_of(7, (0, 4), ordinal, OWN, THEIRS) for ordinal in range(4)]
    assert {way.source_port for way in ways} != {way_of(8, (0, 4), n, OWN, THEIRS).source_port for n in range(4)}
    assert all(0xC000 <= way.source_port <= 0xFFFF for way in ways)


def test_connections_can_be_hashed_to_the_planes() -> None:
    ways = [way_of(7, (0, 4), ordinal, OWN, THEIRS, hash_seed=3) for ordinal in range(64)]
    found = [next_hop(hash_of_ports(6, (way.source_port, 4791), 3), 2) for way in ways]
    assert [way.source for way in ways] == [OWN[plane] for plane in found]
    assert {way.source for way in ways} == set(OWN.values())


def test_hosts_without_a_common_plane_have_no_way() -> None:
    with pytest.raises(ValueError, match="share no plane"):
        way_of(7, (0, 4), 0, {0: "::1"}, {1: "::2"})


def test_counters_are_those_of_all_connections_and_a_count_that_one_kernel_lacks_is_left_out() -> None:
    first = INFO._replace(data_sent=10, retransmitted=2, bytes_sent=900, timeouts=1)
    second = INFO._replace(data_sent=5, bytes_received=70, timeouts=3)
    told = summed(TcpCounters(dials=2), [first, second])
    assert (told["data_sent"], told["retransmitted"], told["bytes_sent"], told["bytes_delivered"]) == (15, 2, 900, 70)
    assert (told["timeouts"], told["dials"], told["lost_retransmitted"]) == (4, 2, 2)
    assert "timeouts" not in summed(TcpCounters(), [first, second._replace(timeouts=None)])
    assert packets_of(second, packets_of(first, None)) == (13, 2)
