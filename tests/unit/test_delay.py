"""The delay line over a list that stands for the socket buffer."""

from __future__ import annotations

from hosts.delay import DelayLine
from hosts.udp import ARRIVAL

DELAY_NS = 1000


class Buffer:
    """Packets as the receiver gives them: the time of arrival is `DELAY_NS` after the wire."""

    def __init__(self) -> None:
        self.waiting = []
        self.reads = 0

    def put(self, wire_ns: int, size: int) -> None:
        self.waiting.append((size, 0, 0, 0, 0, wire_ns + DELAY_NS))

    def receive(self, now_ns: int):
        self.reads += 1
        return self.waiting.pop(0) if self.waiting else None


def test_packets_come_out_in_order_each_when_it_is_due():
    buffer = Buffer()
    line = DelayLine(buffer.receive, DELAY_NS)
    buffer.put(100, 1)
    buffer.put(150, 2)
    buffer.put(400, 3)
    assert line.receive(500) is None
    assert line.next_due_ns == 1100
    assert [line.receive(1150)[0], line.receive(1150)[0], line.receive(1150)] == [1, 2, None]
    assert line.next_due_ns == 1400
    assert line.receive(1399) is None
    assert line.receive(1402)[ARRIVAL] == 1400


def test_an_empty_line_need_not_be_looked_at_before_the_delay_is_over():
    line = DelayLine(Buffer().receive, DELAY_NS)
    assert line.receive(5000) is None
    assert line.next_due_ns == 6000


def test_only_one_packet_is_read_ahead():
    buffer = Buffer()
    line = DelayLine(buffer.receive, DELAY_NS)
    for wire_ns in range(10):
        buffer.put(wire_ns, 1)
    for now_ns in range(20, 60, 10):
        assert line.receive(now_ns) is None
    assert buffer.reads == 1
    assert len(buffer.waiting) == 9
