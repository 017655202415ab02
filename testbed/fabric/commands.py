"""Plan -> `ip -batch` and `tc -batch` text, readable in a class. Pure.

A batch line costs 16 us where a netlink library costs 400 us, and supports the uSID flavours
(docs/decisions/0002-set-up-as-batch-text.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from mrc_testbed.testbed.switching.options import (
    NIC_QUEUE_PACKETS,
    QUEUE_BDP,
    FabricOptions,
    control_queue_bytes,
    program_queue_bytes,
    queue_bytes,
)
from mrc_testbed.testbed.switching.tables import AS_PLANNED, Misled, entry_of, led_by, routes_with
from mrc_testbed.topos import names, plain, usid
from mrc_testbed.topos.nodes import Host, Interface
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import SID_DEVICE, Route, RouteKind
from mrc_testbed.topos.shape import WIRE_BYTES, Shape, burst_bytes
from mrc_testbed.topos.tables import routes_of

MTU = 9000
CLASS_CONTROL = "1:10"
CLASS_DATA = "1:20"
STAB_OVERHEAD_BYTES = 1
"""`tc` takes `stab overhead 0` for no size table and fails silently (status 255). With a size table the kernel takes a
packet's length when it is queued, after the port program has trimmed it; without one, trimmed headers are charged at 4
KiB. The virtual queue charges the same byte."""
MOST_SUBFLOWS = 8
"""Of a connection, beside its first: what Linux takes at most (net/mptcp/pm_netlink.c)."""
PORTLESS = (RouteKind.END, RouteKind.BLACKHOLE)
"""Routes of a switch that do not go when its ports do."""
_LOCAL_TABLE = 255
"""End.DT6 must use table `local` (255): with `main` (254) packets to an address on lo are lost. Tried before this
project began."""
_CONTROL_SHARE = 0.95
"""Guaranteed share of the high class. HTB serves a class under its guarantee first: nearly strict priority."""


def link_lines(plan: Plan, pids: dict[str, int]) -> Iterator[str]:
    """All links, each end created in its node's namespace with its final name and index."""
    for link in plan.links:
        near, far = link.near, link.far
        # Kernel TCP would hand over up to 64 KiB at once, which is one packet to shapers and port programs.
        single = "" if not plan.has_plain_addresses or not link.is_host_link else "gso_max_segs 1 "
        yield (
            f"link add name {near.name} index {near.ifindex} address {near.mac} mtu {MTU} {single}"
            f"netns {pids[near.node]}"
            f" type veth peer name {far.name} index {far.ifindex} address {far.mac} mtu {MTU} netns {pids[far.node]}"
        )


def node_lines(plan: Plan, node: str, options: FabricOptions) -> Iterator[str]:
    """Devices, neighbours, addresses and routes of one node."""
    yield from own_lines(plan, node, options)
    for own, peer in plan.ports[node]:
        yield from _port_up(plan, own, peer)
    for route in routes_of(plan, node):
        yield route_line(route)


def own_lines(plan: Plan, node: str, options: FabricOptions) -> Iterator[str]:
    """What one node has whatever it is linked to: devices, and the addresses on lo."""
    yield "link set dev lo up"
    if plan.by_usid:
        yield f"link add name {SID_DEVICE} type {options.sid_device}"
        yield f"link set dev {SID_DEVICE} up"
    host = plan.host_by_name.get(node)
    if host is not None:
        yield from _address_lines(plan, host, options)
    elif plan.answers:
        yield f"addr add {switch_address(plan, node)}/128 dev lo nodad"


def switch_address(plan: Plan, switch: str) -> str:
    """Of a switch that answers. It is on lo, as those of hosts are."""
    return usid.switch_address(plan.switch_by_name[switch].usid)


def _address_lines(plan: Plan, host: Host, options: FabricOptions) -> Iterator[str]:
    """All addresses are on lo: a port that goes down would take its own with it."""
    if plan.by_usid:
        yield f"addr add {host.address}/128 dev lo"
        if options.tunnel_source:
            yield f"sr tunsrc set {host.address}"
    if plan.has_plain_addresses:
        # Without `nodad` an address is not valid at once, and a route that names it would be refused.
        yield from (f"addr add {address}/128 dev lo nodad" for _, address in plan.host_ports(host))
        if options.subflows:
            yield from _subflow_lines(plan, host)


def _subflow_lines(plan: Plan, host: Host) -> Iterator[str]:
    """A host tells its peers of all its addresses. Who dials takes up a subflow to each, from its own in that plane:
    the route to it says which (RFC 8684, 3.4)."""
    yield f"mptcp limits set subflows {MOST_SUBFLOWS} add_addr_accepted {MOST_SUBFLOWS}"
    yield from (f"mptcp endpoint add {address} signal" for _, address in plan.host_ports(host))


def port_address_lines(plan: Plan, node: str) -> Iterator[str]:
    """Addresses of the ports of a node, for when all ports are up: a new one is announced by multicast, and what a port
    sends that has no carrier yet is counted and lost."""
    for own, peer in plan.ports[node]:
        yield from _port_addresses(plan, own, peer)


def _port_addresses(plan: Plan, own: Interface, peer: Interface) -> Iterator[str]:
    """Where BGP is spoken. FRR's sessions wait until a port has a link-local address too, which then is the next
    hop."""
    if plan.speaks_bgp(own, peer):
        yield f"addr replace {own.link_local}/64 dev {own.name} nodad"
        yield f"addr replace {plain.transfer_address(own.ifindex)}/{plain.TRANSFER_BITS} dev {own.name} nodad"


def port_lines(
    plan: Plan, node: str, ports: Collection[Interface], down: Collection[Interface], misled: Misled = AS_PLANNED
) -> Iterator[str]:
    """Restore ports of a node: the kernel dropped their neighbours and routes when they went admin-down.

    `down`: the ports that stay down. `misled`: entries that faults have changed, and which stay so.
    """
    names = {port.name for port in ports}, {port.name for port in down if port.node == node}
    return _restored(plan, node, *names, misled)


def switch_table_lines(
    plan: Plan, switch: str, ports: Collection[Interface], misled: Misled = AS_PLANNED
) -> Iterator[str]:
    """The static table of a booted switch, these ports first; without routes over other ports. `misled`: as for
    `port_lines`."""
    up = {port.name for port in ports}
    return _restored(plan, switch, up, {own.name for own, _ in plan.ports[switch]} - up, misled, PORTLESS)


def mislead_lines(
    plan: Plan, port: Interface, before: Interface | None, after: Interface | None, down: Collection[Interface]
) -> Iterator[str]:
    """The entry of a switch for its neighbour at `port` leads out of another port than before; None: it is missing.
    A port that is down has no entries, and gets its own when it comes up."""
    entry = entry_of(port, plan)
    if before is not None and before not in down:
        yield f"route del {entry.prefix} dev {before.name}"
    if after is not None and after not in down:
        yield route_line(led_by(entry, after, plan))


def _restored(
    plan: Plan,
    node: str,
    up: Collection[str],
    down: Collection[str],
    misled: Misled,
    kinds: Collection[RouteKind] = (),
) -> Iterator[str]:
    """Ports that come up, and what of the table goes with them, besides routes of these kinds."""
    for own, peer in plan.ports[node]:
        if own.name in up:
            yield from _port_up(plan, own, peer)
            yield from _port_addresses(plan, own, peer)
    for route in routes_with(misled, plan, node):
        if route.device in up or route.kind in kinds:
            yield route_line(route)
        elif any(hop.device in up for hop in route.hops):
            yield route_line(without_hops(route, down))


def switch_wipe_lines(plan: Plan, switch: str) -> Iterator[str]:
    """A switch that lost power: no ports, no table (the kernel drops the routes of a port that goes down)."""
    for own, _ in plan.ports[switch]:
        yield f"link set dev {own.name} down"
    for route in routes_of(plan, switch):
        if route.kind in PORTLESS:
            yield f"route del {_type_of(route)}{route.prefix} dev {route.device}"


def without_hops(route: Route, devices: Collection[str]) -> Route:
    """A MULTIPATH route without its next hops over these ports."""
    return replace(route, hops=tuple(hop for hop in route.hops if hop.device not in devices))


def _port_up(plan: Plan, own: Interface, peer: Interface) -> Iterator[str]:
    yield f"link set dev {own.name} up"
    for address in plan.neighbour_addresses(own, peer):
        yield f"neigh replace {address} lladdr {peer.mac} nud permanent dev {own.name}"


def route_line(route: Route) -> str:
    """One route as `ip -6 -batch` reads it."""
    head = f"route add {_type_of(route)}{route.prefix}"
    if route.kind is RouteKind.VIA:
        return f"{head} via {route.target} dev {route.device}" + (f" src {route.source}" if route.source else "")
    if route.kind is RouteKind.MULTIPATH:
        # The kernel keeps those next hops whose ports stayed up, so a heal replaces what is left.
        hops = " ".join(f"nexthop via {hop.gateway} dev {hop.device}" for hop in route.hops)
        return f"route replace {route.prefix} {hops}"
    if route.kind is RouteKind.ENCAP:
        return f"{head} encap seg6 mode encap.red segs {route.target} dev {route.device}"
    if route.kind is RouteKind.END:
        flavor = f"flavors next-csid lblen {usid.LCBLOCK_BITS} nflen {usid.LCNODE_FN_BITS}"
        return f"{head} encap seg6local action End count {flavor} dev {route.device}"
    if route.kind is RouteKind.DT6:
        return f"{head} encap seg6local action End.DT6 table {_LOCAL_TABLE} count dev {route.device}"
    return f"{head} dev {route.device}"


def _type_of(route: Route) -> str:
    return f"{route.kind.value} " if route.kind in (RouteKind.LOCAL, RouteKind.BLACKHOLE) else ""


def queue_lines(plan: Plan, node: str, options: FabricOptions) -> Iterator[str]:
    """The shaper and the two queues of every port of one node (`tc -batch`)."""
    is_host = names.parse_host(node) is not None
    for own, _ in plan.ports[node]:
        rate_bps = plan.rates_bps[own]
        # Only a stab makes the kernel read a packet's length again, so that a trimmed one is charged at its new length.
        stab = f"stab overhead {STAB_OVERHEAD_BYTES} " if options.port_program and not is_host else ""
        yield f"qdisc add dev {own.name} root handle 1: {stab}htb default 20"
        yield from class_lines("add", own.name, rate_bps)
        if not options.port_program:  # which sets the class of each packet itself
            yield _control_filter(own.name, options.marks.control)
        yield from _leaves(own.name, rate_bps, plan.shape, options, is_host)


def class_lines(verb: str, device: str, rate: int) -> Iterator[str]:
    """The classes of one port at a rate in b/s; `verb` is add or change.

    The burst of two packets keeps the real queue inside the port program's virtual one
    (docs/decisions/0020-htb-at-the-planned-rate.md).
    """
    control = int(rate * _CONTROL_SHARE)
    burst = burst_bytes(rate)
    tail = f"ceil {rate}bit burst {burst} cburst {burst} quantum {2 * WIRE_BYTES}"
    head = f"class {verb} dev {device} parent"
    yield f"{head} 1: classid 1:1 htb rate {rate}bit {tail}"
    yield f"{head} 1:1 classid {CLASS_CONTROL} htb rate {control}bit prio 0 {tail}"
    yield f"{head} 1:1 classid {CLASS_DATA} htb rate {rate - control}bit prio 1 {tail}"


def _control_filter(device: str, dscp: int) -> str:
    # IPv6 begins with version(4), traffic class(8): DSCP is under mask 0x0fc0 of the first 16 bits.
    match = f"match u16 0x{dscp << 6:04x} 0x0fc0 at 0"
    return f"filter add dev {device} parent 1: protocol ipv6 prio 1 u32 {match} classid {CLASS_CONTROL}"


def _leaves(device: str, rate_bps: int, shape: Shape, options: FabricOptions, is_host: bool) -> Iterator[str]:
    if is_host and options.delay == "netem":
        leaf = f"netem delay {options.one_way_delay_ns(shape) // 1000}us limit {NIC_QUEUE_PACKETS}"
        control = data = leaf
    elif is_host:
        control = data = f"bfifo limit {NIC_QUEUE_PACKETS * WIRE_BYTES}"
    else:
        control = f"bfifo limit {control_queue_bytes(shape, rate_bps)}"
        data = f"bfifo limit {data_queue_bytes(shape, rate_bps, options)}"
    yield f"qdisc add dev {device} parent {CLASS_CONTROL} handle 10: {control}"
    yield f"qdisc add dev {device} parent {CLASS_DATA} handle 20: {data}"


def data_queue_bytes(shape: Shape, rate_bps: int, options: FabricOptions) -> int:
    """Limit of the data queue of a switch port of this rate."""
    if options.port_program:
        return program_queue_bytes(shape, rate_bps, options.thresholds)
    return queue_bytes(shape, rate_bps, QUEUE_BDP)
