"""How the switches of a fabric choose among equal next hops: the kernel's settings. Pure.

Packets that list their switches are hashed by outer addresses and flow label, which is policy 0 (RFC 8754, 5.2).

With hash policy 1 the kernel hashes addresses, protocol and ports, but takes a hash that the packet already carries
from its sender's socket, where it has one. The port program clears that hash, as a switch sees what is on the wire.
Policy 3 reads the packet in any case and can add the flow label, which Linux TCP draws again at each timeout; but what
`ip route get` says is true of policy 1 alone (docs/decisions/0066-hashing-by-the-kernel.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan

SEED_FILE = "/proc/sys/net/ipv4/fib_multipath_hash_seed"
_IPV6 = "/proc/sys/net/ipv6"
_BY_ADDRESSES, _BY_PACKET, _BY_FIELDS = 0, 1, 3
_ADDRESSES, _PROTOCOL_PORTS, _FLOW_LABEL = 0x03, 0x34, 0x08
_SEED_RANGE = 1 << 32


class PlainFlow(NamedTuple):
    """What switches hash of a packet: two ports of hosts (by host and plane), protocol, and its two port numbers."""

    source: Host
    destination: Host
    plane: int
    protocol: Literal["udp", "tcp"]
    source_port: int
    destination_port: int


def number_of_way(plan: Plan, flow: PlainFlow, switches: Sequence[str]) -> int:
    """The number of the way over these switches among those of the flow's pair of hosts. Raises FabricError for one
    that is none of them."""
    crossed = tuple(plan.switch_by_name[name].place for name in switches)
    ways = plan.ways(flow.source, flow.destination)
    if crossed not in ways:
        raise FabricError(switches[0], f"find the way to {flow.destination.name}", f"it is {' > '.join(switches)}")
    return ways.index(crossed)


def unpredictable(options: FabricOptions) -> str:
    """Why the kernel's answer to `ip route get` is not the way that packets go; empty where it is."""
    if options.adaptive:
        return "switches choose for each packet (ecmp.choose: adaptive)"
    if options.repath:
        return "ecmp.repath is on"
    if options.hash_ports:
        return "switches hash the ports alone (ecmp.hosts: hashed)"
    return "" if options.port_program else "switches hash as plain shapers do"


def switch_settings(plan: Plan, node: str, options: FabricOptions) -> dict[str, int]:
    """The files under /proc/sys of one switch and their values; none at hosts and where all routes are
    written and have one next hop."""
    switch = plan.switch_by_name.get(node)
    if switch is None or not plan.switches_choose:
        return {}
    settings = {
        # A switch takes a dead port out of its ECMP group by itself; nobody tells the others.
        f"{_IPV6}/conf/default/ignore_routes_with_linkdown": 1,
        f"{_IPV6}/conf/all/ignore_routes_with_linkdown": 1,
        f"{_IPV6}/fib_multipath_hash_policy": _policy(plan, options),
        f"{_IPV6}/fib_multipath_hash_fields": _fields(options),
    }
    if options.hash_seed is not None:
        settings[SEED_FILE] = hash_seed(plan, node, options.ecmp_hash, options.hash_seed)
    return settings


def _policy(plan: Plan, options: FabricOptions) -> int:
    """With adaptive routing the kernel takes the hash that the port program has given a packet."""
    if plan.by_usid:
        return _BY_ADDRESSES
    return _BY_FIELDS if not options.adaptive and unpredictable(options) else _BY_PACKET


def _fields(options: FabricOptions) -> int:
    """What is hashed of a packet with policy 3."""
    return _PROTOCOL_PORTS | (0 if options.hash_ports else _ADDRESSES) | (_FLOW_LABEL if options.repath else 0)


def hash_seed(plan: Plan, node: str, ecmp_hash: str, first: int) -> int:
    """What a switch or host hashes with; `first` is the seed of the first switch, or of all."""
    number = 0
    if ecmp_hash == "independent":
        number = [*(switch.name for switch in plan.switches), *(host.name for host in plan.hosts)].index(node)
    return (first + number) % (_SEED_RANGE - 1) + 1
