"""Traces of flows as text, and what is reckoned of flows that arrive over time."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.workloads import trace
from mrc_testbed.testbed.workloads.arrivals import Arrival, PairArrivals, alone_ns, drained_ns, most_sending
from mrc_testbed.testbed.workloads.estimate import wire_ns
from mrc_testbed.testbed.workloads.trace import TraceMistake, TraceRow, read_trace
from mrc_testbed.topos.families.clos2 import clos2_shape

HEAD = "start_s,src,dst,bytes\n"
MS = 1_000_000
SHAPE = clos2_shape(planes=2, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=10_000_000, rtt_ns=10 * MS)
ANSWER = 154


def test_flows_are_ordered_by_begin_and_keep_their_lines() -> None:
    text = "# of a test\n\nbytes, name ,dst,src,start_s\r\n5,,h1,h0,2.5\n7,big-one,h2,h0,1e-3\n6,,h2,h1,2.5\n"
    assert read_trace(text) == (
        TraceRow(0.001, "h0", "h2", 7, "big-one", 5),
        TraceRow(2.5, "h0", "h1", 5, "", 4),
        TraceRow(2.5, "h1", "h2", 6, "", 6),
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the column 'start_s' is missing; the first line must name the columns"),
        ("0,h0,h1,5\n", 1, "unknown column '0'; the first line must name the columns, such as start_s,src,dst,bytes"),
        ("start_s,src,dst\n0,h0,h1\n", 1, "the column 'bytes' is missing"),
        ("start_s,src,dst,bytes,src\n", 1, "the column 'src' is there twice"),
        (HEAD, 1, "has no flows; write a line for each, such as 0.01,h0,h4,65536"),
        (f"{HEAD}0,h0,h1\n", 2, "has 3 cells, and the first line names 4 columns"),
        (f"{HEAD}0,,h1,5\n", 2, "src is empty"),
        (f"{HEAD}0,h0,h0,5\n", 2, "h0 cannot send to itself"),
        (f"{HEAD}0,h0,h1,5\n\n1ms,h0,h1,5\n", 4, "start_s is '1ms', and must be a number of seconds from 0 to 1000000"),
        (f"{HEAD}-1,h0,h1,5\n", 2, "start_s is '-1'"),
        (f"{HEAD}1e999,h0,h1,5\n", 2, "start_s is '1e999'"),
        (f"{HEAD}nan,h0,h1,5\n", 2, "start_s is 'nan'"),
        (f"{HEAD}0,h0,h1,4KiB\n", 2, "bytes is '4KiB', and must be a whole number from 1 to 1099511627776"),
        (f"{HEAD}0,h0,h1,0\n", 2, "bytes is '0'"),
        (f"{HEAD}0,h0,h1,1.5\n", 2, "bytes is '1.5'"),
        (f"{HEAD}0,h0,h1,{10**15}\n", 2, "bytes is '1000000000000000'"),
        (f"{HEAD}0,h0,h1,٣\n", 2, "bytes is '٣'"),
    ],
)
def test_a_mistake_has_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(TraceMistake) as caught:
        read_trace(text)
    assert caught.value.line == line
    assert str(caught.value).startswith(message)


def test_a_trace_that_never_ends_is_refused_before_it_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST_FLOWS", 3)
    with pytest.raises(TraceMistake, match="more than 3 flows; cut the trace") as caught:
        read_trace(HEAD + "0,h0,h1,5\n" * 5)
    assert caught.value.line == 5


def test_a_flow_alone_takes_t_its_packets_a_packet_a_link_and_its_acknowledgement() -> None:
    packet_ns, answer_ns = (size * 8e9 / 10e6 for size in (SHAPE.wire_bytes, ANSWER))
    far = 10 * MS + (4 + 3) * packet_ns + 4 * answer_ns
    near = 10 * MS + (4 + 1) * packet_ns + 2 * answer_ns
    size = 8 * SHAPE.payload_bytes
    assert alone_ns(SHAPE, 0, 2, size, ANSWER) == pytest.approx(far)
    assert alone_ns(SHAPE, 0, 1, size, ANSWER) == pytest.approx(near)


def test_what_waits_goes_on_at_line_rate() -> None:
    size = 100 * SHAPE.payload_bytes
    one_ns = wire_ns(SHAPE, size)
    flows = [Arrival(0, size), Arrival(0, size), Arrival(round(10 * one_ns), size)]
    assert drained_ns(SHAPE, [PairArrivals(0, 1, flows)]) == pytest.approx(11 * one_ns)
    at_once = [PairArrivals(0, 2, flows[:2]), PairArrivals(1, 2, flows[:2])]
    assert drained_ns(SHAPE, at_once) == pytest.approx(4 * one_ns), "at the receiver"


def test_slow_links_between_switches_count_too() -> None:
    slow = clos2_shape(planes=2, t0_groups=2, t1=1, hosts_per_t0=2, port_rate_bps=10_000_000, rtt_ns=10 * MS)
    size = 100 * slow.payload_bytes
    pairs = [PairArrivals(src, src + 2, [Arrival(5 * MS, size)]) for src in (0, 1)]
    assert drained_ns(slow, pairs) == pytest.approx(5 * MS + 2 * wire_ns(slow, size))
    assert drained_ns(SHAPE, pairs) == pytest.approx(5 * MS + wire_ns(SHAPE, size))


def test_the_busiest_stretch_says_how_many_hosts_send() -> None:
    size = 100 * SHAPE.payload_bytes
    one_ns = round(wire_ns(SHAPE, size))
    pairs = [
        PairArrivals(0, 2, [Arrival(0, size), Arrival(40 * one_ns, size)]),
        PairArrivals(1, 2, [Arrival(0, size)]),
        PairArrivals(3, 2, [Arrival(one_ns, size)]),
    ]
    assert most_sending(SHAPE, pairs, one_ns) == pytest.approx(2, rel=1e-3)
    assert most_sending(SHAPE, pairs, 10 * one_ns) == pytest.approx(0.3, rel=1e-3)


def test_the_busiest_stretch_of_very_long_flows_is_found_at_once() -> None:
    """Two flows of a terabyte each take days: stretches in which nothing changes are not looked at one by one."""
    pairs = [PairArrivals(src, 2, [Arrival(700 * src, 1 << 40)]) for src in (0, 1)]
    assert most_sending(SHAPE, pairs, 1000) == pytest.approx(2)
