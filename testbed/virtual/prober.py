"""Questions of hosts to switches in virtual time: through the queues, rules and tables of the virtual ports.

A host holds what it sends for half of T, as a host on the kernel does whose NIC delays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mrc_testbed.testbed.oam.probes import PACE_NS, TIMEOUT_NS, TIMEOUT_T, HopAnswer, HopProber, HopSays, Probe
from mrc_testbed.testbed.switching.port_counts import OTHER, VERDICTS
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.packet import VirtualPacket, VirtualWay
from mrc_testbed.testbed.virtual.port import Choose, Port
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos import names
from mrc_testbed.topos.nodes import Host

_OTHER_ROW = OTHER * VERDICTS
_PAYLOAD_BYTES = 64
_FRAME_BYTES = 14 + 40 + 40 + _PAYLOAD_BYTES
_NOBODY = -1
"""In place of what no header says."""


@dataclass(slots=True, eq=False)
class _Flight:
    """A question on its way, or the answer to it. `passed`: switches so far; `said`: what the answer says, by whom, and
    what was left on the list."""

    probe: Probe
    data: bytes
    sent_ns: int
    passed: int = 0
    said: tuple[HopSays, str, tuple[int, ...]] | None = None
    answer: HopAnswer | None = None


class VirtualProber(HopProber):
    """Asks from any host of a fabric that nobody else uses. Its switches answer as those on the kernel do."""

    def __init__(self, fabric: VirtualFabric, scheduler: Scheduler) -> None:
        self._fabric = fabric
        self._plan = fabric.plan
        self._topology = fabric.topology
        self._scheduler = scheduler
        self._flights: dict[VirtualWay, _Flight] = {}
        self._by_data: dict[bytes, _Flight] = {}
        self._serial = 0
        for host in self._plan.hosts:
            fabric.attach(host.name, partial(self._deliver, host), lambda *_: None)
        for switch in self._plan.switches:
            for _, peer in self._plan.ports[switch.name]:
                port = self._port(switch.name, peer.node)
                port.choose = self._choose_or(port.choose)

    def _choose_or(self, usual: Choose) -> Choose:
        def choose(packet: VirtualPacket) -> tuple[Port, ...]:
            flight = self._flights.get(packet.way)
            return usual(packet) if flight is None else self._at_switch(flight, packet)

        return choose

    def ask(self, probes: Sequence[Probe]) -> list[HopAnswer | None]:
        """As of `HopProber`."""
        begin_ns = self._scheduler.now_ns
        flights = []
        for number, probe in enumerate(probes):
            self._serial += 1
            data = self._serial.to_bytes(8, "big").ljust(_PAYLOAD_BYTES, b"\0")
            flight = _Flight(probe, data, begin_ns + number * PACE_NS)
            self._later(flight.sent_ns - begin_ns, self._send, flight)
            flights.append(flight)
            self._by_data[data] = flight
        patience_ns = len(probes) * PACE_NS + max(TIMEOUT_NS, TIMEOUT_T * self._plan.shape.rtt_ns)
        self._scheduler.run_until(lambda: all(flight.answer for flight in flights), begin_ns + patience_ns)
        self._flights.clear()
        self._by_data.clear()
        return [flight.answer for flight in flights]

    def _later(self, after_ns: int, send: Callable[[_Flight], None], flight: _Flight) -> None:
        """A host sends, half of T later."""
        self._scheduler.at(self._scheduler.now_ns + after_ns + self._plan.shape.rtt_ns // 2, send, flight)

    def _send(self, flight: _Flight) -> None:
        probe = flight.probe
        self._offer(flight, (self._topology.nic(probe.source, probe.plane),), probe.source, probe.target)

    def _offer(self, flight: _Flight, ports: tuple[Port, ...], source: Host, target: Host | None) -> None:
        """Packets for a switch have no headers that rules by path or host look into."""
        path = flight.probe.path
        ends = (source.index, target.index) if target is not None else (_NOBODY, _NOBODY)
        uplink, label = (path.uplink, path.flow_label) if path is not None else (_NOBODY, 0)
        way = VirtualWay(ports, *ends, flight.probe.plane, uplink, 0, label, *ends)
        self._flights[way] = flight
        packet = VirtualPacket(way, flight.data, _FRAME_BYTES, 0, _OTHER_ROW, False)
        if ports[0].up:
            ports[0].offer(packet, self._scheduler.now_ns)

    def _at_switch(self, flight: _Flight, packet: VirtualPacket) -> tuple[Port, ...]:
        """The ports of a packet in a switch: onward, or back with an answer."""
        if flight.said is not None:  # an answer that went astray
            return ()
        probe, at = flight.probe, packet.ports[-1].peer.interface.node
        expected = names.switch_name(probe.plane, *probe.way[flight.passed])
        says = HopSays.NO_ROUTE
        if at == expected:
            flight.passed += 1
            onward = self._onward(flight, at)
            if onward is None:
                says = HopSays.REPLY if flight.passed == len(probe.uids) else HopSays.NO_ROUTE
            elif probe.target is not None and flight.passed == probe.hops:
                says = HopSays.HOPS_ENDED
            else:
                return (*packet.ports, onward)
        flight.said = says, at, tuple(probe.uids[flight.passed :])
        return (*packet.ports, *self._back(flight, at))

    def _onward(self, flight: _Flight, at: str) -> Port | None:
        """The port to what comes next on the list; None without an entry, or where the list ends."""
        probe, passed = flight.probe, flight.passed
        if passed == len(probe.uids):
            return None
        following = probe.target.name if probe.target is not None and passed == len(probe.way) else ""
        port = self._port(at, following or names.switch_name(probe.plane, *probe.way[passed]))
        return port if port.up and port.instead is not None else None

    def _back(self, flight: _Flight, at: str) -> tuple[Port, ...]:
        """The way of an answer, by the routes of switches to hosts; none where they have none."""
        source, plane = flight.probe.source, flight.probe.plane
        nodes = [at]
        while nodes[-1] != names.switch_name(plane, 0, source.group):
            places = self._plan.next_places(self._plan.switch_by_name[nodes[-1]].place).get(source.group)
            if not places:
                return ()
            nodes.append(names.switch_name(plane, *places[flight.probe.number % len(places)]))
        return self._topology.through([*nodes, source.name])

    def _port(self, node: str, peer: str) -> Port:
        return self._topology.through([node, peer])[0]

    def _deliver(self, host: Host, now_ns: int, packet: VirtualPacket) -> None:
        flight = self._by_data.get(packet.data)
        if flight is None:
            return
        if flight.said is not None:
            says, by, left = flight.said
            flight.answer = HopAnswer(says, by, now_ns - flight.sent_ns, left)
        elif flight.probe.source in self._plan.peers_of(host):
            flight.said = HopSays.REPLY, host.name, ()
            self._later(0, self._reply, flight)

    def _reply(self, flight: _Flight) -> None:
        """From the host at the end of a path, by the path of the same number back."""
        source, target, path = flight.probe.source, flight.probe.target, flight.probe.path
        if target is None or path is None:
            return
        nodes = [target.name, *self._plan.switches_on_path(target, source, path), source.name]
        self._offer(flight, self._topology.through(nodes), target, source)
