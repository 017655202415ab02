"""One virtual port: when packets leave it, whatever comes, compared with a queue written down in another way."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_counts import CHANGED, CUT, DROPPED, PASSED
from mrc_testbed.testbed.switching.thresholds import NEVER, PortLevels
from mrc_testbed.testbed.virtual.lossless import PauseRules
from mrc_testbed.testbed.virtual.packet import (
    CONTROL_ROW,
    DATA_ROW,
    ENCAPSULATED_BYTES,
    Headers,
    VirtualPacket,
    VirtualWay,
)
from mrc_testbed.testbed.virtual.port import NIC_LIMITS, Port, QueueLimits
from mrc_testbed.testbed.virtual.port_row import BYTES_AT
from mrc_testbed.testbed.virtual.rules import PortDice
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.nodes import Interface
from tests.port_cases import mrc_packet

HEADERS = Headers(ENCAPSULATED_BYTES, FabricOptions("ifb", "endpoint"))
DATA = mrc_packet(1)
QUIET = PortLevels(NEVER, NEVER, NEVER, NEVER, False)


class Offered(NamedTuple):
    """A packet that comes to the port."""

    at_ns: int
    size_bytes: int
    high: bool


class Link:
    """A port, and what came over its link: (time, number of the packet)."""

    def __init__(
        self, rate_bps: int, limits: QueueLimits | PauseRules = NIC_LIMITS, seed: int = 1, kind: Any = Port
    ) -> None:
        self.scheduler = Scheduler()
        self.came: list[tuple[int, int]] = []
        ends = [Interface("p0-t0-0", "up0", 1000), Interface("p0-t1-0", "down0", 1001)]
        self.port, self.peer = (kind(end, limits, rate_bps, HEADERS, self.scheduler, PortDice(seed)) for end in ends)
        self.port.join(self.peer)
        self.peer.join(self.port)
        self.peer.deliver = lambda at_ns, packet: self.came.append((at_ns, packet.way.flow_label))

    def offer(self, number: int, packet: Offered, traffic_class: int = 0, data: bytes = b"\0") -> None:
        """Let a packet come at its time."""
        way = VirtualWay((self.port,), 0, 0, 0, 0, 0, number, 0, 0)
        row = CONTROL_ROW if packet.high else DATA_ROW
        made = VirtualPacket(way, data, packet.size_bytes, traffic_class, row, packet.high)
        self.scheduler.at(packet.at_ns, lambda: self.port.offer(made, self.scheduler.now_ns))

    def run(self) -> None:
        while self.scheduler.run_next():
            pass


def departures(packets: list[Offered], rate_bps: int) -> list[tuple[int, int]]:
    """(time, number) of what leaves a queue of two classes, packet by packet, in exact fractions of time.

    A packet that comes in the nanosecond in which another one leaves finds it there.
    """
    left, found, free_at = dict(enumerate(packets)), list[tuple[int, int]](), Fraction(-1)
    while left:
        waiting = [number for number, packet in left.items() if packet.at_ns <= ceil(free_at)]
        if waiting:
            number = min(waiting, key=lambda number: (not left[number].high, left[number].at_ns, number))
            begun = any(left[number].at_ns < ceil(free_at) for number in waiting)
            start = free_at if begun else Fraction(ceil(free_at))
        else:
            number = min(left, key=lambda number: (left[number].at_ns, number))
            start = Fraction(left[number].at_ns)
        free_at = start + Fraction(left.pop(number).size_bytes * 8 * 10**9, rate_bps)
        found.append((ceil(free_at), number))
    return found


RATES = [100_000_000_000, 25_000_000_000, 12_345_678_901, 1_000_000_000]
packets = st.lists(
    st.builds(Offered, st.integers(0, 3000).map(lambda n: 1000 * n + n % 7), st.integers(64, 9000), st.booleans()),
    min_size=1,
    max_size=40,
)


@given(packets, st.sampled_from(RATES))
def test_a_port_sends_one_packet_at_a_time_the_high_class_first(offered: list[Offered], rate_bps: int) -> None:
    link = Link(rate_bps, QueueLimits(QUIET, NEVER))
    for number, packet in enumerate(offered):
        link.offer(number, packet)
    link.run()
    assert link.came == departures(offered, rate_bps)


LEVELS = PortLevels(ecn_low=200, ecn_high=800, trim=1000, drop=3000, last_hop=False)


@pytest.mark.parametrize(
    ("backlog_bytes", "traffic_class", "verdict"),
    [
        (200, wire.CLASS_TRIMMABLE, PASSED),
        (800, wire.CLASS_TRIMMABLE, CHANGED),
        (1000, wire.CLASS_TRIMMABLE, CHANGED),
        (1001, wire.CLASS_TRIMMABLE, CUT),
        (1001, wire.CLASS_NO_TRIM, CHANGED),
        (1001, wire.CLASS_NO_TRIM & ~bth.ECN_MASK, PASSED),
        (3000, wire.CLASS_NO_TRIM, CHANGED),
        (3001, wire.CLASS_NO_TRIM, DROPPED),
        (3001, wire.CLASS_TRIMMABLE, DROPPED),
    ],
)
def test_levels_are_passed_by_the_byte_above_them(backlog_bytes: int, traffic_class: int, verdict: int) -> None:
    link = Link(1_000_000_000, QueueLimits(LEVELS, NEVER))
    link.offer(0, Offered(0, backlog_bytes, high=False))
    link.offer(1, Offered(0, 4238, high=False), traffic_class, DATA)
    link.scheduler.run_next()
    before = link.port.out.row()
    link.scheduler.run_next()
    after = [new - old for new, old in zip(link.port.out.row(), before, strict=True)]
    assert after.index(1) == DATA_ROW + verdict
    assert after[BYTES_AT + DATA_ROW + verdict] == 4238


@given(st.integers(201, 799))
def test_the_chance_of_a_mark_grows_along_the_ramp(backlog_bytes: int) -> None:
    marked = 0
    for seed in range(200):
        link = Link(1_000_000_000, QueueLimits(LEVELS, NEVER), seed)
        link.offer(0, Offered(0, backlog_bytes, high=False))
        link.offer(1, Offered(0, 4238, high=False), wire.CLASS_TRIMMABLE, DATA)
        link.run()
        marked += link.port.out.row()[DATA_ROW + CHANGED]
    assert abs(marked / 200 - (backlog_bytes - 200) / 600) < 5 * (0.25 / 200) ** 0.5


def test_a_full_queue_of_control_takes_more_when_it_has_sent_some() -> None:
    link = Link(1_000_000_000, QueueLimits(QUIET, 200))
    for number, at_ns in enumerate([0, 0, 0, 0, 801, 801, 1601]):
        link.offer(number, Offered(at_ns, 100, high=True))
    link.run()
    assert [number for _, number in link.came] == [0, 1, 2, 4, 6]
    assert link.port.high_drops == 2
