"""The process on each host: one loop around the endpoint, its sockets, its rank program and the control channel.

Started as `python -m hosts.daemon --control-fd N`, where N is the daemon's end of a Unix stream socket pair. It exits
with 0 after `stop`, and at once when the other end is closed, for then the runner is gone; with 1 after an error in
itself or in a plugin, of which a `fatal` event tells.

One turn of the loop: read control lines and a batch of packets, run the timers that are due, let the program advance,
send, then sleep until a packet, a command or the next deadline comes. No threads, no asyncio: asyncio costs six times
the whole `recv` per packet (docs/decisions.md).
"""

from __future__ import annotations

import argparse
import gc
import select
import signal
import socket
import sys
import traceback
from time import monotonic_ns
from typing import Any

from hosts.control import ControlChannel
from hosts.delay import DelayLine
from hosts.network import Network
from hosts.session import Session
from hosts.udp import MAX_DATAGRAM_BYTES, Timer

RECEIVE_BATCH = 64
"""Packets read in one turn, so that timers and sending are never put off for longer than some 2 ms."""
TRANSMIT_BATCH = 64
MIN_QUANTUM_NS = 50_000
QUANTA_PER_RTT = 10
"""A turn follows the one before it by T/10 at the earliest, unless there is more to do at once. Waking for every packet
costs more than it is worth: in quickstart (8 daemons at 2 500 packets/s each way, 2 cores) T/20 took 83-93 us of CPU a
packet and the daemons waited 23-33 % of the time for a CPU; T/10 took 73-80 us and 12-14 %, for steps 1 % longer."""


class NetworkLoop:
    """The part of a turn that is about packets. Its calls are made once a turn, in the order they stand here."""

    def __init__(self, network: Network, session: Session) -> None:
        self._endpoint = network.endpoint
        self._network = network
        self._sender = network.tx
        self._session = session
        self._outgoing = memoryview(bytearray(MAX_DATAGRAM_BYTES))
        self._line = DelayLine(network.rx, network.delay_ns) if network.stamped else None
        self._receive = self._line.receive if self._line else network.rx.receive
        self._resume_ns: int | None = None
        self.busy = False
        """Was there more to do than a turn may take?"""

    def receive(self) -> None:
        """Take in a batch of packets."""
        receive, handle = self._receive, self._endpoint.handle_datagram
        more = self._line is not None and self._line.take_in(monotonic_ns())
        for taken in range(RECEIVE_BATCH):
            now_ns = monotonic_ns()
            datagram = receive(now_ns)
            if datagram is None:
                self._network.packets_in += taken
                self.busy = more
                return
            view, peer, flow_label, udp_port, traffic_class, arrival_ns = datagram
            handle(view, peer, flow_label, udp_port, traffic_class, arrival_ns, now_ns)
        self._network.packets_in += RECEIVE_BATCH
        self.busy = True

    def advance(self, now_ns: int) -> None:
        """Run what is due, hand events on, let the program go on."""
        due_ns = self._endpoint.next_timeout()
        if due_ns is not None and due_ns <= now_ns:
            self._endpoint.handle_timeout(now_ns)
        self._hand_on(now_ns)
        session = self._session
        if session.program is not None:
            resume_ns = self._resume_ns = session.program.advance(now_ns)
            self.busy |= resume_ns is not None and resume_ns <= now_ns
            session.take_reports(now_ns)
        if now_ns >= session.next_tick_ns:
            session.tick(now_ns)

    def transmit(self) -> None:
        """Send a batch of packets."""
        network = self._network
        if network.quiet:
            return
        poll, send, outgoing = self._endpoint.poll_transmit, self._sender.send, self._outgoing
        for sent in range(TRANSMIT_BATCH):
            packet: tuple[int, Any, int] | None = poll(monotonic_ns(), outgoing)
            if packet is None:
                network.packets_out += sent
                break
            size, destination, traffic_class = packet
            send(outgoing[:size], destination, traffic_class)
        else:
            network.packets_out += TRANSMIT_BATCH
            self.busy = True
        self._hand_on(monotonic_ns())

    def turn_ns(self, not_before_ns: int) -> int:
        """When the next turn comes: as soon as there is something to do, but not before `not_before_ns`, unless the
        last packet to come until then comes earlier."""
        turn_ns = max(self._next_ns(), not_before_ns)
        return turn_ns if self._line is None else self._line.last_due_ns(turn_ns)

    def _next_ns(self) -> int:
        next_ns = self._session.next_tick_ns
        if self._line is not None and self._line.next_due_ns < next_ns:
            next_ns = self._line.next_due_ns
        for at_ns in (self._endpoint.next_timeout(), self._resume_ns):
            if at_ns is not None and at_ns < next_ns:
                next_ns = at_ns
        return next_ns

    def _hand_on(self, now_ns: int) -> None:
        while (event := self._endpoint.poll_event()) is not None:
            self._session.take_event(event, now_ns)


class Daemon:
    """The loop. `run` returns the exit code."""

    def __init__(self, control: socket.socket) -> None:
        self._channel = ControlChannel(control)
        self._timer = Timer()
        self._session = Session(self._channel, self._timer.lateness)
        self._timer_fd = self._timer.fileno()
        self._control_fd = self._channel.fileno()
        self._epoll = select.epoll()
        self._epoll.register(self._timer_fd, select.EPOLLIN)
        self._epoll.register(self._control_fd, select.EPOLLIN)
        self._control_mask = select.EPOLLIN
        self._carrier_fd = -1
        self._loop: NetworkLoop | None = None
        self._quantum_ns = MIN_QUANTUM_NS

    def run(self) -> int:
        """Turn until `stop`, the end of the channel, or an error."""
        try:
            while self._session.running and not self._channel.closed:
                self._turn()
        except Exception as error:
            traceback.print_exc()
            self._session.report("fatal", monotonic_ns(), {"reason": self._session.plugins.reason(error)})
            return 1
        finally:
            self._channel.finish()
        return 0

    def _turn(self) -> None:
        loop = self._loop
        ready = self._epoll.poll(0 if loop is not None and loop.busy else -1)
        woke_ns = monotonic_ns()
        for fd, _ in ready:
            if fd == self._timer_fd:
                self._timer.fired(woke_ns)
            elif fd == self._control_fd:
                self._serve_control(woke_ns)
            elif fd == self._carrier_fd and self._session.network is not None:
                self._session.network.follow_ports(woke_ns)
        if loop is not None:
            loop.receive()
            loop.advance(monotonic_ns())
            loop.transmit()
            self._timer.arm(loop.turn_ns(woke_ns + self._quantum_ns))
        self._watch_control()

    def _serve_control(self, now_ns: int) -> None:
        self._channel.flush()
        for line in self._channel.receive():
            self._session.handle(line, now_ns)
        if self._loop is None and self._session.network is not None:
            self._attach(self._session.network)

    def _attach(self, network: Network) -> None:
        self._loop = NetworkLoop(network, self._session)
        # A turn has to come well before what the ports were given has run out.
        longest_ns = min(network.rtt_ns // QUANTA_PER_RTT, network.endpoint.burst_ns // 2)
        self._quantum_ns = max(MIN_QUANTUM_NS, longest_ns)
        self._carrier_fd = network.carrier.fileno()
        self._epoll.register(self._carrier_fd, select.EPOLLIN)
        # With a delay packets may wait in the socket buffer, and the timer says when to look.
        if not network.delay_ns:
            self._epoll.register(network.rx.fileno(), select.EPOLLIN)
        self._timer.arm(monotonic_ns())

    def _watch_control(self) -> None:
        mask = select.EPOLLIN | select.EPOLLOUT if self._channel.backlog else select.EPOLLIN
        if mask != self._control_mask:
            self._epoll.modify(self._control_fd, mask)
            self._control_mask = mask


def main() -> int:
    """Entry point of `python -m hosts.daemon`."""
    parser = argparse.ArgumentParser(prog="hosts.daemon", description="MRC endpoint of one host")
    parser.add_argument("--control-fd", type=int, required=True, help="the daemon's end of a Unix stream socket pair")
    arguments = parser.parse_args()
    # Ctrl-C is for the runner, which heals first and then closes the channel.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # The hot path makes no reference cycles; a collection in the middle of a run would be seen as lateness.
    gc.disable()
    return Daemon(socket.socket(fileno=arguments.control_fd)).run()


if __name__ == "__main__":
    sys.exit(main())
