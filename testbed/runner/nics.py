"""What programs with verbs find of the NIC of their host: variables, libraries, a folder of /sys."""

from __future__ import annotations

import os
from typing import Any

from mrc_testbed.hosts.verbs.messages import DEVICE, DEVICE_VARIABLE, GID_INDEX, SOCKET_VARIABLE
from mrc_testbed.testbed.fabric.verbs_library import PRELOAD, SOURCES, libraries
from mrc_testbed.testbed.scenario.model.programs import Programs, Verbs
from mrc_testbed.topos.names import parse_host
from mrc_testbed.topos.overlay import DEVICE as NETWORK
from mrc_testbed.topos.overlay import MANAGEMENT, ipv4

SOCKET = "@mrc-testbed-verbs"
"""In the network namespace of each host, so that all may have the same name."""


def verbs_environment(entry: Programs, ranks: tuple[str, ...]) -> dict[str, str]:
    """Variables of the programs of a job: where the NIC is, and what libraries of collectives ask for. Its rendezvous
    goes over the management network, which no fault touches."""
    if not entry.verbs:
        return {}
    found = {
        SOCKET_VARIABLE: SOCKET,
        DEVICE_VARIABLE: DEVICE,
        "MASTER_ADDR": f"{ranks[0]}-mgmt",
        "GLOO_SOCKET_IFNAME": MANAGEMENT,
        "NCCL_SOCKET_IFNAME": MANAGEMENT,
        "NCCL_IB_HCA": DEVICE,
        "NCCL_IB_GID_INDEX": str(GID_INDEX),
    }
    return found | (_of_libraries(entry.verbs) if entry.verbs != Verbs.PYTHON else {})


def _of_libraries(how: Verbs | bool) -> dict[str, str]:
    folder = libraries()
    told = {"MRC_TESTBED_LIBS": str(folder), "MRC_TESTBED_INCLUDE": str(SOURCES)}
    shim = {"VMRC_LIBIBVERBS_SO": str(folder / "libibverbs.so.1"), "VMRC_LIBMRC_SO": str(folder / "libmrc.so")}
    if how == Verbs.PRELOAD:
        return {**told, **shim, "LD_PRELOAD": str(folder / PRELOAD)}
    path = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**told, **shim, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, path))}


def nic_of(entry: Programs, host: str) -> dict[str, Any] | None:
    """What a program finds of the NIC in /sys/class/infiniband; None without verbs."""
    if not entry.verbs:
        return None
    return {"device": DEVICE, "gid_index": GID_INDEX, "ipv4": ipv4(parse_host(host) or 0), "netdev": NETWORK}
