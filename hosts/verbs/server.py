"""The programs of one host: their connections, a turn at a time, and the events of their QPs.

A program that posts without end has its turn as any other: DATAGRAMS_OF_EACH, and no more. A malformed record ends its
connection and nothing else.
"""

from __future__ import annotations

import contextlib
import random
import select
import socket
from collections.abc import Callable
from typing import Any

from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, QpFailure, WriteCompleted
from mrc_testbed.hosts.mrc.events import EvChanged, PathAnswered, PortChanged
from mrc_testbed.hosts.mrc.portstate import PortState
from mrc_testbed.hosts.network import Network
from mrc_testbed.hosts.verbs import facts
from mrc_testbed.hosts.verbs.connection import ProgramConnection
from mrc_testbed.hosts.verbs.controls import Controls
from mrc_testbed.hosts.verbs.facts import HostFacts
from mrc_testbed.hosts.verbs.messages import To
from mrc_testbed.hosts.verbs.outcomes import PORT_ACTIVE, PORT_ERR
from mrc_testbed.hosts.verbs.program import NicProgram
from mrc_testbed.hosts.verbs.qps import NicQps, ProgramEndpoint, ProgramQp, QpNames
from mrc_testbed.hosts.verbs.refusal import Malformed
from mrc_testbed.hosts.verbs.served import Served

PROGRAMS_A_TURN = 8
DATAGRAMS_OF_EACH = 8
"""Read in one turn at the most."""

_COUNTED = {"writes": "posts", "writes_done": "completed", "in_bytes": "placed"}
"""Counters of a host, and the attribute that each is summed up from."""

Tell = Callable[[str, int, dict[str, Any]], None]


class ProgramServer:
    """`listening`: a socket of packets, closed by `close`. `tell`: takes a line for the run: its name, the
    time, its fields."""

    def __init__(
        self,
        network: Network,
        endpoint: ProgramEndpoint,
        names: QpNames,
        told: HostFacts,
        listening: socket.socket,
        tell: Tell,
    ) -> None:
        self.facts = told
        self.endpoint = endpoint
        self.qps = NicQps(endpoint, names, network.rtt_ns)
        self.by_number: dict[int, tuple[NicProgram, ProgramQp]] = {}
        self._network = network
        self._controls = Controls(network, told)
        self._tell = tell
        self._listening = listening
        listening.setblocking(False)
        self._epoll = select.epoll()
        self._epoll.register(listening, select.EPOLLIN)
        self._served: dict[int, Served] = {}
        self._owners: dict[NicProgram, Served] = {}
        self._changed: dict[int, Served] = {}
        """Those with something to tell."""
        self._keys: set[int] = set()
        self._next_key = 0
        self._counts = dict.fromkeys(("programs", "writes", "writes_done", "received", "in_bytes"), 0)

    # Turns

    @property
    def wakes_by(self) -> tuple[int, ...]:
        """Readable when a program has something for us."""
        return (self._epoll.fileno(),)

    def next_ns(self) -> int:
        """When `pump` has something to do by the clock; at once if something is to be told."""
        return 0 if self._changed else self.qps.next_ns()

    def pump(self, now_ns: int) -> None:
        """Take in what programs say, as much as a turn may take, and tell them what is new."""
        self.qps.run(now_ns)
        for fd, mask in self._epoll.poll(0, PROGRAMS_A_TURN):
            if fd == self._listening.fileno():
                self._accept()
                continue
            served = self._served[fd]
            self._changed[fd] = served
            if mask & ~select.EPOLLOUT:
                self._serve(fd, served, now_ns)
        for fd, served in list(self._changed.items()):
            self._flush(fd, served, now_ns)
        self._changed.clear()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            sock, _ = self._listening.accept()
            if len(self._served) >= facts.MOST_PROGRAMS:
                sock.close()
                return
            connection = ProgramConnection(sock)
            self._served[connection.fileno()] = Served(self, self._controls, connection)
            self._epoll.register(connection.fileno(), select.EPOLLIN)

    def _serve(self, fd: int, served: Served, now_ns: int) -> None:
        was_there = served.program
        try:
            for _ in range(DATAGRAMS_OF_EACH):
                if not served.take_datagram(now_ns):
                    break
        except OSError:
            self._end(fd, served, now_ns, "")
        except Malformed as malformed:
            self._end(fd, served, now_ns, str(malformed))
        else:
            if was_there is None and served.program is not None:
                self._owners[served.program] = served
                self._counts["programs"] += 1

    def _flush(self, fd: int, served: Served, now_ns: int) -> None:
        if self._served.get(fd) is not served:
            return  # it has ended, and a new connection may have its number
        was_full = served.connection.full
        try:
            served.flush()
        except OSError:
            self._end(fd, served, now_ns, "")
            return
        except Malformed as malformed:
            self._end(fd, served, now_ns, str(malformed))
            return
        if served.connection.full != was_full:
            self._epoll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if served.connection.full else 0))

    def _end(self, fd: int, served: Served, now_ns: int, why: str) -> None:
        """A program has gone, or has sent what none sends (`why`)."""
        self._epoll.unregister(fd)
        del self._served[fd]
        self._controls.forget(served)
        for name, count in _COUNTED.items():
            self._counts[name] += getattr(served, count)
        if served.program is not None:
            self._owners.pop(served.program, None)
        served.end(now_ns)
        if why:
            who = served.program.owner if served.program is not None else "a program"
            self._tell(
                "program_refused", now_ns, {"program": who, "reason": f"its connection to the daemon was ended: {why}"}
            )

    # Events

    def take_event(self, event: object) -> bool:
        """Hand an event on to its program; True if it is for nobody else."""
        match event:
            case WriteCompleted() | ImmediateDelivered() | QpError():
                return self._take_of_qp(event)
            case PortChanged(peer=None):
                self._take_port(event)
            case EvChanged() | PathAnswered():
                for each in self._controls.take_event(event):
                    self._mark(self._served[each.connection.fileno()])
                return isinstance(event, PathAnswered)
        return False

    def _take_of_qp(self, event: WriteCompleted | ImmediateDelivered | QpError) -> bool:
        found = self.by_number.get(event.qpn)
        if found is None:
            return False
        program, qp = found
        served = self._owners[program]
        self._mark(served)
        match event:
            case WriteCompleted():
                served.written(qp)
            case ImmediateDelivered():
                self._counts["received"] += 1
                served.received(qp, event.immediate, event.length)
            case QpError():
                qp.state = To.ERROR
                served.failed(qp, event.reason)
                return event.reason == QpFailure.BY_PROGRAM
        return True

    def _take_port(self, event: PortChanged) -> None:
        if event.state is PortState.DOWN or event.state is PortState.UP:
            for served in self._served.values():
                if served.program is not None:
                    served.tell_event(PORT_ACTIVE if event.state is PortState.UP else PORT_ERR, event.plane + 1)
                    self._mark(served)

    def _mark(self, served: Served) -> None:
        self._changed[served.connection.fileno()] = served

    # What programs share

    def new_key(self, program: NicProgram) -> int:
        """An index and 8 random bits: another key is seldom a valid one."""
        while True:
            self._next_key = self._next_key % ((1 << 24) - 1) + 1
            key = self._next_key << 8 | random.getrandbits(8)
            if key >> 8 not in self._keys:
                self._keys.add(key >> 8)
                return key

    def free_key(self, key: int) -> None:
        """As of `ProgramHost`. Numbers are given in turn, so that it is long before this one comes again."""
        self._keys.discard(key >> 8)

    def port_mask(self) -> int:
        """Bit n - 1: port n can be used."""
        unusable = self._network.disabled | self._network.without_carrier
        return sum(1 << plane for plane in range(self.facts.planes) if plane not in unusable)

    def counters(self) -> dict[str, int]:
        """Programs that came, writes posted and complete, writes with immediate received, bytes that peers wrote."""
        present = self._served.values()
        running = {name: sum(getattr(each, count) for each in present) for name, count in _COUNTED.items()}
        return {f"verbs_{name}": count + running.get(name, 0) for name, count in self._counts.items()}

    def close(self, now_ns: int) -> None:
        """End all connections and listen no more. Turns go on for the QPs that still answer."""
        for fd, served in list(self._served.items()):
            self._end(fd, served, now_ns, "")
        self._listening.close()
