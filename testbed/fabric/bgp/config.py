"""Plan -> what FRR's daemons read, and the script that starts them on a switch. Pure.

`systems.py` gives the autonomous system of each switch. Sessions are between the addresses of a link, over which a
T0 announces its hosts; or each switch its uSID, where senders choose paths.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from ipaddress import IPv4Address

from mrc_testbed.testbed.fabric.bgp.systems import autonomous_systems
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.topos import plain, usid
from mrc_testbed.topos.nodes import Switch
from mrc_testbed.topos.plan import Plan

FRR = "/usr/lib/frr"
RUN_FOLDER = "/var/run/frr"
SCRATCH_FOLDER = "/var/tmp/frr"
"""Where each daemon keeps a folder of its own, named by its process: those of several runs would meet there."""
_FIRST_ROUTER = IPv4Address("10.0.0.1")
_MOST_NEXT_HOPS = 64
_SOCKET_OF_ZEBRA = f"{RUN_FOLDER}/zserv.api"
_ANNOUNCED = "ANNOUNCED"
_MORE_OPTIONS = {"zebra": " --v6-rr-semantics"}
"""zebra replaces a route of IPv6 in one step. Without this, and without next hops as objects of the kernel, it takes
the old one away first, as old kernels needed it: packets that come in between meet no route. A switch loses none when
next hops of a route come or go."""


def zebra_text(switch: Switch) -> str:
    """The configuration of zebra, which writes the kernel's routes."""
    # With next hops as objects of the kernel FRR 8.4 takes those for installed that the kernel removed when their port
    # lost its carrier, and ECMP stays incomplete after the first flap (FRRouting/frr#14160, #15505, #14481).
    return f"hostname {switch.name}\nno zebra nexthop kernel enable\n"


def bgpd_text(plan: Plan, switch: Switch, bgp: BgpOptions) -> str:
    """The configuration of bgpd."""
    # A route map that is defined after its use counts five seconds later (`bgp route-map delay-timer`).
    parts = (*_announced(plan, switch, bgp), *_router(plan, switch, bgp), *_families(plan, switch))
    return "\n".join((f"hostname {switch.name}", *parts)) + "\n"


def _neighbours(plan: Plan, switch: Switch) -> Iterator[tuple[str, Switch]]:
    for own, peer in plan.ports[switch.name]:
        if plan.speaks_bgp(own, peer):
            yield plain.transfer_address(peer.ifindex), plan.switch_by_name[peer.node]


def _router(plan: Plan, switch: Switch, bgp: BgpOptions) -> Iterator[str]:
    systems = autonomous_systems(plan, bgp)
    yield f"router bgp {systems[switch.name]}"
    yield f" bgp router-id {_FIRST_ROUTER + plan.switches.index(switch)}"
    yield " no bgp ebgp-requires-policy"
    yield " no bgp default ipv4-unicast"
    yield " bgp bestpath as-path multipath-relax"
    yield f" timers bgp {bgp.keepalive_s} {bgp.hold_s}"
    for address, other in _neighbours(plan, switch):
        yield f" neighbor {address} remote-as {systems[other.name]}"
        yield f" neighbor {address} description {other.name}"
        yield f" neighbor {address} advertisement-interval 0"
        yield f" neighbor {address} timers connect 1"
        if bgp.bfd_interval_ms:
            yield f" neighbor {address} bfd {bgp.bfd_multiplier} {bgp.bfd_interval_ms} {bgp.bfd_interval_ms}"


def _families(plan: Plan, switch: Switch) -> Iterator[str]:
    yield " address-family ipv6 unicast"
    yield f"  maximum-paths {_MOST_NEXT_HOPS}"
    if switch.tier == 0 or plan.learns_locators:
        yield f"  redistribute kernel route-map {_ANNOUNCED}"
    for address, _ in _neighbours(plan, switch):
        yield f"  neighbor {address} activate"
    yield " exit-address-family"


def _announced(plan: Plan, switch: Switch, bgp: BgpOptions) -> Iterator[str]:
    """Of the routes that were written into the kernel: that of the switch's own uSID; or of a T0 those of its hosts, or
    that of the whole group."""
    if plan.learns_locators:
        prefixes = usid.locator(switch.usid)
    elif switch.tier:
        return
    else:
        prefixes = plain.group_prefix(switch.plane, switch.index) + (" ge 128" if bgp.routes == "hosts" else "")
    yield f"ipv6 prefix-list {_ANNOUNCED} permit {prefixes}"
    yield f"route-map {_ANNOUNCED} permit 10"
    yield f" match ipv6 address prefix-list {_ANNOUNCED}"


def start_script(plan: Plan, switch: Switch, options: FabricOptions) -> str:
    """For bash in the namespaces of a switch: start its daemons, and end when one of them does.

    zebra first: bgpd would wait ten seconds before it asks a second time. No daemon listens for a terminal; `vtysh` on
    the node finds them by the files in their folder.
    """
    texts = {"zebra": zebra_text(switch), "bgpd": bgpd_text(plan, switch, options.bgp)}
    daemons = ["zebra", *(["bfdd"] if options.bgp.bfd_interval_ms else []), "bgpd"]
    return "\n".join((*_folders(), *_written(texts), *_started(daemons, texts))) + "\n"


def _folders() -> Iterator[str]:
    """Both are the switch's own: nobody else has its mounts. One that the machine lacks is made in a tmpfs over its
    parent, or it would stay there after the run."""
    for folder in (RUN_FOLDER, SCRATCH_FOLDER):
        parent = os.path.dirname(folder)
        yield f"[ -d {folder} ] || {{ mount -t tmpfs -o mode=0755 tmpfs {parent} && mkdir {folder}; }} || exit 1"
        yield f"umount {folder} 2>/dev/null"
        yield f"mount -t tmpfs -o mode=0755 tmpfs {folder} && chown frr:frr {folder} || exit 1"


def _written(texts: dict[str, str]) -> Iterator[str]:
    for daemon, text in texts.items():
        yield f"printf %s {shlex.quote(text)} >{RUN_FOLDER}/{daemon}.conf"


def _started(daemons: list[str], texts: dict[str, str]) -> Iterator[str]:
    for daemon in daemons:
        config = f" -f {RUN_FOLDER}/{daemon}.conf" if daemon in texts else ""
        yield f"{FRR}/{daemon} -P 0{config}{_MORE_OPTIONS.get(daemon, '')} --log file:{RUN_FOLDER}/{daemon}.log &"
        if daemon == "zebra":
            yield f"until [ -S {_SOCKET_OF_ZEBRA} ] || ! kill -0 $! 2>/dev/null; do sleep 0.02; done"
    yield "wait -n"
