"""What all parts of one endpoint share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from mrc_testbed.hosts.common.bth import CLASS_CONTROL, ICRC_BYTES
from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.common.timers import Timers
from mrc_testbed.hosts.mrc.config import FRAME_BYTES, EndpointConfig
from mrc_testbed.hosts.mrc.counters import Counters
from mrc_testbed.hosts.mrc.events import Event
from mrc_testbed.hosts.mrc.incast import Incast
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.plugins import NO_PLUGINS, Choices, Plugins
from mrc_testbed.hosts.mrc.ports import LocalPorts
from mrc_testbed.hosts.mrc.views import SenderView
from mrc_testbed.hosts.mrc.wire import DATA_HEADER_BYTES

ControlPacket = tuple[Path, Callable[..., int], tuple[Any, ...], int]
"""Where it goes, `emit(buffer, now_ns, *arguments) -> size`, and the traffic class. Written when sent, so that it says
the latest."""
CONTROL_ROOM = 1024
"""Control packets that may wait to be sent, beside two for each path of each peer (a warm-up asks all at once). Nothing
holds them back but the application, which polls after every few inputs: what finds no room answers a flood."""


class Context:
    """Settings, outputs and queues of one endpoint."""

    __slots__ = (
        "blocked_until",
        "choices",
        "config",
        "control",
        "control_room",
        "counters",
        "events",
        "incast",
        "pacer",
        "ports",
        "prng",
        "ready",
        "timers",
    )

    def __init__(self, config: EndpointConfig, plugins: Plugins = NO_PLUGINS) -> None:
        self.config = config
        self.choices = Choices(plugins)
        self.choices.check(config)
        self.counters = Counters()
        self.events: deque[Event] = deque()
        self.control: deque[ControlPacket] = deque()
        self.control_room = CONTROL_ROOM
        self.ready: deque[SenderView] = deque()
        """Senders with something to send and window to send it, in turn."""
        self.timers = Timers()
        self.prng = Prng(config.seed << 8 ^ config.host)
        packet_bytes = config.payload_bytes + DATA_HEADER_BYTES + ICRC_BYTES
        self.pacer = Pacer(config.planes, config.port_rate_bps, packet_bytes, FRAME_BYTES, config.pace)
        self.ports = LocalPorts(config.planes, self.events)
        self.incast = Incast(config.rtt_ns, config.payload_bytes, config.stamp_shift)
        self.blocked_until = 0
        """No sender can go before this time; 0: not known, look."""

    def stamp(self, now_ns: int) -> int:
        """The 16-bit timestamp of a moment."""
        return now_ns >> self.config.stamp_shift & 0xFFFF

    def send_control(
        self, path: Path, emit: Callable[..., int], arguments: tuple[Any, ...], traffic_class: int = CLASS_CONTROL
    ) -> bool:
        """Queue one packet that is not data; False, and it is counted, when there is no room for it."""
        if len(self.control) >= self.control_room:
            self.counters.control_dropped += 1
            return False
        self.control.append((path, emit, arguments, traffic_class))
        return True

    def make_ready(self, sender: SenderView) -> None:
        """Put a sender at the end of the queue."""
        sender.ready = True
        self.ready.append(sender)
        self.blocked_until = 0
