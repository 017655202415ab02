"""A host in virtual time: the same session and the same loop as its daemon has on the kernel, without a process."""

from __future__ import annotations

import json
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from mrc_testbed.hosts.control import Fields
from mrc_testbed.hosts.network import DatagramNetwork
from mrc_testbed.hosts.session import Session
from mrc_testbed.hosts.udp import Lateness, Source
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.heard import heard
from mrc_testbed.testbed.virtual.inbox import Inbox
from mrc_testbed.testbed.virtual.lateness import LateTurns
from mrc_testbed.testbed.virtual.loop import InboxLoop
from mrc_testbed.testbed.virtual.nic import Nic
from mrc_testbed.testbed.virtual.packet import VirtualPacket, VirtualWay
from mrc_testbed.testbed.virtual.scheduler import Due, Scheduler
from mrc_testbed.testbed.xor import xor_arrays

_NOT_ARMED = -1


class _Carrier:
    """Changes of the carrier that the host has not been told of yet."""

    def __init__(self) -> None:
        self._changes: list[tuple[int, bool]] = []

    def put(self, plane: int, up: bool) -> None:
        """A port has lost or found it."""
        self._changes.append((plane, up))

    def changes(self) -> list[tuple[int, bool]]:
        """(plane, carrier) since the last call."""
        found, self._changes = self._changes, []
        return found

    def fileno(self) -> int:
        raise NotImplementedError("nothing waits for a descriptor in virtual time")


class _Probes:
    """Probes of this host to itself, and what is back of them until it looks: see
    mrc_testbed.hosts.probe_socket.ProbeSocket."""

    def __init__(self, nic: Nic) -> None:
        self.lost: Counter[str] = Counter()
        self.strangers = 0
        self.traffic_class = self.delay_ns = 0
        self._nic = nic
        self._ways: dict[str, VirtualWay] = {}
        self._back: deque[tuple[bytes, int]] = deque()

    def put(self, arrival_ns: int, payload: bytes) -> None:
        """A probe is back."""
        self._back.append((payload, arrival_ns + self.delay_ns))

    def send(self, destination: str, payload: bytes) -> bool:
        """Send to a list of uSIDs."""
        way = self._ways.get(destination)
        if way is None:
            way = self._ways[destination] = self._nic.loop(destination)
        why = self._nic.offer(way, payload, self.traffic_class)
        if why:
            self.lost[why] += 1
        return not why

    def receive(self, now_ns: int) -> tuple[bytes, int] | None:
        """The next one that is back."""
        return self._back.popleft() if self._back else None


class _VirtualWiring:
    """What carries the packets of one host. A host has one network interface; all that ask for one get it."""

    def __init__(self, nic: Nic, inbox: Inbox, carrier: _Carrier, probes: _Probes) -> None:
        self._nic, self._inbox, self._carrier, self._probes = nic, inbox, carrier, probes

    def port_watch(self, planes: int) -> _Carrier:
        return self._carrier

    def delay_arrivals(self, delay_ns: int, stamped: bool) -> None:
        self._inbox.delay_ns = self._probes.delay_ns = delay_ns

    def receiver(self, hosts: Mapping[Source, int], *_: object) -> Inbox:
        return self._inbox

    def sender(self, address: str, udp_port: int, default_class: int) -> Nic:
        return self._nic

    def sender_set(self, own: Mapping[str, str], default_class: int) -> Nic:
        return self._nic

    def probes(self, address: str, traffic_class: int) -> _Probes:
        self._probes.traffic_class = traffic_class
        return self._probes


class _Turn(Due):
    """A turn that a host waits for, or waited for until it wanted an earlier one."""

    __slots__ = ("_host",)

    def __init__(self, host: VirtualHost) -> None:
        super().__init__()
        self._host = host

    def act(self) -> None:
        """As of `Due`."""
        self._host.turn_came()


class VirtualHost:
    """Answers requests as a daemon does (docs/architecture.md, "The control channel"), and turns when its loop wants.

    `on_event` takes the events of the endpoint, `log` what a daemon would print as it dies. `late`: by how much its
    turns come later than it wants. `busy_ns`: time that the host needs for each packet sent or received, which keeps
    its next turn waiting, as on a slow machine.
    """

    def __init__(
        self,
        name: str,
        fabric: VirtualFabric,
        scheduler: Scheduler,
        on_event: Callable[[str, Fields], None],
        log: Callable[[str], None],
        late: LateTurns,
        busy_ns: int = 0,
    ) -> None:
        self.answers: dict[int, dict[str, Any]] = {}
        self.stopped = False
        self._name = name
        self._scheduler = scheduler
        self._on_event = on_event
        self._log = log
        self._late = late
        self._busy_ns = busy_ns
        self._handled = 0
        self._free_ns = 0
        self._numbers = count(1)
        self._inbox, self._carrier = Inbox(), _Carrier()
        nic = self._nic = fabric.attach(name, self._deliver, self._carrier_changed, self._port_paused)
        self._number = fabric.plan.host_by_name[name].index
        self._probes = _Probes(nic)
        self._lateness = Lateness()
        wiring = _VirtualWiring(nic, self._inbox, self._carrier, self._probes)
        self._session = Session(self, self._lateness, wiring, lambda: 0, xor_arrays)
        self._loop: InboxLoop | None = None
        self._armed_ns = _NOT_ARMED
        self._wanted_ns = 0

    # The runner's side

    def request(self, command: str, **fields: Any) -> int:
        """Send a request; returns its id. It is carried out as soon as the world goes on."""
        number = next(self._numbers)
        line = json.dumps({"id": number, "cmd": command, **fields}, separators=(",", ":")).encode()
        self._scheduler.at(self._scheduler.now_ns, self._serve, line)
        return number

    def close(self) -> None:
        """It turns no more."""
        self.stopped = True
        self._session.running = False

    # The session's side

    def send(self, fields: Fields) -> None:
        """A line to the runner, which is not there before this turn is over."""
        self._scheduler.at(self._scheduler.now_ns, self._take, heard(fields))

    def _take(self, message: Fields) -> None:
        if "id" in message:
            self.answers[message["id"]] = message
        else:
            self._on_event(self._name, message)

    # What calls for a turn

    def _serve(self, line: bytes) -> None:
        try:
            self._session.handle(line, self._scheduler.now_ns)
        except Exception as error:
            raise self._failed(error) from error
        network = self._session.network
        if self._loop is None and isinstance(network, DatagramNetwork):
            self._inbox.looked_for = network.delay_ns > 0 and network.swift == network.speed
            self._loop = InboxLoop(network, self._session, self._scheduler, self._inbox, self._nic)
            self._follow_ports()  # some may have lost their carrier before the network was there to hear of it
        else:
            self._turn()

    def _deliver(self, arrival_ns: int, packet: VirtualPacket) -> None:
        if packet.way.source == self._number:  # no host sends to itself but probes
            self._probes.put(arrival_ns, packet.data)
            return
        self._inbox.put(arrival_ns, packet)
        if not self._inbox.looked_for and (self._armed_ns == _NOT_ARMED or self._wanted_ns > packet.due_ns):
            self._arm(packet.due_ns)

    def _carrier_changed(self, plane: int, up: bool) -> None:
        self._carrier.put(plane, up)
        self._scheduler.at(self._scheduler.now_ns, self._follow_ports)

    def _follow_ports(self) -> None:
        if self._session.network is not None:
            try:
                self._session.network.follow_ports(self._scheduler.now_ns)
            except Exception as error:
                raise self._failed(error) from error
            self._turn()

    def _port_paused(self, plane: int, paused: bool) -> None:
        """A NIC asks for no packets while its port is paused."""
        network, now_ns = self._session.network, self._scheduler.now_ns
        if not isinstance(network, DatagramNetwork):
            return
        if paused:
            network.endpoint.port_paused(plane, now_ns)
        else:
            network.endpoint.port_resumed(plane, now_ns)
            self._scheduler.at(now_ns, self._turn)

    def _arm(self, wanted_ns: int) -> None:
        """Turn at this time, or a little later, and not at the time before."""
        if wanted_ns != self._wanted_ns or self._armed_ns == _NOT_ARMED:
            self._turn_at(wanted_ns, max(wanted_ns + self._late.next_ns(), self._free_ns))

    def _turn_at(self, wanted_ns: int, at_ns: int) -> None:
        self._wanted_ns, self._armed_ns = wanted_ns, at_ns
        self._scheduler.wake(at_ns, _Turn(self))

    def turn_came(self) -> None:
        """Its turn has come, if it is the one that it waits for."""
        at_ns = self._scheduler.now_ns
        if at_ns == self._armed_ns:
            self._armed_ns = _NOT_ARMED
            self._lateness.add(at_ns - self._wanted_ns)
            self._turn()

    def _turn(self) -> None:
        """As mrc_testbed.hosts.daemon.Daemon does."""
        loop, now_ns = self._loop, self._scheduler.now_ns
        if loop is None or not self._session.running or self._session.held:
            return
        free_ns = max(self._free_ns, self._session.rest_until_ns)
        if now_ns < free_ns:
            self._turn_at(now_ns, free_ns)
            return
        try:
            loop.receive()
            loop.advance(now_ns)
            loop.transmit()
        except Exception as error:
            raise self._failed(error) from error
        if self._busy_ns:
            self._take_time(now_ns)
        if self._session.per_packet_ns:
            self._session.take_time(now_ns)
        if loop.busy:
            self._turn_at(now_ns, max(now_ns, self._free_ns, self._session.rest_until_ns))
        else:
            self._arm(loop.turn_ns(now_ns + loop.quantum_ns))

    def _take_time(self, now_ns: int) -> None:
        network = self._session.network
        if isinstance(network, DatagramNetwork):
            handled = network.packets_in + network.packets_out
            self._free_ns = now_ns + (handled - self._handled) * self._busy_ns
            self._handled = handled

    def _failed(self, error: Exception) -> RunError:
        """What ends a daemon ends the run."""
        self._log(traceback.format_exc())
        return RunError(f"{self._name}: the endpoint failed: {self._session.plugins.reason(error)}")
