"""A small virtual fabric, the packets that tests send through it, and what came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.checks.conservation import Books, Ledger, balance
from mrc_testbed.testbed.runner.books import port_books
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.nic import Nic
from mrc_testbed.testbed.virtual.packet import VirtualPacket
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from tests.port_cases import PLAIN_DATA, SMALL

OPTIONS = FabricOptions("ifb", "endpoint", "port program")
ROCE_PORT = 4791
FIRST_PORT = 0xC000
FOR_EVER_NS = 1 << 62


class Got(NamedTuple):
    """A datagram as a host was given it."""

    at_ns: int
    data: bytes
    source: int
    flow_label: int
    source_port: int
    traffic_class: int


def got_of(at_ns: int, packet: VirtualPacket) -> Got:
    """What its host was given of a packet."""
    way = packet.way
    return Got(at_ns, packet.whole(), way.source, way.flow_label, way.source_port, packet.traffic_class)


class Stage:
    """A virtual fabric all of whose hosts are attached. `got`, `carrier`: what each of them was given and told;
    `sent`: of each packet that it sent, whether it was data."""

    def __init__(
        self, shape: Shape = SMALL, options: FabricOptions = OPTIONS, seed: int = 1, routing: Routing = Routing.SRV6
    ) -> None:
        options = options if routing is Routing.SRV6 else replace(options, data=PLAIN_DATA)
        self.scheduler = Scheduler()
        self.fabric = VirtualFabric(build_plan(shape, routing), options, self.scheduler, seed)
        self.plan = self.fabric.plan
        self.got: dict[str, list[Got]] = {}
        self.carrier: dict[str, list[tuple[int, bool]]] = {}
        self.nics: dict[str, Nic] = {}
        self.sent: dict[str, list[bool]] = {}
        for host in self.plan.hosts:
            self.attach(host.name)

    def attach(self, name: str) -> None:
        """Attach a host, for the first time or again."""
        got = self.got[name] = []
        told = self.carrier[name] = []
        self.sent[name] = []
        self.nics[name] = self.fabric.attach(
            name,
            lambda at_ns, packet: got.append(got_of(at_ns, packet)),
            lambda plane, up: told.append((plane, up)),
        )

    def to(self, source: str, destination: str, path: int = 0) -> Any:
        """Where a host sends for one of its paths to another."""
        hosts = self.plan.host_by_name
        chosen = self.plan.paths(hosts[source], hosts[destination])[path]
        return chosen.inner, ROCE_PORT, chosen.id.flow_label, 0

    def flow(self, source: str, destination: str, source_port: int = FIRST_PORT, plane: int = 0) -> PlainFlow:
        """What switches see of packets from this port."""
        hosts = self.plan.host_by_name
        return PlainFlow(hosts[source], hosts[destination], plane, "udp", source_port, ROCE_PORT)

    def plain_to(self, source: str, destination: str, uplink: int) -> Any:
        """Where a host sends so that the switches choose this uplink."""
        flows = (self.flow(source, destination, FIRST_PORT + number) for number in range(256))
        return next(self.destination(one) for one in flows if self.fabric.predicted_uplinks([one]) == [uplink])

    def destination(self, flow: PlainFlow) -> Any:
        """Where the source of a flow sends."""
        address = dict(self.plan.host_ports(flow.destination))[flow.plane]
        return flow.source_port, (address, ROCE_PORT, 0, 0)

    def send(
        self,
        data: bytes,
        source: str = "h0",
        destination: str = "h2",
        path: int = 0,
        traffic_class: int = wire.CLASS_TRIMMABLE,
    ) -> None:
        """Send now from one host to another over one of its paths."""
        self.give(source, data, self.to(source, destination, path), traffic_class)

    def give(self, source: str, data: bytes, destination: Any, traffic_class: int) -> None:
        """Send now, to where the host's socket would."""
        plain = self.plan.routing is Routing.ECMP_STATIC
        self.sent[source].append(data[0] in PLAIN_DATA.headers if plain else traffic_class != bth.CLASS_CONTROL)
        self.nics[source].send(data, destination, traffic_class)

    def run(self, for_ns: int = FOR_EVER_NS) -> None:
        """Until nothing is due any more, or so long."""
        self.scheduler.run_until(lambda: self.scheduler.next_ns is None, self.scheduler.now_ns + for_ns)

    def at(self, t_ns: int, action: Callable[..., Any], *arguments: Any) -> None:
        """Do something at a time."""
        self.scheduler.at(t_ns, action, *arguments)

    def ledger(self, broken_links: tuple[str, ...] = ()) -> Ledger:
        """The books of the fabric and its hosts, as those of a run."""
        ports = {
            (node, port): counts
            for node, found in port_books(self.fabric, self.fabric.queues()).items()
            for port, counts in found.items()
        }
        hosts = {
            name: {
                "data_sent": sum(sent),
                "packets_out": len(sent),
                "send_errors": self.nics[name].lost.total(),
                "packets_in": len(self.got[name]),
                "strangers": 0,
                "socket_drops": 0,
            }
            for name, sent in self.sent.items()
        }
        return balance(self.plan, Books(ports, hosts), broken_links)
