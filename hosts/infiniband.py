"""What a program finds of its host's NIC below /sys/class/infiniband: a folder of files, as kernels with RDMA have it.

The classes of the machine are bound beside it. Source: Documentation/ABI/stable/sysfs-class-infiniband of the kernel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CLASSES = Path("/sys/class")
_PCI = "devices/pci0000:00/0000:01:00.0"
"""Where the device would be on a bus. Programs take its last characters for a number of a function."""
_MS_BIND, _MS_REC = 1 << 12, 1 << 14
_ENTRIES = 4
"""Of the GID table."""

Mount = Callable[[str | None, str, str | None, int], None]
"""source, target, kind, flags."""


def own_nic(nic: Mapping[str, Any], mount: Mount) -> None:
    """In a mount namespace of its own: a /sys/class with the NIC in it. `nic`: `device`, the `gid_index` of `ipv4`, and
    the `netdev` it belongs to. Raises OSError."""
    there = os.open(CLASSES, os.O_PATH)
    names = [name for name in os.listdir(CLASSES) if name != "infiniband"]
    mount("tmpfs", str(CLASSES), "tmpfs", 0)
    for name in names:
        (CLASSES / name).mkdir()
        mount(f"/proc/self/fd/{there}/{name}", str(CLASSES / name), None, _MS_BIND | _MS_REC)
    os.close(there)
    root = CLASSES / "infiniband"
    root.mkdir()
    _write(root, nic)


def _write(root: Path, nic: Mapping[str, Any]) -> None:
    pci = CLASSES / ".mrc-testbed" / _PCI
    pci.mkdir(parents=True)
    device = root / nic["device"]
    for name, content in _files(nic).items():
        path = device / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n", encoding="ascii")
    (device / "device").symlink_to(pci)


def _files(nic: Mapping[str, Any]) -> dict[str, str]:
    own = nic["gid_index"]
    mapped = "0000:0000:0000:0000:0000:ffff:" + "{:02x}{:02x}:{:02x}{:02x}".format(*map(int, nic["ipv4"].split(".")))
    port = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "link_layer": "Ethernet",
        "rate": "100 Gb/sec (4X EDR)",
        "lid": "0x0",
        **{f"gids/{index}": mapped if index == own else ":".join(["0000"] * 8) for index in range(_ENTRIES)},
        f"gid_attrs/types/{own}": "RoCE v2",
        f"gid_attrs/ndevs/{own}": nic["netdev"],
    }
    return {
        "node_type": "1: CA",
        "node_desc": "mrc-testbed",
        "fw_ver": "1.0.0",
        **{f"ports/1/{name}": content for name, content in port.items()},
    }
