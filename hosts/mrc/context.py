"""What all parts of one endpoint share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mrc_testbed.hosts.common.base import SharedContext
from mrc_testbed.hosts.common.bth import ECN_ECT0, ICRC_BYTES
from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.mrc.config import FRAME_BYTES, EndpointConfig
from mrc_testbed.hosts.mrc.counters import Counters
from mrc_testbed.hosts.mrc.incast import Incast
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.plugins import NO_PLUGINS, Choices, Plugins
from mrc_testbed.hosts.mrc.ports import LocalPorts
from mrc_testbed.hosts.mrc.wire import DATA_HEADER_BYTES

CONTROL_ROOM = 1024
"""Control packets that may wait to be sent, beside two for each path of each peer: a warm-up asks all at once."""


class Context(SharedContext):
    """Settings, outputs and queues of one endpoint."""

    __slots__ = (
        "choices",
        "config",
        "control_class",
        "counters",
        "data_class",
        "incast",
        "no_trim_class",
        "ports",
        "prng",
        "retransmission_class",
    )

    def __init__(self, config: EndpointConfig, plugins: Plugins = NO_PLUGINS) -> None:
        packet_bytes = config.payload_bytes + DATA_HEADER_BYTES + ICRC_BYTES
        pacer = Pacer(config.planes, config.port_rate_bps, packet_bytes, FRAME_BYTES, config.pace)
        super().__init__(pacer, CONTROL_ROOM)
        self.config = config
        self.data_class, self.retransmission_class = config.data_class, config.retransmission_class
        self.no_trim_class, self.control_class = config.dscp_no_trim << 2 | ECN_ECT0, config.dscp_control << 2
        self.choices = Choices(plugins)
        self.choices.check(config)
        self.counters = Counters()
        self.prng = Prng(config.seed << 8 ^ config.host)
        self.ports = LocalPorts(config.planes, self.events)
        self.incast = Incast(config.rtt_ns, config.payload_bytes, config.stamp_shift)

    def stamp(self, now_ns: int) -> int:
        """The 16-bit timestamp of a moment."""
        return now_ns >> self.config.stamp_shift & 0xFFFF

    def figures(self) -> dict[str, int]:
        """As of `SharedContext`."""
        return self.counters.as_dict()

    def no_room(self) -> None:
        """As of `SharedContext`."""
        self.counters.control_dropped += 1

    def send_control(
        self, path: Path, emit: Callable[..., int], arguments: tuple[Any, ...], traffic_class: int | None = None
    ) -> bool:
        """Queue one packet that is not data for a path, of the control class unless another is given; False when there
        is no room for it."""
        if traffic_class is None:
            traffic_class = self.control_class
        return self.queue_control(path.plane, path.token, emit, arguments, traffic_class)
