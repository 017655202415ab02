"""What a daemon does in one turn of its loop, by kind of network.

All that transports share (timers, events, the rank program, snapshots) is in `TransportLoop`; a kind of network adds
how packets or bytes come in and go out. A loop's calls are made once a turn, in the order of their definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import Any

from mrc_testbed.hosts.batched import SEND_BATCH, BatchSender, Outgoing, batch_sender
from mrc_testbed.hosts.common.base import EndpointBase
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.delay import ArrivalLine, DelayLine
from mrc_testbed.hosts.network import DatagramNetwork, Network, SocketNetwork
from mrc_testbed.hosts.session import Session
from mrc_testbed.hosts.transport import EndpointLike
from mrc_testbed.hosts.udp import MAX_DATAGRAM_BYTES, RxSocket

RECEIVE_BATCH = 64
"""Packets read in one turn, so that timers and sending are never put off for longer than some 2 ms."""
TRANSMIT_BATCH = 64
MIN_QUANTUM_NS = 50_000
QUANTA_PER_RTT = 10
"""A turn follows the one before it by T/10 at the earliest, unless there is more to do at once. Waking for every packet
costs more than it is worth: in quickstart (8 daemons at 2 500 packets/s each way, 2 cores) T/20 took 83-93 us of CPU a
packet and the daemons waited 23-33 % of the time for a CPU; T/10 took 73-80 us and 12-14 %, for steps 1 % longer."""


LATE_RTTS = 0.5
"""A packet that waits so long for its endpoint changes what timers of T decide. Turns of T/10 do not."""
LEAST_LATE_NS = 2_500_000
"""Where T is so short that a scheduler is later than that."""


class TransportLoop:
    """The part of a turn that is about the network and what lives by it. `clock`: the time now, in ns.

    Machine code calls an endpoint of its own, `_own`, without an object for each argument."""

    def __init__(
        self, endpoint: EndpointLike, session: Session, quantum_ns: int, clock: Callable[[], int], swift: int = 1
    ) -> None:
        self._clock = clock
        self._driven = endpoint
        kind: object = endpoint
        self._own: EndpointBase[Any, Any] | None = kind if isinstance(kind, EndpointBase) else None
        self._session = session
        self._resume_ns = NEVER
        self.busy = False
        """Was there more to do than a turn may take?"""
        self.quantum_ns = max(MIN_QUANTUM_NS // swift, quantum_ns)
        """Least time between two turns."""

    def wakes_by(self) -> Sequence[int]:
        """Descriptors whose readiness calls for a turn now; they may be others after the next turn."""
        raise NotImplementedError

    def receive(self) -> None:
        """Take in what has come, as much as a turn may take."""
        raise NotImplementedError

    def advance(self, now_ns: int) -> None:
        """Run what is due, hand events on, let the program go on."""
        if self._timeout_ns() <= now_ns:
            self._driven.handle_timeout(now_ns)
        self._hand_on(now_ns)
        session = self._session
        if session.program is not None:
            resume_ns = session.program.advance(now_ns)
            self._resume_ns = NEVER if resume_ns is None else resume_ns
            self.busy |= self._resume_ns <= now_ns
            session.take_reports(now_ns)
        if session.gateway is not None:
            session.gateway.pump(now_ns)
        if session.verbs is not None:
            session.verbs.pump(now_ns)
        if session.agent is not None and now_ns >= session.agent.next_ns:
            session.probe(session.agent, now_ns)
        if now_ns >= session.next_tick_ns:
            session.tick(now_ns)

    def transmit(self) -> None:
        """Send what may be sent, as much as a turn may take."""
        raise NotImplementedError

    def turn_ns(self, not_before_ns: int) -> int:
        """When the next turn comes: as soon as there is something to do, but not before `not_before_ns`."""
        return max(self._next_ns(), not_before_ns)

    def _next_ns(self) -> int:
        session = self._session
        next_ns = min(min(session.next_tick_ns, self._resume_ns), self._timeout_ns())
        if session.verbs is not None:
            next_ns = min(next_ns, session.verbs.next_ns())
        if session.agent is not None:
            next_ns = min(next_ns, session.agent.next_ns)
        return next_ns if session.gateway is None else min(next_ns, session.gateway.next_ns(self._clock()))

    def _timeout_ns(self) -> int:
        """When the endpoint wants to be looked at; NEVER if it does not."""
        if self._own is not None:
            return self._own.timeout_ns()
        timeout_ns = self._driven.next_timeout()
        return NEVER if timeout_ns is None else timeout_ns

    def _hand_on(self, now_ns: int) -> None:
        while (event := self._next_event()) is not None:
            self._session.take_event(event, now_ns)

    def _next_event(self) -> Any:
        return self._driven.poll_event() if self._own is None else self._own.poll_event()


class DatagramLoop(TransportLoop):
    """Packets in and out of UDP sockets, batch by batch."""

    def __init__(
        self,
        network: DatagramNetwork,
        session: Session,
        clock: Callable[[], int] = monotonic_ns,
        line: ArrivalLine | None = None,
    ) -> None:
        """`line`: where packets wait until they arrive; None: they lie in the network's socket until then."""
        # A turn has to come well before what the ports were given has run out.
        quantum_ns = min(network.rtt_ns // QUANTA_PER_RTT, network.endpoint.burst_ns // 2)
        super().__init__(network.endpoint, session, quantum_ns, clock, network.swift)
        self._endpoint = network.endpoint
        self._network = network
        self._sender = network.tx
        self._batches = batch_sender(network.tx)
        self._outgoing = memoryview(bytearray(MAX_DATAGRAM_BYTES))
        self._line = line or _delay_line(network)
        self._socket = (network.rx.fileno(),) if line is None else ()
        self._late_ns = max(round(network.rtt_ns * LATE_RTTS), LEAST_LATE_NS // network.swift)

    def wakes_by(self) -> Sequence[int]:
        """While packets are on their way they may wait in the socket buffer, and the timer says when to look."""
        return self._socket if self._line is None or self._line.waits_for_socket else ()

    def receive(self) -> None:
        """Take in a batch of packets."""
        own, line, rx, clock, late_ns = self._own, self._line, self._network.rx, self._clock, self._late_ns
        more = line is not None and line.take_in(clock())
        for taken in range(RECEIVE_BATCH):
            now_ns = clock()
            datagram = rx.receive(now_ns) if line is None else line.receive(now_ns)
            if datagram is None:
                self._network.packets_in += taken
                self.busy = more
                return
            view, peer, flow_label, udp_port, traffic_class, arrival_ns = datagram
            if now_ns - arrival_ns > late_ns and arrival_ns >= self._session.excused_until_ns:
                self._network.packets_late += 1
            if own is not None:
                own.handle_datagram(view, peer, flow_label, udp_port, traffic_class, arrival_ns, now_ns)
            else:
                self._endpoint.handle_datagram(view, peer, flow_label, udp_port, traffic_class, arrival_ns, now_ns)
        self._network.packets_in += RECEIVE_BATCH
        self.busy = True

    def transmit(self) -> None:
        """Send a batch of packets."""
        network = self._network
        if network.quiet:
            return
        if self._batches is not None:
            self._transmit_in(self._batches)
            return
        poll, send, outgoing, clock = self._endpoint.poll_transmit, self._sender.send, self._outgoing, self._clock
        for sent in range(TRANSMIT_BATCH):
            packet: tuple[int, Any, int] | None = poll(clock(), outgoing)
            if packet is None:
                network.packets_out += sent
                break
            size, destination, traffic_class = packet
            send(outgoing[:size], destination, traffic_class)
        else:
            network.packets_out += TRANSMIT_BATCH
            self.busy = True
        self._hand_on(clock())

    def _transmit_in(self, batches: BatchSender) -> None:
        """The same with a call of the kernel for many packets."""
        own, clock, room, network = self._own, self._clock, batches.room, self._network
        for _ in range(TRANSMIT_BATCH // SEND_BATCH):
            packets: list[Outgoing] = []
            for place in room:
                packet = (
                    self._endpoint.poll_transmit(clock(), place) if own is None else own.poll_transmit(clock(), place)
                )
                if packet is None:
                    break
                packets.append(packet)
            batches.send(packets)
            network.packets_out += len(packets)
            if len(packets) < SEND_BATCH:
                break
        else:
            self.busy = True
        self._hand_on(clock())

    def turn_ns(self, not_before_ns: int) -> int:
        """As of any loop; and the last packet to come until then may come earlier, and is not kept waiting."""
        turn_ns = super().turn_ns(not_before_ns)
        return turn_ns if self._line is None else self._line.last_due_ns(turn_ns)

    def _next_ns(self) -> int:
        next_ns = super()._next_ns()
        return next_ns if self._line is None else min(next_ns, self._line.next_due_ns)


class SocketLoop(TransportLoop):
    """Bytes in and out of the endpoint's sockets, as soon as the kernel has some."""

    def __init__(self, network: SocketNetwork, session: Session) -> None:
        super().__init__(network.endpoint, session, MIN_QUANTUM_NS, monotonic_ns)
        self._endpoint = network.endpoint
        self._network = network
        self._sockets = (network.endpoint.fileno(),)

    def wakes_by(self) -> Sequence[int]:
        """One descriptor for all sockets."""
        return self._sockets

    def receive(self) -> None:
        """Take in what has come; all of it when the program goes on by the clock, for then it may count what came."""
        now_ns = self._clock()
        self.busy = self._endpoint.receive(now_ns, 0 < self._resume_ns <= now_ns)

    def transmit(self) -> None:
        """Give the kernel what it takes."""
        if not self._network.quiet:
            self._endpoint.transmit(self._clock())
            self._hand_on(self._clock())


def _delay_line(network: DatagramNetwork) -> DelayLine | None:
    """None where packets lie in the network's socket until they arrive. Raises TypeError for a socket of another kind
    that is to delay them."""
    if not network.stamped:
        return None
    socket: object = network.rx
    if not isinstance(socket, RxSocket):
        raise TypeError(f"packets that arrive by a {type(socket).__name__} cannot be delayed")
    return DelayLine(socket, network.delay_ns)


def loop_of(network: Network, session: Session) -> TransportLoop:
    """The loop that drives this kind of network."""
    if isinstance(network, DatagramNetwork):
        return DatagramLoop(network, session)
    if isinstance(network, SocketNetwork):
        return SocketLoop(network, session)
    raise TypeError(f"no loop drives a {type(network).__name__}")
