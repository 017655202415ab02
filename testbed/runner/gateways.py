"""The gateways of the hosts that run programs: what `open_gateway` tells each daemon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrc_testbed.hosts.gateway.packets import HEADER
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.runner.world import World
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.workloads.programs import gateway_qp, mark_bytes, ring_bytes
from mrc_testbed.topos.names import parse_host
from mrc_testbed.topos.overlay import DEVICE, ipv4, ipv6
from mrc_testbed.topos.shape import Shape

LEAST_MTU = 1280
"""Of IPv6 (RFC 8200)."""


def open_gateways(team: Team, scenario: Scenario, world: World) -> None:
    """On every host with a program. Raises RunError where a device cannot be made."""
    shape = scenario.shape()
    requests = {
        name: _request(name, job.all_host_names(shape), shape)
        for job in scenario.job.programs
        for name in job.all_host_names(shape)
    }
    if requests:
        team.ask("open_gateway", requests.__getitem__, hosts=requests)
        world.connect_programs(requests, scenario.transport.of_kernel)


def _request(name: str, hosts: Sequence[str], shape: Shape) -> dict[str, Any]:
    own = parse_host(name) or 0
    numbers = [number for host in hosts if (number := parse_host(host)) is not None]
    peers = [
        {"out": gateway_qp(own, peer), "in": gateway_qp(peer, own), "ipv4": ipv4(peer), "ipv6": ipv6(peer)}
        for peer in numbers
        if peer != own
    ]
    return {
        "name": DEVICE,
        "ipv4": ipv4(own),
        "ipv6": ipv6(own),
        "mtu": max(LEAST_MTU, shape.payload_bytes - HEADER),
        "ring_bytes": ring_bytes(shape),
        "mark_bytes": mark_bytes(shape),
        "peers": peers,
    }
