"""The content of environment.json: the machine, the parts in use, and the command line."""

from __future__ import annotations

import platform
import shlex
import socket
import sys
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from mrc_testbed.hosts import batches, compiled
from mrc_testbed.hosts.udp import RECEIVE_BUFFER_BYTES
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.fabric.capabilities import Capability
from mrc_testbed.testbed.fabric.privileges import is_rootless
from mrc_testbed.testbed.runner.clocks import both_clocks
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.version import NAME, commit

_DELAY_WORDS = {
    "netem": "netem on the host ports",
    "endpoint": "delay line in the endpoints (this kernel has no netem)",
    "nfqueue": "NFQUEUE at the hosts' ports",
    "none": "nothing: rtt is 0",
}

_NO_PORT_PROGRAM = (
    "no port program: no ECN marks, no trimming, no loss by rule, and packets go on when their sending begins"
)


def describe(found: Iterable[Capability], options: FabricOptions) -> dict[str, Any]:
    """Machine, versions, capabilities and the choices derived from them."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "clocks": both_clocks()._asdict(),
        "command": shlex.join(["mrc-testbed", *sys.argv[1:]]),
        "version": metadata.version(NAME),
        "commit": commit(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": usable_cpus(),
        "python": platform.python_version(),
        "core": compiled.in_use(),
        "sockets": batches.in_use(),
        "capabilities": {capability.name: capability.present for capability in found},
        "sid_device": options.sid_device,
        "delay": options.delay,
        "delay_by": _DELAY_WORDS[options.delay],
        "switch_ports": options.switch_ports,
        **({"thresholds_bdp": asdict(options.thresholds)} if options.port_program else {}),
        **({"rootless": _lost_without_root(options)} if is_rootless() else {}),
    }


def _lost_without_root(options: FabricOptions) -> list[str]:
    lost = [] if options.port_program else [_NO_PORT_PROGRAM]
    allowed = _receive_buffer_bytes() >> 10
    usual = RECEIVE_BUFFER_BYTES >> 10
    if allowed < usual:
        lost.append(f"receive buffers of {allowed:,} KiB (net.core.rmem_max) instead of {usual:,} KiB")
    return lost


def _receive_buffer_bytes() -> int:
    """What the kernel lets a socket of this process have, RECEIVE_BUFFER_BYTES at most.

    A socket is asked: before Linux 6.11 only the machine's first network namespace has net.core.rmem_max in /proc.
    """
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as asked:
        asked.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        return asked.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2  # the kernel doubles it (socket(7))
