"""The sending side of a virtual host."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mrc_testbed.hosts.common.bth import bytes_after_headers
from mrc_testbed.testbed.switching.options import NIC_QUEUE_PACKETS
from mrc_testbed.testbed.virtual.packet import Headers, VirtualPacket, VirtualWay
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.testbed.virtual.ways import Ways
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.shape import WIRE_BYTES

_QUEUE_BYTES = NIC_QUEUE_PACKETS * WIRE_BYTES
KNOWN_WAYS = 4096
"""Most ways that a host remembers, 1 MB, before it forgets all of them: those to 32 peers over 8 planes of 16 uplinks.
One that talks to hundreds would keep ten times as many, and use most of them once or twice."""


class Nic:
    """Sends as mrc_testbed.hosts.udp.TxSocket and SenderSet do. `lost`: packets that the host's own ports
    refused, by errno."""

    def __init__(self, host: Host, ways: Ways, headers: Headers, scheduler: Scheduler) -> None:
        self.lost: Counter[str] = Counter()
        self._host = host
        self._ways = ways
        self._headers = headers
        self._scheduler = scheduler
        self._known: dict[Any, VirtualWay] = {}

    def send(
        self, packet: memoryview | bytes, destination: Any, traffic_class: int, payload: memoryview | None = None
    ) -> None:
        """Send, or lose and count in `lost`. The packet is copied, but not a `payload` that comes behind it. Raises
        ValueError for a destination that is none."""
        way = self._known.get(destination)
        if way is None:
            if len(self._known) == KNOWN_WAYS:
                self._known.clear()
            way = self._known[destination] = self._ways.way(self._host, destination)
        why = self.offer(way, bytes(packet), traffic_class, payload)
        if why:
            self.lost[why] += 1

    def loop(self, uids: str) -> VirtualWay:
        """The way along a list of uSIDs and back to this host. Raises ValueError."""
        return self._ways.loop(self._host, uids)

    def offer(self, way: VirtualWay, data: bytes, traffic_class: int, payload: memoryview | None = None) -> str:
        """Send on a known way; returns why this host's port refused it, by errno, or nothing."""
        row, high = self._headers.look(data, traffic_class)
        port = way.ports[0]
        if not port.up:
            return "ENETUNREACH"
        if port.queued_bytes() > _QUEUE_BYTES:
            return "ENOBUFS"
        size_bytes = len(data) + self._headers.frame_bytes
        if payload is not None:
            size_bytes += bytes_after_headers(payload)
        port.offer(VirtualPacket(way, data, size_bytes, traffic_class, row, high, payload), self._scheduler.now_ns)
        return ""
