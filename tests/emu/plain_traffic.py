"""Packets without encapsulation on a fabric whose switches choose the path: UDP flows by source port, and RoCE's."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mrc_testbed.testbed.checks.conservation import Books, Ledger, balance
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of
from mrc_testbed.testbed.runner.books import port_books
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from tests.emu.conftest import isolated
from tests.port_cases import PLAIN_DATA, rc_packet

ROCE = 4791
FIRST_PORT = 0xC000
WRITE_MIDDLE, WRITE_ONLY, ACKNOWLEDGE = 0x07, 0x0A, 0x11
SHAPE = clos2_shape(planes=2, t0_groups=2, t1=4, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=20_000_000)
"""h0 and h1 in one group, h2 and h3 in the other."""
RC_HEADER_BYTES = 12 + 16 + 4


def with_ecmp(body: Callable[[Fabric], None], options: FabricOptions, shape: Shape = SHAPE, **changes: Any) -> None:
    """Run `body` on such a fabric in a sandbox."""
    asked = replace(options, data=PLAIN_DATA, **changes)
    isolated(lambda: body(Fabric.build(build_plan(shape, Routing.ECMP_STATIC), asked)))


def address(fabric: Fabric, host: str, plane: int = 0) -> str:
    return dict(fabric.plan.host_ports(fabric.plan.host_by_name[host]))[plane]


def flow(fabric: Fabric, source: str, destination: str, port: int, plane: int = 0) -> PlainFlow:
    hosts = fabric.plan.host_by_name
    return PlainFlow(hosts[source], hosts[destination], plane, "udp", port, ROCE)


def flows(fabric: Fabric, source: str, destination: str, count: int, plane: int = 0) -> list[PlainFlow]:
    return [flow(fabric, source, destination, FIRST_PORT + n, plane) for n in range(count)]


def opened(fabric: Fabric, one: PlainFlow, traffic_class: int = 0) -> socket.socket:
    """A UDP socket at the source of a flow."""
    with network_of(fabric.pids[one.source.name], one.source.name):
        found = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, traffic_class)
    found.bind((address(fabric, one.source.name, one.plane), one.source_port))
    return found


def send(fabric: Fabric, one: PlainFlow, data: bytes, times: int = 1, traffic_class: int = 0) -> None:
    target = (address(fabric, one.destination.name, one.plane), one.destination_port)
    with opened(fabric, one, traffic_class) as sender:
        for _ in range(times):
            sender.sendto(data, target)


class Listener:
    """A UDP socket at port 4791 of a host, on all its addresses."""

    def __init__(self, fabric: Fabric, host: str) -> None:
        with network_of(fabric.pids[host], host):
            self.socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
        self.socket.bind(("::", ROCE))

    def take(self, quiet_s: float = 0.3) -> list[tuple[bytes, int, int]]:
        """(datagram, source port, ECN) of everything that arrives until nothing has for `quiet_s`."""
        self.socket.settimeout(quiet_s)
        got = []
        while True:
            try:
                data, ancillary, _, sender = self.socket.recvmsg(9216, 256)
            except TimeoutError:
                return got
            (traffic_class,) = [value for _, kind, value in ancillary if kind == socket.IPV6_TCLASS]
            got.append((data, sender[1], traffic_class[0] & 3))


def flood(fabric: Fabric, chosen: Iterable[PlainFlow], seconds: float, traffic_class: int) -> int:
    """Full packets of RoCE on all flows at the rate of their NICs. Returns how many were sent."""
    stop, sent = threading.Event(), []

    def run(one: PlainFlow) -> None:
        count = 0
        with opened(fabric, one, traffic_class) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
            target = (address(fabric, one.destination.name, one.plane), one.destination_port)
            while not stop.is_set():
                sender.sendto(rc_packet(WRITE_MIDDLE, 1, 4096), target)
                count += 1
        sent.append(count)

    threads = [threading.Thread(target=run, args=(one,)) for one in chosen]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(sent)


def transfer(fabric: Fabric, source: str, destination: str, size: int, port: int) -> int:
    """`size` bytes over one TCP connection of plane 0. Returns how many arrived."""
    with network_of(fabric.pids[destination], destination):
        server = socket.create_server(("::", ROCE), family=socket.AF_INET6)
    with network_of(fabric.pids[source], source):
        client = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    received = 0

    def receive() -> None:
        nonlocal received
        with server.accept()[0] as stream:
            while data := stream.recv(1 << 16):
                received += len(data)

    reader = threading.Thread(target=receive)
    reader.start()
    with server, client:
        client.bind((address(fabric, source), port))
        client.connect((address(fabric, destination), ROCE))
        client.sendall(bytes(size))
        client.shutdown(socket.SHUT_WR)
        reader.join(20)
    return received


def ports_ledger(fabric: Fabric, broken: Iterable[str] = ()) -> Ledger:
    """The books of the ports, when all is quiet."""
    rows = port_books(fabric, fabric.queues())
    ports = {(node, port): figures for node, found in rows.items() for port, figures in found.items()}
    return balance(fabric.plan, Books(ports, None), set(broken))
