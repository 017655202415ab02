"""How the switches of a fabric choose among equal next hops: the kernel's settings. Pure.

With hash policy 1 the kernel hashes addresses, protocol and ports, but takes a hash that the packet already carries
from its sender's socket, where it has one. The port program clears that hash, as a switch sees what is on the wire.
Policy 3 reads the packet in any case and can add the flow label, which Linux TCP draws anew at each timeout; but what
`ip route get` says is true of policy 1 alone (docs/decisions.md).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from testbed.fabric.options import FabricOptions
from topos.plan import Host, Plan, Routing, Switch

SEED_FILE = "/proc/sys/net/ipv4/fib_multipath_hash_seed"
_IPV6 = "/proc/sys/net/ipv6"
_BY_PACKET, _BY_FIELDS = 1, 3
_ADDRESSES_PROTOCOL_PORTS, _FLOW_LABEL = 0x37, 0x08
_SEED_RANGE = 1 << 32


class PlainFlow(NamedTuple):
    """What switches hash of a packet: two ports of hosts (by host and plane), protocol, and its two port numbers."""

    source: Host
    destination: Host
    plane: int
    protocol: Literal["udp", "tcp"]
    source_port: int
    destination_port: int


def is_predictable(options: FabricOptions) -> bool:
    """True where the kernel's answer to `ip route get` is the way that packets go."""
    return options.port_program and not options.repath


def switch_settings(plan: Plan, node: str, options: FabricOptions) -> dict[str, int]:
    """The files under /proc/sys of one switch and their values; none at hosts and in a fabric of SRv6."""
    switch = plan.switch_by_name.get(node)
    if switch is None or plan.routing is Routing.SRV6:
        return {}
    settings = {
        # A switch takes a dead port out of its ECMP group by itself; nobody tells the others.
        f"{_IPV6}/conf/default/ignore_routes_with_linkdown": 1,
        f"{_IPV6}/conf/all/ignore_routes_with_linkdown": 1,
        f"{_IPV6}/fib_multipath_hash_policy": _BY_PACKET if is_predictable(options) else _BY_FIELDS,
        f"{_IPV6}/fib_multipath_hash_fields": _ADDRESSES_PROTOCOL_PORTS | (_FLOW_LABEL if options.repath else 0),
    }
    if options.hash_seed is not None:
        settings[SEED_FILE] = hash_seed(plan, switch, options, options.hash_seed)
    return settings


def hash_seed(plan: Plan, switch: Switch, options: FabricOptions, first: int) -> int:
    """What a switch hashes with; `first` is the seed of the first one, or of all."""
    number = plan.switches.index(switch) if options.ecmp_hash == "independent" else 0
    return (first + number) % (_SEED_RANGE - 1) + 1
