"""Packets keep their order on a path: each switch takes them in on one CPU.

Linux has a backlog of received packets for each CPU, and a veth uses that of the CPU which sends. A sender that moves
to another CPU, or a shaper's timer that runs on another, puts packets of one path into two backlogs, and when one CPU
is late the packets of the other come first. Go-back-n takes that for loss
(docs/decisions/0087-a-path-keeps-its-order.md). With Receive Packet Steering (Linux,
Documentation/networking/scaling.rst) all that a switch receives goes to the backlog of one CPU, and so does what it
sends on, for that CPU's timers send it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.sandbox import mounted_sysfs, network_of


def keep_path_order(pids: Mapping[str, int], switches: Iterable[str]) -> None:
    """Give each switch one CPU, the CPUs in turn, for all ports that it has now. Raises FabricError if the kernel
    refuses."""
    cpus = sorted(os.sched_getaffinity(0))
    for number, switch in enumerate(switches):
        with network_of(pids[switch], switch), mounted_sysfs() as folder:
            _give_cpu(switch, folder, cpus[number % len(cpus)])


def _give_cpu(switch: str, sysfs: Path, cpu: int) -> None:
    for file in sysfs.glob("class/net/*/queues/rx-*/rps_cpus"):
        try:
            file.write_text(cpu_mask(cpu), encoding="ascii")
        except OSError as refused:
            port, what = file.parts[-4], os.strerror(refused.errno or 0)
            raise FabricError(switch, f"give port {port} one CPU", what) from None


def cpu_mask(cpu: int) -> str:
    """A set of one CPU as sysfs reads it: words of 32 CPUs in hexadecimal, the highest first."""
    words = [0] * (cpu // 32 + 1)
    words[0] = 1 << cpu % 32
    return ",".join(f"{word:08x}" for word in words)
