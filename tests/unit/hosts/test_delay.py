"""The delay line over a list in place of the socket buffer."""

from __future__ import annotations

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.delay import MOST_READ, DelayLine
from mrc_testbed.hosts.udp import ARRIVAL, RxSocket

DELAY_NS = 1000


class Buffer(RxSocket):
    """Packets as the receiver gives them: the time of arrival is `delay_ns` after the stamp."""

    def __init__(self, delay_ns: int = DELAY_NS) -> None:
        self.unread = False
        self.waiting = []
        self.current = memoryview(bytearray(8))
        self.made = {id(self.current.obj)}
        self._delay_ns = delay_ns

    def put(self, stamp_ns: int, number: int) -> None:
        self.waiting.append((number, stamp_ns + self._delay_ns))

    def receive(self, now_ns: int):
        if not self.waiting:
            return None
        number, arrival_ns = self.waiting.pop(0)
        self.current[0] = number
        return self.current[:1], 0, 0, 0, 0, arrival_ns

    def swap(self, buffer: memoryview) -> memoryview:
        before, self.current = self.current, buffer
        self.made.add(id(buffer.obj))
        return before


def line_of(buffer: Buffer, delay_ns: int) -> DelayLine:
    return DelayLine(buffer, delay_ns)


def out(line: DelayLine, now_ns: int) -> list[tuple[int, int]]:
    """Number and arrival of all that is due."""
    found = []
    while (datagram := line.receive(now_ns)) is not None:
        found.append((datagram[0][0], datagram[ARRIVAL]))
    return found


def test_a_receiver_that_stopped_at_strangers_is_asked_again_at_once():
    """Seen by reading: None was taken for an empty socket, and what lay behind them waited for half of the delay."""
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    buffer.unread = True
    assert line.take_in(500), "there may be more"
    assert line.next_due_ns <= 500
    buffer.unread = False
    buffer.put(400, 1)
    assert not line.take_in(501)
    assert out(line, 1400) == [(1, 1400)]


def test_packets_come_out_each_when_it_is_due():
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    for stamp_ns, number in ((100, 1), (150, 2), (400, 3)):
        buffer.put(stamp_ns, number)
    assert not line.take_in(500)
    assert line.next_due_ns == 1100
    assert out(line, 1099) == []
    assert out(line, 1150) == [(1, 1100), (2, 1150)]
    assert line.next_due_ns == 1400
    assert out(line, 1402) == [(3, 1400)]


def test_a_packet_of_a_free_path_overtakes_one_whose_link_is_still_sending_it():
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    for stamp_ns, number in ((900, 1), (100, 2), (500, 3)):
        buffer.put(stamp_ns, number)
    line.take_in(50)
    assert line.next_due_ns == 1050, "something may come now that is due in a delay"
    assert out(line, 1100) == [(2, 1100)]
    assert out(line, 1900) == [(3, 1500), (1, 1900)]


def test_packets_of_the_same_time_keep_their_order():
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    for number in range(5):
        buffer.put(100, number)
    line.take_in(100)
    assert [number for number, _ in out(line, 1100)] == [0, 1, 2, 3, 4]


def test_an_empty_line_need_not_be_looked_at_before_the_delay_is_over():
    line = line_of(Buffer(), DELAY_NS)
    assert not line.take_in(5000)
    assert line.receive(5000) is None
    assert line.next_due_ns == 6000


def test_without_a_delay_an_empty_line_waits_for_the_socket_and_not_for_a_time():
    buffer = Buffer(0)
    line = line_of(buffer, 0)
    line.take_in(5000)
    assert line.next_due_ns == NEVER
    buffer.put(6000, 1)
    line.take_in(5100)
    assert line.next_due_ns == 6000


def test_buffers_are_used_again():
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    for number in range(100):
        now_ns = number * DELAY_NS
        buffer.put(now_ns, number)
        line.take_in(now_ns)
        assert out(line, now_ns + DELAY_NS) == [(number, now_ns + DELAY_NS)]
    assert len(buffer.made) == 2


def test_a_turn_reads_so_many_packets_and_says_that_there_are_more():
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    for _ in range(MOST_READ + 1):
        buffer.put(0, 1)
    assert line.take_in(10)
    assert line.next_due_ns == 10
    assert not line.take_in(10)


def test_a_turn_comes_with_the_last_packet_that_is_due_until_then():
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    for stamp_ns in (100, 300, 700):
        buffer.put(stamp_ns, 1)
    line.take_in(0)
    assert [line.last_due_ns(until_ns) for until_ns in (1050, 1400, 1699, 1700)] == [1050, 1300, 1300, 1700]


def test_a_host_at_rest_waits_for_its_socket_and_not_for_the_clock():
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    buffer.put(100, 1)
    line.take_in(500)
    assert not line.waits_for_socket, "a packet is under way"
    out(line, 1100)
    line.take_in(1200)
    assert not line.waits_for_socket, "one may have come since the look before this one"
    assert line.next_due_ns == 2200
    line.take_in(2200)
    assert line.waits_for_socket
    assert line.next_due_ns > 10**18
    line.take_in(2300)
    assert line.waits_for_socket, "a turn for another reason changes nothing"
    buffer.put(9000, 2)
    line.take_in(9010)
    assert not line.waits_for_socket
    assert line.next_due_ns == 10_000


def test_an_empty_socket_is_left_alone_for_half_of_the_delay():
    buffer = Buffer()
    line = line_of(buffer, DELAY_NS)
    buffer.put(0, 1)
    line.take_in(0)
    buffer.put(1, 2)
    line.take_in(DELAY_NS // 2 - 1)
    assert buffer.waiting
    assert line.next_due_ns == DELAY_NS
    line.take_in(DELAY_NS // 2)
    assert not buffer.waiting
    assert out(line, DELAY_NS + 1) == [(1, DELAY_NS), (2, DELAY_NS + 1)]
