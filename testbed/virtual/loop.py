"""The loop of a daemon at a virtual host: the same turns, with packets that wait in an inbox."""

from __future__ import annotations

from mrc_testbed.hosts.common.bth import bytes_after_headers
from mrc_testbed.hosts.loops import RECEIVE_BATCH, TRANSMIT_BATCH, DatagramLoop, TransportLoop
from mrc_testbed.hosts.network import DatagramNetwork
from mrc_testbed.hosts.session import Session
from mrc_testbed.testbed.virtual.inbox import Inbox
from mrc_testbed.testbed.virtual.nic import Nic
from mrc_testbed.testbed.virtual.scheduler import Scheduler

_SHORT_BYTES = 64
"""Headers and packets without a payload are shorter; where each of them ends is cut once."""


class InboxLoop(DatagramLoop):
    """As `DatagramLoop`. No time passes in a turn, so no clock is read for a packet; and an endpoint of ours lends the
    payloads of its packets."""

    def __init__(
        self, network: DatagramNetwork, session: Session, scheduler: Scheduler, inbox: Inbox, nic: Nic
    ) -> None:
        super().__init__(network, session, lambda: scheduler.now_ns, inbox)
        self._scheduler, self._inbox, self._nic = scheduler, inbox, nic
        if self._own is not None:
            self._own.lend_payloads()
        self._short = [self._outgoing[:size] for size in range(_SHORT_BYTES)]

    def receive(self) -> None:
        """As of `DatagramLoop`."""
        own, inbox, now_ns = self._own, self._inbox, self._scheduler.now_ns
        if own is None:
            super().receive()
            return
        inbox.take_in(now_ns)
        for taken in range(RECEIVE_BATCH):
            packet = inbox.take(now_ns)
            if packet is None:
                self._network.packets_in += taken
                self.busy = False
                return
            way, arrival_ns = packet.way, packet.due_ns
            if now_ns - arrival_ns > self._late_ns and arrival_ns >= self._session.excused_until_ns:
                self._network.packets_late += 1
            data, payload, traffic_class = packet.data, packet.payload, packet.traffic_class
            source, label, port = way.source, way.flow_label, way.source_port
            if payload is None:
                own.handle_datagram(memoryview(data), source, label, port, traffic_class, arrival_ns, now_ns)
            else:
                own.handle_parts(data, payload, source, label, port, traffic_class, arrival_ns, now_ns)
        self._network.packets_in += RECEIVE_BATCH
        self.busy = True

    def transmit(self) -> None:
        """As of `DatagramLoop`."""
        own, network, nic, now_ns = self._own, self._network, self._nic, self._scheduler.now_ns
        outgoing, short = self._outgoing, self._short
        if own is None:
            super().transmit()
            return
        if network.quiet:
            return
        for sent in range(TRANSMIT_BATCH):
            packet = own.poll_transmit(now_ns, outgoing)
            if packet is None:
                network.packets_out += sent
                break
            size, destination, traffic_class = packet
            payload = own.take_lent()
            if payload is not None:
                size -= bytes_after_headers(payload)
            written = short[size] if size < _SHORT_BYTES else outgoing[:size]
            nic.send(written, destination, traffic_class, payload)
        else:
            network.packets_out += TRANSMIT_BATCH
            self.busy = True
        self._hand_on(now_ns)

    def turn_ns(self, not_before_ns: int) -> int:
        """As of `DatagramLoop`."""
        return self._inbox.last_due_ns(TransportLoop.turn_ns(self, not_before_ns))

    def _next_ns(self) -> int:
        return min(TransportLoop._next_ns(self), self._inbox.next_due_ns)
