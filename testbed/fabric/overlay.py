"""The network that programs of the user see: routes over the device that the daemon of a host has made."""

from __future__ import annotations

from collections.abc import Mapping

from mrc_testbed.testbed.fabric.batch import IP, IP4, run_batches
from mrc_testbed.topos.overlay import DEVICE, NETWORK_4, NETWORK_6, ipv4
from mrc_testbed.topos.plan import Host


def mark_with_ecn(pids: Mapping[Host, int]) -> None:
    """Have TCP negotiate ECN over the device, on hosts whose network a process holds. Raises FabricError.

    A feature of the two routes that came with the addresses (ip-route(8)): nothing else on the host changes.
    """
    by_name = {host.name: pid for host, pid in pids.items()}
    four = f"route change {NETWORK_4} dev {DEVICE} proto kernel scope link"
    six = f"route change {NETWORK_6} dev {DEVICE} proto kernel metric 256 features ecn"
    run_batches(IP4, by_name, {host.name: [f"{four} src {ipv4(host.index)} features ecn"] for host in pids})
    run_batches(IP, by_name, {host: [six] for host in by_name})
