"""The networks that programs of the user see, beside the fabric: routes over `mrc0`, and the management network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from mrc_testbed.testbed.fabric.batch import IP, IP4, run_batch, run_batches
from mrc_testbed.testbed.fabric.sandbox import OWN_NAMES, network_of
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.overlay import (
    DEVICE,
    MANAGEMENT,
    MANAGEMENT_NETWORK,
    MANAGEMENT_ROUTER,
    NETWORK_4,
    NETWORK_6,
    ipv4,
    management,
    names,
)

LEAST_RTO_MS = 200
"""Linux's own."""
RTO_RTTS = 25
"""The shortest retransmission timeout of TCP over `mrc0`, in T. On a real network it is 200 ms to T of 10 us."""
SEGMENTS = 16
"""Packets that TCP hands over at once, as one segment: 64 KB."""
_TCP = Path("/proc/sys/net/ipv4")
_LOCAL = "127.0.0.1\tlocalhost\n::1\tlocalhost\n"


def show_names(hosts: Iterable[Host]) -> None:
    """In this sandbox, /etc/hosts has the names of these hosts."""
    rows = (f"{address}\t{name}\n" for host in hosts for address, name in names(host.index).items())
    OWN_NAMES.write_text("".join([_LOCAL, *rows]), encoding="utf-8")


def tune_tcp(pids: Mapping[Host, int], rtt_ns: int) -> None:
    """Have TCP over `mrc0` be CUBIC, negotiate ECN, and wait for the transport before it retransmits, on hosts whose
    network a process holds. Raises FabricError.

    Attributes of the two routes that came with the addresses (ip-route(8)): nothing else on the host changes.
    """
    by_name = {host.name: pid for host, pid in pids.items()}
    tuned = f"rto_min {max(LEAST_RTO_MS, RTO_RTTS * rtt_ns // 10**6)}ms features ecn{_congestion_control()}"
    four = f"route change {NETWORK_4} dev {DEVICE} proto kernel scope link"
    six = f"route change {NETWORK_6} dev {DEVICE} proto kernel metric 256 {tuned}"
    run_batches(IP4, by_name, {host.name: [f"{four} src {ipv4(host.index)} {tuned}"] for host in pids})
    run_batches(IP, by_name, {host: [six] for host in by_name})


def _congestion_control() -> str:
    """CUBIC, the usual one of Linux: it hears marks, which BBR does not. A kernel without it keeps its own."""
    return " congctl cubic" if "cubic" in (_TCP / "tcp_available_congestion_control").read_text().split() else ""


def lengthen_segments(pids: Mapping[Host, int]) -> None:
    """Have TCP on these hosts hand over at least this much at once. Else it is what it sends in 1 ms (tcp(7),
    tcp_tso_autosize), two packets at the rates here, and each costs the gateway as much as a long one."""
    for host, pid in pids.items():
        with network_of(pid, host.name):
            (_TCP / "tcp_min_tso_segs").write_text(str(SEGMENTS), encoding="ascii")


def connect_management(pids: Mapping[Host, int]) -> None:
    """Connect these hosts by `mgmt0`. Raises FabricError.

    A cable from each host to the network of this process, which routes between them. All neighbours are known, so
    nobody asks for addresses, and no bridge is needed.
    """
    six = Path("/proc/sys/net/ipv6/conf")
    run_batch(IP, "the management network", os.getpid(), [_cable_line(host, pid) for host, pid in pids.items()])
    (_TCP / "ip_forward").write_text("1", encoding="ascii")
    for host, pid in pids.items():
        (six / _cable(host) / "disable_ipv6").write_text("1", encoding="ascii")
        with network_of(pid, host.name):
            (six / MANAGEMENT / "disable_ipv6").write_text("1", encoding="ascii")
    lines = [line for host in pids for line in _lines_here(host)]
    run_batch(IP4, "the management network", os.getpid(), lines)
    run_batches(IP4, {host.name: pid for host, pid in pids.items()}, {host.name: _lines_there(host) for host in pids})


def _cable_line(host: Host, pid: int) -> str:
    here, there = _macs(host)
    return f"link add {_cable(host)} address {here} type veth peer name {MANAGEMENT} address {there} netns {pid}"


def _lines_here(host: Host) -> list[str]:
    device, address = f"dev {_cable(host)}", management(host.index)
    return [
        f"link set {device} up",
        f"neigh add {address} lladdr {_macs(host)[1]} {device}",
        f"route add {address}/32 {device}",
    ]


def _lines_there(host: Host) -> list[str]:
    device, router = f"dev {MANAGEMENT}", MANAGEMENT_ROUTER
    return [
        f"addr add {management(host.index)}/16 {device} noprefixroute",
        f"link set {device} up",
        f"neigh add {router} lladdr {_macs(host)[0]} {device}",
        f"route add {MANAGEMENT_NETWORK} via {router} {device} onlink src {management(host.index)}",
    ]


def _cable(host: Host) -> str:
    return f"{MANAGEMENT[:-1]}{host.index}"


def _macs(host: Host) -> tuple[str, str]:
    """Of the end here, and of that in the host: local addresses (IEEE 802, bit 1 of the first byte)."""
    low = f"{host.index >> 8 & 255:02x}:{host.index & 255:02x}"
    return f"02:01:00:00:{low}", f"02:01:00:01:{low}"
