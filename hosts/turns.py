"""The turns of a daemon: control lines, packets, timers, the program, packets again, and then sleep.

It sleeps until a packet, a command or the next deadline comes. No threads, no asyncio: asyncio costs six times the
whole `recv` per packet (docs/decisions/0008-one-epoll-loop.md).
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from time import monotonic_ns

from mrc_testbed.hosts import batches
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.control import ControlChannel
from mrc_testbed.hosts.loops import TransportLoop, loop_of
from mrc_testbed.hosts.network import Network
from mrc_testbed.hosts.session import Session
from mrc_testbed.hosts.udp import Timer


class Turns:
    """Takes one at a time. `timer`: it wakes the daemon at deadlines."""

    def __init__(self, channel: ControlChannel, session: Session, timer: Timer) -> None:
        self._channel = channel
        self._session = session
        self._timer = timer
        self._timer_fd = timer.fileno()
        self._control_fd = channel.fileno()
        self._epoll = select.epoll()
        self._epoll_fd = self._epoll.fileno()
        extension, _ = batches.found()
        self._wait: Callable[[int, int], Sequence[int]] = self._poll if extension is None else extension.wait
        self._epoll.register(self._timer_fd, select.EPOLLIN)
        self._epoll.register(self._control_fd, select.EPOLLIN)
        self._control_mask = select.EPOLLIN
        self._carrier_fd = -1
        self._wakes_by: Sequence[int] = ()
        self._loop: TransportLoop | None = None
        self._resting = False
        """It is held, or slow, and waits for nothing but that time and commands."""

    def take(self) -> None:
        """Sleep until there is something to do, and do it."""
        loop = self._loop
        ready = self._wait(self._epoll_fd, 0 if loop is not None and loop.busy and not self._resting else -1)
        woke_ns = monotonic_ns()
        for fd in ready:
            if fd == self._timer_fd:
                self._timer.fired(woke_ns)
            elif fd == self._control_fd:
                self._serve_control(woke_ns)
            elif fd == self._carrier_fd and self._session.network is not None:
                self._session.network.follow_ports(woke_ns)
        if loop is not None:
            self._resting = self._session.held or woke_ns < self._session.rest_until_ns
            if self._resting:
                self._rest()
            else:
                self._turn(loop, woke_ns)
        self._watch_control()

    def _poll(self, _epoll_fd: int, most_ms: int) -> Sequence[int]:
        return [fd for fd, _ in self._epoll.poll(most_ms)]

    def _turn(self, loop: TransportLoop, woke_ns: int) -> None:
        loop.receive()
        loop.advance(monotonic_ns())
        loop.transmit()
        self._timer.arm(loop.turn_ns(woke_ns + loop.quantum_ns))
        wakes_by, gateway, verbs = loop.wakes_by(), self._session.gateway, self._session.verbs
        if gateway is not None:
            wakes_by = (*wakes_by, *gateway.wakes_by)
        if verbs is not None:
            wakes_by = (*wakes_by, *verbs.wakes_by)
        if wakes_by != self._wakes_by:
            self._watch_sockets(wakes_by)
        if self._session.per_packet_ns:
            self._session.take_time(monotonic_ns())

    def _rest(self) -> None:
        """Look at no socket until the time is over, or a command lets this host go."""
        self._watch_sockets(())
        self._timer.arm(NEVER if self._session.held else self._session.rest_until_ns)

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
