"""What a machine can do, and what of a fabric follows from it: requirements, and the parts to choose."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.shape import Shape

MODULES_FIX = (
    "install the kernel's extra modules (Debian: linux-image-$(uname -r), Ubuntu: linux-modules-extra-$(uname -r))"
)


@dataclass(frozen=True, slots=True)
class Capability:
    """A feature that the testbed uses. `needed`: no fabric without it; else `lost` says what gets worse."""

    name: str
    present: bool
    needed: bool
    lost: str
    fix: str
    detail: str = ""


LINUX = Capability(
    "Linux",
    sys.platform == "linux",
    True,
    "no fabric: its nodes are namespaces of that kernel",
    "use a Linux machine; `run --virtual` needs none",
)
"""What builds fabrics imports modules that only Linux has: require this before."""
ROOT = "root of the machine"
SANDBOX = "sandbox of namespaces"
PORT_PROGRAM = "port program (eBPF)"
NETEM = "netem delay"
KERNEL_DELAY = "kernel delay (nfnetlink_queue)"
MULTIPATH = "multipath routes (ECMP)"
TUNNEL_SOURCE = "source address of SRv6 encapsulation"
HASH_SEED = "hash seed of multipath routes"
PATH_ORDER = "one CPU a switch (RPS)"
FRR = "FRR (zebra, bgpd, bfdd)"
TCP_RTO_MIN = "least retransmission timeout of TCP"
MPTCP = "MPTCP"


def probe() -> list[Capability]:
    """What this machine can do. Without Linux nothing else is tried."""
    if not LINUX.present:
        return [LINUX]
    from mrc_testbed.testbed.fabric.trials import tried

    return tried()


def require(found: Iterable[Capability]) -> None:
    """Raises MissingCapability for the first needed feature that is missing."""
    for capability in found:
        if capability.needed and not capability.present:
            what = f"{capability.name} is missing ({capability.lost})"
            raise MissingCapability(what + (f": {capability.detail}" if capability.detail else ""), capability.fix)


def all_present() -> list[Capability]:
    """What a machine would have that lacks nothing."""
    names = (
        PORT_PROGRAM,
        NETEM,
        KERNEL_DELAY,
        MULTIPATH,
        TUNNEL_SOURCE,
        HASH_SEED,
        PATH_ORDER,
        FRR,
        TCP_RTO_MIN,
        MPTCP,
    )
    return [Capability(name, True, False, "", "") for name in ("dummy device", *names)]


def choose(found: Iterable[Capability], shape: Shape, kernel_speaks: str = "") -> FabricOptions:
    """The better variant if the machine has it, else the fallback. Raises MissingCapability if it has neither.

    `kernel_speaks`: who asks for a protocol that the kernel speaks itself, if any.
    """
    found = list(found)
    present = {capability.name: capability.present for capability in found}
    if not (present.get("dummy device") or present.get("ifb device")):
        raise MissingCapability("neither dummy nor ifb devices can be made", MODULES_FIX)
    maker: Literal["netem", "endpoint", "nfqueue"] = "netem" if present.get(NETEM) else "endpoint"
    if kernel_speaks and shape.rtt_ns:
        maker = _kernel_delay_by(found, kernel_speaks)
    return FabricOptions(
        sid_device="dummy" if present.get("dummy device") else "ifb",
        delay=maker if shape.rtt_ns else "none",
        switch_ports="port program" if present.get(PORT_PROGRAM) else "plain shaper",
        hash_seed=0 if present.get(HASH_SEED) else None,
        tunnel_source=bool(present.get(TUNNEL_SOURCE)),
    )


def _kernel_delay_by(found: Iterable[Capability], what: str) -> Literal["netem", "nfqueue"]:
    """NFQUEUE before netem: netem at a host's port takes packets from TCP's account before they are sent, so that a
    flow fills the port's queue (docs/decisions/0069-kernel-delay-at-the-receiver.md)."""
    by_name = {capability.name: capability for capability in found}
    queue = by_name.get(KERNEL_DELAY)
    if queue is not None and queue.present:
        return "nfqueue"
    if (netem := by_name.get(NETEM)) is not None and netem.present:
        return "netem"
    if queue is None:
        raise MissingCapability(f"{what} needs the kernel delay, which only root can try", "run with sudo")
    raise MissingCapability(
        f"{what} needs a delay for packets of the kernel, and this machine has none: {queue.detail}", queue.fix
    )


def require_port_program(found: Iterable[Capability], what: str) -> None:
    """Raises MissingCapability when this machine cannot run the port program, which `what` needs."""
    require_for(found, PORT_PROGRAM, what, "the port program")


def require_for(found: Iterable[Capability], name: str, what: str, words: str = "") -> None:
    """Raises MissingCapability when this machine lacks the capability of this name, which `what` needs.

    `words`: the name within a sentence, where it is another.
    """
    needed = f"{what} needs {words or name}"
    for capability in found:
        if capability.name == name and capability.present:
            return
        if capability.name == name:
            raise MissingCapability(f"{needed}, which is missing: {capability.detail}", capability.fix)
    raise MissingCapability(f"{needed}, which only root can try", "run with sudo")


def require_congestion_control(name: str) -> None:
    """Raises MissingCapability when the kernel has no TCP congestion control of this name."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as tried:
        try:
            # Root may have any, loaded or not; for others EPERM says that there is one.
            tried.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except PermissionError:
            pass
        except OSError as refused:
            known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
            raise MissingCapability(
                f"this kernel has no TCP congestion control {name} ({os.strerror(refused.errno or 0)})",
                f"write one of {', '.join(sorted(known))}, or load the module tcp_{name}",
            ) from None
