"""The process on each host: one loop around the endpoint, its sockets, its rank program and the control channel.

A run forks its daemons (hosts.forker); alone one starts as `python -m hosts.daemon --control-fd N`, where N is the
daemon's end of a Unix stream socket pair. It exits with 0 after `stop`, and at once when the other end is closed, for
then the runner is gone; with 1 after an error in itself or in a plugin, of which a `fatal` event tells.

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
from collections.abc import Sequence
from time import monotonic_ns

from hosts.control import ControlChannel
from hosts.loops import TransportLoop, loop_of
from hosts.network import Network
from hosts.session import Session
from hosts.udp import Timer


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
        self._wakes_by: Sequence[int] = ()
        self._loop: TransportLoop | None = None

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
            self._timer.arm(loop.turn_ns(woke_ns + loop.quantum_ns))
            if (wakes_by := loop.wakes_by()) != self._wakes_by:
                self._watch_sockets(wakes_by)
        self._watch_control()

    def _watch_sockets(self, wakes_by: Sequence[int]) -> None:
        for fd in set(self._wakes_by) - set(wakes_by):
            self._epoll.unregister(fd)
        for fd in set(wakes_by) - set(self._wakes_by):
            self._epoll.register(fd, select.EPOLLIN)
        self._wakes_by = wakes_by

    def _serve_control(self, now_ns: int) -> None:
        self._channel.flush()
        for line in self._channel.receive():
            self._session.handle(line, now_ns)
        if self._loop is None and self._session.network is not None:
            self._attach(self._session.network)

    def _attach(self, network: Network) -> None:
        self._loop = loop_of(network, self._session)
        self._carrier_fd = network.carrier.fileno()
        self._epoll.register(self._carrier_fd, select.EPOLLIN)
        self._timer.arm(monotonic_ns())

    def _watch_control(self) -> None:
        mask = select.EPOLLIN | select.EPOLLOUT if self._channel.backlog else select.EPOLLIN
        if mask != self._control_mask:
            self._epoll.modify(self._control_fd, mask)
            self._control_mask = mask


def serve(control: socket.socket) -> int:
    """Be the daemon at this end of a control channel; returns the exit code of the process."""
    # Ctrl-C is for the runner, which heals first and then closes the channel.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # The hot path makes no reference cycles; a collection in the middle of a run would be seen as lateness.
    gc.disable()
    return Daemon(control).run()


def main() -> int:
    """Entry point of `python -m hosts.daemon`."""
    parser = argparse.ArgumentParser(prog="hosts.daemon", description="MRC endpoint of one host")
    parser.add_argument("--control-fd", type=int, required=True, help="the daemon's end of a Unix stream socket pair")
    return serve(socket.socket(fileno=parser.parse_args().control_fd))


if __name__ == "__main__":
    sys.exit(main())
