"""What all QPs of one RoCE-like endpoint share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from mrc_testbed.hosts.common.base import SharedContext
from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcConfig
from mrc_testbed.hosts.rc.counters import RcCounters
from mrc_testbed.hosts.rc.dcqcn import REFERENCE_T_NS

Way = tuple[int, Hashable]
"""A plane, and the token of a QP's packets there."""
CONTROL_ROOM = 4096
"""Control packets that may wait to be sent."""
SLACK_PACKETS = 16
"""What one BDP and a burst of the pacer leave out: packets that an ACK waits for, one in each port of the way."""
SPREAD_RANGE = 16
"""Windows of PSNs that may be open over several planes: what fast ones carry while the packets of a slow one arrive."""
BURSTS_PER_T = 5
"""A port is given packets for T/5 in advance, as MRC's of a quarter of the rate are with their four packets. With four
of a folded port a daemon has to look four times as often: 146 us of CPU a data packet instead of 85 (quickstart)."""


class Waiting(Protocol):
    """A requester for which the window of the host has no room."""

    def wake(self) -> None:
        """There may be room to send."""


class RcContext(SharedContext):
    """Settings, outputs and queues of one endpoint."""

    __slots__ = (
        "config",
        "counters",
        "in_flight",
        "packet_ns",
        "psn_range",
        "source_port",
        "t_ns",
        "waiting",
        "window",
    )

    def __init__(self, config: RcConfig) -> None:
        packet_bytes = config.payload_bytes + wire.SELECTIVE_OVERHEAD[wire.WRITE_FIRST]
        burst_ns = config.rtt_ns // BURSTS_PER_T
        pacer = Pacer(config.planes, config.port_rate_bps, packet_bytes, wire.FRAME_BYTES, config.pace, burst_ns)
        super().__init__(pacer, CONTROL_ROOM)
        self.config = config
        self.counters = RcCounters()
        self.waiting: list[Waiting] = []
        """Those for which the window of the host has no room."""
        self.in_flight = 0
        """Packets of selective requesters that are not acknowledged, all QPs together."""
        self.source_port = 0
        """UDP source port of the packet that is being taken in."""
        self.packet_ns = self.pacer.cost_ns(packet_bytes)
        """What a port takes to send a full packet."""
        self.scale(config.rtt_ns or REFERENCE_T_NS)

    def scale(self, t_ns: int) -> None:
        """T is `t_ns`."""
        self.t_ns = t_ns
        self.window = self.window_of(self.config.planes)
        """Packets that selective requesters may have under way: one BDP of the host's ports (IRN, section 4.2)."""
        self.psn_range = (SPREAD_RANGE if self.config.spreads else 2) * self.window
        """PSNs that one of them may have open: what comes while a gap is found and filled."""

    def window_of(self, ports: int) -> int:
        """Packets of one BDP of this number of ports."""
        return ports * (self.t_ns + self.pacer.burst_ns) // self.packet_ns + SLACK_PACKETS

    def figures(self) -> dict[str, int]:
        """As of `SharedContext`."""
        return self.counters.as_dict()

    def no_room(self) -> None:
        """As of `SharedContext`."""
        self.counters.control_dropped += 1

    def send_control(self, way: Way, emit: Callable[..., int], arguments: tuple[Any, ...] = ()) -> bool:
        """Queue one packet that is not data; False when there is no room for it."""
        return self.queue_control(*way, emit, arguments)

    def release(self, packets: int) -> None:
        """`packets` packets of selective requesters are no longer under way."""
        self.in_flight -= packets
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for requester in waiting:
                requester.wake()
