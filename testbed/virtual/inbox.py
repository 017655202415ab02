"""Where packets wait at a virtual host until its loop takes them in."""

from __future__ import annotations

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.delay import ArrivalLine
from mrc_testbed.hosts.udp import Datagram
from mrc_testbed.testbed.virtual.packet import PacketQueue, VirtualPacket


class Inbox(ArrivalLine):
    """Packets that have come over the last link: socket and delay line in one.

    They come in the order in which they are due, so nothing has to be sorted, and none needs a buffer of its own.
    """

    unread = False

    def __init__(self) -> None:
        super().__init__(waits_for_socket=False)
        self.unknown_sources = 0
        self.unknown_ports = 0
        self.delay_ns = 0
        self.looked_for = False
        """A turn comes in time for what may have come since the last one, as that of a daemon does; else each packet
        has the host turn when it is due. Where T is that of hardware, most turns would find nothing."""
        self._line = PacketQueue()
        self._unseen_from_ns = 0

    def put(self, arrival_ns: int, packet: VirtualPacket) -> None:
        """As mrc_testbed.testbed.virtual.port.Deliver."""
        packet.due_ns = arrival_ns + self.delay_ns
        self._line.put(packet)

    def take_in(self, now_ns: int) -> bool:
        """All is here. What comes from now on is due no earlier than after the delay."""
        self._unseen_from_ns = now_ns + self.delay_ns if self.looked_for else NEVER
        return False

    def take(self, now_ns: int) -> VirtualPacket | None:
        """The next packet that is due."""
        first = self._line.first
        return None if first is None or first.due_ns > now_ns else self._line.take()

    def receive(self, now_ns: int) -> Datagram | None:
        """The same, as a socket gives it."""
        packet = self.take(now_ns)
        if packet is None:
            return None
        way = packet.way
        view = memoryview(packet.whole())
        return view, way.source, way.flow_label, way.source_port, packet.traffic_class, packet.due_ns

    @property
    def next_due_ns(self) -> int:
        """Before this no packet is due."""
        first = self._line.first
        return self._unseen_from_ns if first is None else min(first.due_ns, self._unseen_from_ns)

    def last_due_ns(self, until_ns: int) -> int:
        """As of `ArrivalLine`."""
        last_ns, packet = until_ns, self._line.first
        while packet is not None and packet.due_ns <= until_ns:
            last_ns, packet = packet.due_ns, packet.after
        return last_ns

    def swap(self, buffer: memoryview) -> memoryview:
        """Each packet has memory of its own."""
        return buffer

    def buffer_drops(self) -> int:
        """None: it is as long as it has to be."""
        return 0

    def fileno(self) -> int:
        """Nothing waits for a descriptor in virtual time."""
        raise NotImplementedError("nothing waits for a descriptor in virtual time")
