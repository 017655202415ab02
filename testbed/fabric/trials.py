"""Finds out what this machine can do: by trying in a scratch namespace, never by a version number."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.fabric import delay_program, nfqueue, port_program
from mrc_testbed.testbed.fabric.bgp.config import FRR as FRR_FOLDER
from mrc_testbed.testbed.fabric.capabilities import (
    FRR,
    HASH_SEED,
    KERNEL_DELAY,
    MODULES_FIX,
    MPTCP,
    MULTIPATH,
    NETEM,
    PATH_ORDER,
    PORT_PROGRAM,
    ROOT,
    SANDBOX,
    TCP_RTO_MIN,
    TUNNEL_SOURCE,
    Capability,
)
from mrc_testbed.testbed.fabric.privileges import is_rootless, refusal
from mrc_testbed.testbed.fabric.sandbox import call_isolated, scratch_network, unmount_bpffs
from mrc_testbed.testbed.isolated import isolated_python
from mrc_testbed.testbed.switching.options import FabricOptions

_NEW_KERNEL = "use Linux 6.1 or newer with SRv6 (CONFIG_IPV6_SEG6_LWTUNNEL): Debian 12, Ubuntu 24.04"
_BPF_KERNEL = (
    "run as root on a kernel with CONFIG_BPF_SYSCALL, NET_CLS_BPF and NET_SCH_INGRESS (Debian 12, Ubuntu 24.04)"
)
_SUDO = "run with sudo"
_FRR_FIX = "apt-get install frr; its service need not run"
_APT = "make setup, or apt-get install "


@dataclass(frozen=True, slots=True)
class KernelTest:
    """Commands that succeed where a feature is there; the other fields as of Capability."""

    name: str
    needed: bool
    lost: str
    fix: str
    commands: tuple[str, ...]
    expect: str = ""
    """Must appear in the last command's output: some kernels accept a flag and silently ignore it."""


_TOOLS = (
    ("ip", True, "no fabric", "iproute2"),
    ("tc", True, "no queues", "iproute2"),
    ("mnexec", True, "no nodes", "mininet"),
    ("ifconfig", True, "Mininet refuses to start a node", "net-tools"),
    ("unshare", True, "no sandbox to try the kernel in", "util-linux"),
    ("ping", False, "no ping in `mrc-testbed shell`", "iputils-ping"),
    ("tcpdump", False, "no captures", "tcpdump"),
)
_KERNEL_DELAY_LOST = "no `transport: tcp` without netem: what the kernel itself speaks cannot be delayed by T"
_QUEUE_KERNEL = (
    "run as root on a kernel with CONFIG_NETFILTER_NETLINK_QUEUE, NF_TABLES_IPV6 and NFT_QUEUE"
    " (Debian 12 and 13, Ubuntu 24.04)"
)
_PORT_PROGRAM_LOST = "no ECN marks, no trimming, no loss by rule, no silent switch: switch ports are plain shapers"
_ROOT_LOST = "runs are rootless, without the port program, and sockets hold no more than net.core.rmem_max"
_RPS = "/sys/class/net/lo/queues/rx-0/rps_cpus"
_RPS_FIX = "run as root on a kernel with CONFIG_RPS (Debian 12, Ubuntu 24.04)"
_SID = "ip link add name sid0 type {sid}"
_UP = "ip link set dev sid0 up"
_FLAVOR = "flavors next-csid lblen 32 nflen 16"
_ROUTE = "ip -6 route add fcbb:bb00:1001::/48 encap"
_HTB = "tc qdisc add dev lo root handle 1: htb default 20"
_HTB_CLASS = "tc class add dev lo parent 1: classid 1:20 htb rate 25mbit"
_VETH = "ip link add name v0 index 900 type veth peer name v1 index 901"
_MPTCP_SOCKET = (
    "import socket as s; each = s.socket(s.AF_INET6, s.SOCK_STREAM, s.IPPROTO_MPTCP);"
    " each.setsockopt(s.IPPROTO_TCP, s.TCP_MAXSEG, 4096); each.setsockopt(s.SOL_SOCKET, s.SO_RCVLOWAT, 24);"
    " assert len(each.getsockopt(284, 1, 96)) >= 80"
)
"""What connections ask of a socket of MPTCP, its own figures with them (SOL_MPTCP, MPTCP_INFO)."""
_KINDS_OF_PORT = {"v0": port_program.SWITCH_HOOKS, "v1": port_program.NIC_HOOKS}
_AT_ONCE = 4
KERNEL_TESTS = (
    KernelTest(
        "dummy device",
        False,
        "the uSID routes sit on an ifb instead",
        MODULES_FIX,
        ("ip link add name sid0 type dummy",),
    ),
    KernelTest(
        "ifb device", False, "needed only where dummy is missing", MODULES_FIX, ("ip link add name sid0 type ifb",)
    ),
    KernelTest("veth", True, "no links", MODULES_FIX, (_VETH,)),
    KernelTest(
        "SRv6 uSID (End, next-csid)",
        True,
        "no source routing",
        _NEW_KERNEL,
        (
            _SID,
            _UP,
            f"{_ROUTE} seg6local action End count {_FLAVOR} dev sid0",
            "ip -6 route show",
        ),
        "next-csid lblen 32 nflen 16",
    ),
    KernelTest(
        "SRv6 encap.red",
        True,
        "no encapsulation without an SRH",
        _NEW_KERNEL,
        (_SID, _UP, f"{_ROUTE} seg6 mode encap.red segs fcbb:bb00:1:2:: dev sid0", "ip -6 route show"),
        "mode encap.red",
    ),
    KernelTest(
        TUNNEL_SOURCE,
        False,
        "the kernel looks for it packet by packet, and finds the same",
        _SUDO,
        ("ip sr tunsrc set fd00::1",),
    ),
    KernelTest(
        "SRv6 End.DT6",
        True,
        "no decapsulation at hosts",
        _NEW_KERNEL,
        (_SID, _UP, f"{_ROUTE} seg6local action End.DT6 table 255 count dev sid0", "ip -6 route show"),
        "End.DT6",
    ),
    KernelTest(
        MULTIPATH,
        False,
        "no `routing: ecmp-static`, which RoCE and TCP need",
        "use Linux 6.1 or newer with CONFIG_IP_ROUTE_MULTIPATH and IPv6 (Debian 12, Ubuntu 24.04)",
        (
            _VETH,
            "ip link set dev v0 up",
            "ip -6 route add fd00:1::/48 nexthop via fe80::1 dev v0 nexthop via fe80::2 dev v0",
            "echo 1 >/proc/sys/net/ipv6/fib_multipath_hash_policy",
            "ip -6 route show table main",
        ),
        "nexthop via fe80::2",
    ),
    KernelTest(
        HASH_SEED,
        False,
        "collisions of flows change at each boot, and `ecmp.hash: independent` is refused",
        "use Linux 6.11 or newer",
        ("echo 7 >/proc/sys/net/ipv4/fib_multipath_hash_seed", "cat /proc/sys/net/ipv4/fib_multipath_hash_seed"),
        "7",
    ),
    KernelTest(
        TCP_RTO_MIN,
        False,
        "`tcp.rto_min` must be left out (200ms)",
        "use Linux 6.11 or newer",
        ("echo 5000 >/proc/sys/net/ipv4/tcp_rto_min_us", "cat /proc/sys/net/ipv4/tcp_rto_min_us"),
        "5000",
    ),
    KernelTest(
        MPTCP,
        False,
        "no `transport: mptcp`",
        "use Linux 6.17 or newer with CONFIG_MPTCP and CONFIG_MPTCP_IPV6, and iproute2 5.8 or newer",
        ("ip mptcp limits set subflows 8 add_addr_accepted 8", shlex.join([*isolated_python(), _MPTCP_SOCKET])),
    ),
    KernelTest(
        PATH_ORDER,
        False,
        "packets overtake each other on a path, which RoCE takes for loss; MRC takes any order",
        _RPS_FIX,
        (f"unshare --mount sh -c 'mount -t sysfs sysfs /sys; echo 1 >{_RPS}; cat {_RPS}'",),
        "1",
    ),
    KernelTest("HTB shaper", True, "no link rates", MODULES_FIX, (_HTB, _HTB_CLASS)),
    KernelTest(
        "bfifo queue",
        True,
        "no bounded queues",
        MODULES_FIX,
        (_HTB, _HTB_CLASS, "tc qdisc add dev lo parent 1:20 handle 20: bfifo limit 100000"),
    ),
    KernelTest(
        "u32 classifier",
        True,
        "no high class for control packets",
        MODULES_FIX,
        (_HTB, "tc filter add dev lo parent 1: protocol ipv6 prio 1 u32 match u16 0x0b80 0x0fc0 at 0 classid 1:20"),
    ),
    KernelTest(
        NETEM,
        False,
        "T is made by a delay line in the endpoints; kernel traffic such as ping sees a shorter RTT",
        MODULES_FIX,
        (_HTB, _HTB_CLASS, "tc qdisc add dev lo parent 1:20 handle 20: netem delay 10ms limit 100"),
    ),
)


def tried() -> list[Capability]:
    """Test all capabilities. Where no sandbox can be made it is reported as missing, because nothing else can be
    tried."""
    found = [Capability(ROOT, not is_rootless(), False, _ROOT_LOST, _SUDO), *_tools(), _frr()]
    if all(shutil.which(tool) for tool in ("ip", "tc", "unshare")):
        found += _tried_in_sandbox()
    found.append(_pressure())
    return found


def _tried_in_sandbox() -> list[Capability]:
    try:
        tried = call_isolated(lambda: [asdict(capability) for capability in probe_kernel()], _load_fabric)
    except MissingCapability as refused:
        return [Capability(SANDBOX, False, True, "no fabric", refused.fix, refused.what)]
    return [Capability(SANDBOX, True, True, "no fabric", ""), *(Capability(**entry) for entry in tried)]


def _load_fabric() -> None:
    """Trying is waiting for programs, and who has tried builds: what that needs is loaded beside it."""
    import mrc_testbed.testbed.fabric.fabric  # noqa: F401


def _tools() -> Iterable[Capability]:
    for tool, needed, lost, package in _TOOLS:
        where = shutil.which(tool)
        yield Capability(tool, where is not None, needed, lost, _APT + package, where or "")


def _frr() -> Capability:
    missing = [name for name in ("zebra", "bgpd", "bfdd") if not os.access(f"{FRR_FOLDER}/{name}", os.X_OK)]
    detail = f"{FRR_FOLDER} has no {missing[0]}" if missing else ""
    return Capability(FRR, not missing, False, "no `routing: bgp`", _FRR_FIX, detail)


def _pressure() -> Capability:
    readable = os.path.exists("/proc/pressure/cpu")
    lost = "CPU pressure is left out of the fidelity verdict"
    return Capability("CPU pressure (PSI)", readable, False, lost, "boot with psi=1")


def probe_kernel() -> list[Capability]:
    """Try every kernel feature, each in a scratch network namespace; some at a time, as most of a try is waiting."""
    dummy, *others = KERNEL_TESTS
    found = [_tried(dummy, "dummy")]
    sid = "dummy" if found[0].present else "ifb"
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found += threads.map(lambda test: _tried(test, sid), others)
    return [*found, _kernel_delay(), _port_program()]


def _tried(test: KernelTest, sid: str) -> Capability:
    detail = _try([command.format(sid=sid) for command in test.commands], test.expect)
    return Capability(test.name, detail == "", test.needed, test.lost, test.fix, detail)


def _kernel_delay() -> Capability:
    """Compile or find the process, and try rules and queues in a scratch network namespace."""
    fix, detail = _QUEUE_KERNEL, ""
    try:
        delay_program.RECIPE.compiled()
        with scratch_network():
            nfqueue.supported()
    except MissingCapability as missing:
        fix, detail = missing.fix, missing.what
    except OSError as refused:
        detail = os.strerror(refused.errno or 0)
    return Capability(KERNEL_DELAY, not detail, False, _KERNEL_DELAY_LOST, fix, detail)


def _port_program() -> Capability:
    """Compile or find, load, pin and attach the port program, once."""
    fix, detail = _BPF_KERNEL, ""
    try:
        programs, _ = port_program.load(1, FabricOptions("dummy", "none"))
    except MissingCapability as missing:
        fix, detail = missing.fix, missing.what
    except FabricError as refused:
        detail = refused.detail
    else:
        lines = [_VETH, *(f"tc qdisc add dev {device} clsact" for device in _KINDS_OF_PORT)]
        for device, hooks in _KINDS_OF_PORT.items():
            lines += [
                f"tc {port_program.filter_line(device, hook, programs.folder / name)}" for name, hook in hooks.items()
            ]
        detail = _try(lines, "")
        unmount_bpffs()
    if detail and is_rootless():
        fix, detail = _SUDO, "the kernel takes eBPF programs from root of the machine alone"
    return Capability(PORT_PROGRAM, not detail, False, _PORT_PROGRAM_LOST, fix, detail)


def _try(commands: list[str], expect: str) -> str:
    """Run the commands in a fresh network namespace. Empty on success, else the error. Raises MissingCapability where
    this machine allows no further namespace."""
    script = "set -e; ip link set dev lo up; " + "; ".join(commands)
    result = subprocess.run(["unshare", "--net", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "unshare failed" in result.stderr and os.strerror(errno.ENOSPC) in result.stderr:
        raise refusal("a network namespace", errno.ENOSPC)
    if result.returncode != 0:
        # The last line is the error; tc may have printed warnings before it.
        return (result.stderr.strip() or "failed without a message").splitlines()[-1]
    if expect not in result.stdout:
        return f"accepted, but the kernel does not show `{expect}`"
    return ""
