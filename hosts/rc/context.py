"""What all QPs of one RoCE-like endpoint share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Protocol

from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, StallEnded, WriteCompleted
from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.common.timers import Timers
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcConfig
from mrc_testbed.hosts.rc.counters import RcCounters
from mrc_testbed.hosts.rc.dcqcn import REFERENCE_T_NS

RcEvent = ImmediateDelivered | WriteCompleted | QpError | StallEnded
Way = tuple[int, Hashable]
"""Plane and token of all packets of one QP."""
ControlPacket = tuple[Way, Callable[..., int], tuple[Any, ...]]
"""Where it goes and `emit(buffer, *arguments) -> size`. Written when sent, so that it says the latest."""
CONTROL_ROOM = 4096
"""Control packets that may wait to be sent. Nothing holds them back but the application, which polls after every few
inputs: what finds no room answers a flood."""
SLACK_PACKETS = 16
"""What one BDP and a burst of the pacer leave out: packets that an ACK waits for, one in each port of the way."""
BURSTS_PER_T = 5
"""A port is given packets for T/5 in advance, as MRC's of a quarter of the rate are with their four packets. With four
of a folded port a daemon has to look four times as often: 146 us of CPU a data packet instead of 85 (quickstart)."""


class Sending(Protocol):
    """The requester of a QP, for the queues of the endpoint."""

    ready: bool
    plane: int

    def can_send(self) -> bool:
        """Is there something to send, and room to send it?"""

    def free_at(self) -> int:
        """When its own rate lets the next packet go."""

    def held_back(self, now_ns: int) -> None:
        """What it has to send may not go yet."""

    def transmit(self, now_ns: int, buffer: memoryview) -> int:
        """Write the next packet; returns its size."""

    def wake(self) -> None:
        """There may be something to send."""

    @property
    def token(self) -> Hashable:
        """Where its packets go."""


class RcContext:
    """Settings, outputs and queues of one endpoint."""

    __slots__ = (
        "blocked_until",
        "config",
        "control",
        "counters",
        "events",
        "held",
        "in_flight",
        "pacer",
        "packet_ns",
        "psn_range",
        "ready",
        "t_ns",
        "timers",
        "waiting",
        "window",
    )

    def __init__(self, config: RcConfig) -> None:
        self.config = config
        self.counters = RcCounters()
        self.events: deque[RcEvent] = deque()
        self.control: deque[ControlPacket] = deque()
        self.ready: deque[Sending] = deque()
        """Requesters with something to send, in turn."""
        self.waiting: list[Sending] = []
        """Those for which the window of the host has no room."""
        self.in_flight = 0
        """Packets of selective requesters that are not acknowledged, all QPs together."""
        self.timers = Timers()
        packet_bytes = config.payload_bytes + wire.SELECTIVE_OVERHEAD[wire.WRITE_FIRST]
        burst_ns = config.rtt_ns // BURSTS_PER_T
        self.pacer = Pacer(config.planes, config.port_rate_bps, packet_bytes, wire.FRAME_BYTES, config.pace, burst_ns)
        self.held: dict[int, int] = {}
        """What each paused port had been given in advance, ns."""
        self.packet_ns = self.pacer.cost_ns(packet_bytes)
        """What a port takes to send a full packet."""
        self.scale(config.rtt_ns or REFERENCE_T_NS)
        self.blocked_until = 0
        """No requester can go before this time; 0: not known, look."""

    def scale(self, t_ns: int) -> None:
        """T is `t_ns`."""
        self.t_ns = t_ns
        self.window = self.config.planes * (t_ns + self.pacer.burst_ns) // self.packet_ns + SLACK_PACKETS
        """Packets that selective requesters may have under way: one BDP of the host's ports (IRN, section 4.2)."""
        self.psn_range = 2 * self.window
        """PSNs that one of them may have open: what comes while a gap is found and filled."""

    def send_control(self, way: Way, emit: Callable[..., int], arguments: tuple[Any, ...] = ()) -> bool:
        """Queue one packet that is not data; False, and it is counted, when there is no room for it."""
        if len(self.control) >= CONTROL_ROOM:
            self.counters.control_dropped += 1
            return False
        self.control.append((way, emit, arguments))
        return True

    def make_ready(self, requester: Sending) -> None:
        """Put a requester at the end of the queue."""
        requester.ready = True
        self.ready.append(requester)
        self.blocked_until = 0

    def release(self, packets: int) -> None:
        """So many packets of selective requesters are under way no longer."""
        self.in_flight -= packets
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for requester in waiting:
                requester.wake()
