"""The networks that programs of the user see, beside the fabric: routes over `mrc0`, and the management network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from mrc_testbed.testbed.fabric.batch import IP, IP4, run_batch, run_batches
from mrc_testbed.testbed.fabric.sandbox import network_of, show_instead
from mrc_testbed.topos.overlay import DEVICE, MANAGEMENT, NETWORK_4, NETWORK_6, ipv4, management, names
from mrc_testbed.topos.plan import Host

_HOSTS_FILE = Path("/etc/hosts")
_LOCAL = "127.0.0.1\tlocalhost\n::1\tlocalhost\n"


def show_names(hosts: Iterable[Host]) -> None:
    """In this sandbox, /etc/hosts has the names of these hosts."""
    rows = (f"{address}\t{name}\n" for host in hosts for address, name in names(host.index).items())
    show_instead(_HOSTS_FILE, "".join([_LOCAL, *rows]))


def mark_with_ecn(pids: Mapping[Host, int]) -> None:
    """Have TCP negotiate ECN over `mrc0`, on hosts whose network a process holds. Raises FabricError.

    A feature of the two routes that came with the addresses (ip-route(8)): nothing else on the host changes.
    """
    by_name = {host.name: pid for host, pid in pids.items()}
    four = f"route change {NETWORK_4} dev {DEVICE} proto kernel scope link"
    six = f"route change {NETWORK_6} dev {DEVICE} proto kernel metric 256 features ecn"
    run_batches(IP4, by_name, {host.name: [f"{four} src {ipv4(host.index)} features ecn"] for host in pids})
    run_batches(IP, by_name, {host: [six] for host in by_name})


def connect_management(pids: Mapping[Host, int]) -> None:
    """Connect these hosts by `mgmt0`. Raises FabricError.

    A cable from each host to the network of this process, which routes between them and answers their questions for
    each other's addresses (proxy ARP), so no bridge is needed.
    """
    four, six = Path("/proc/sys/net/ipv4"), Path("/proc/sys/net/ipv6/conf")
    made = [f"link add {_cable(host)} type veth peer name {MANAGEMENT} netns {pid}" for host, pid in pids.items()]
    run_batch(IP, "the management network", os.getpid(), made)
    (four / "ip_forward").write_text("1", encoding="ascii")
    for host, pid in pids.items():
        (four / "conf" / _cable(host) / "proxy_arp").write_text("1", encoding="ascii")
        (four / "neigh" / _cable(host) / "proxy_delay").write_text("0", encoding="ascii")
        (six / _cable(host) / "disable_ipv6").write_text("1", encoding="ascii")
        with network_of(pid, host.name):
            (six / MANAGEMENT / "disable_ipv6").write_text("1", encoding="ascii")
    up = [f"link set {_cable(host)} up" for host in pids]
    ways = [f"route add {management(host.index)}/32 dev {_cable(host)}" for host in pids]
    run_batch(IP4, "the management network", os.getpid(), up + ways)
    ends = {
        host.name: [f"addr add {management(host.index)}/16 dev {MANAGEMENT}", f"link set {MANAGEMENT} up"]
        for host in pids
    }
    run_batches(IP4, {host.name: pid for host, pid in pids.items()}, ends)


def _cable(host: Host) -> str:
    return f"mgmt{host.index}"
