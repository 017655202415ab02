"""Nodes that are Linux, as lines of `ip -batch` and `tc -batch`."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.export.lab.addressed import addressed_routes, port_address
from mrc_testbed.testbed.fabric.commands import node_lines, own_lines, queue_lines, route_line
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.plan import Plan

OPTIONS = FabricOptions(sid_device="dummy", delay="netem", tunnel_source=True)
"""Of a lab: what any kernel from Linux 6.1 on has."""
SYSCTLS = tuple(
    f"sysctl -w net.ipv6.conf.{name}"
    for name in ("all.disable_ipv6=0", "default.disable_ipv6=0", "all.accept_ra=0", "all.forwarding=1")
)
"""Commands: a container has no IPv6 at first, and its links are there before them."""


def linux_lines(plan: Plan, node: str) -> Iterator[str]:
    """A node among nodes of Linux, with the MAC addresses of the plan: devices, neighbours, addresses, routes."""
    for own, _ in plan.ports[node]:
        yield f"link set dev {own.name} address {own.mac}"
    yield from node_lines(plan, node, OPTIONS)


def addressed_lines(plan: Plan, node: str) -> Iterator[str]:
    """The same of a host beside switches whose MAC addresses are not known."""
    yield from own_lines(plan, node, OPTIONS)
    for own, _ in plan.ports[node]:
        yield f"link set dev {own.name} up"
        yield f"addr add {port_address(own.ifindex)} dev {own.name} nodad"
    for route in addressed_routes(plan, node):
        yield route_line(route)


def shaping_lines(plan: Plan, node: str) -> Iterator[str]:
    """Rates and queues of its ports by HTB, and half of T at each host by netem, in each direction."""
    yield from queue_lines(plan, node, OPTIONS)
