"""The delay T for kernel protocols: what it does to ping and TCP, and what it costs.

    sudo .venv/bin/python -m benchmarks.kernel_delay

On the quickstart's fabric, folded (8 hosts of 50 Mb/s, T = 40 ms), 1, 3 and 8 TCP flows send as fast as they may, first
without a delay and then with it. Printed: the goodput as a share of what the line carries; RTTs; the CPU of the delay's
process, which runs TCP's receive path too, as a share of one core; and what the whole machine had to do more than
without the delay, which is the price of the delay alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.bulk_tcp import PAYLOAD_BYTES, SEGMENT_BYTES
from testbed.fabric import capabilities
from testbed.fabric.commands import MTU
from testbed.fabric.delay import DelayStats, KernelDelay
from testbed.fabric.fabric import Fabric
from testbed.fabric.sandbox import run_isolated
from topos.plan import SID_DEVICE, Host, Plan, build_plan
from topos.shape import Shape

SHAPE = Shape(planes=1, t0_groups=2, t1=4, hosts_per_t0=4, port_rate_bps=50_000_000, rtt_ns=40_000_000)
SECONDS = 8.0
FLOWS = (1, 3, 8)
WIRE_BYTES = 14 + 40 + 40 + 20 + SEGMENT_BYTES
"""Of a full segment with the SRv6 header of this fabric."""
LINE_SHARE = PAYLOAD_BYTES / WIRE_BYTES
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Bulk:
    """Several flows at once. `goodput_bps` and `rtt_us` by flow; `busy`: CPUs of the machine that were at work."""

    goodput_bps: tuple[float, ...]
    rtt_us: tuple[float, ...]
    busy: float
    seconds: float


def one_segment_packets(fabric: Fabric) -> None:
    """Hosts hand single full packets to their ports, as the shapers and the port program count them."""
    for host in fabric.plan.hosts:
        for device in (SID_DEVICE, *(own.name for own, _ in fabric.plan.ports[host.name])):
            fabric.node(host.name).cmd(f"ip link set dev {device} mtu {MTU} gso_max_segs 1")


def pairs(plan: Plan, count: int) -> list[tuple[Host, Host, str]]:
    """Source, destination, address: neighbours in different racks, each pair on an uplink of its own."""
    half = len(plan.hosts) // 2
    found = []
    for index in range(count):
        src, dst = plan.hosts[index], plan.hosts[(index + half) % len(plan.hosts)]
        paths = plan.paths(src, dst)
        found.append((src, dst, paths[index % len(paths)].inner))
    return found


def run_flows(fabric: Fabric, count: int, seconds: float, congestion_control: str = "cubic") -> Bulk:
    """`count` flows at once."""
    wanted = pairs(fabric.plan, count)
    with ExitStack() as stack:
        before, begin = _busy_s(), time.monotonic()
        receivers = [_start(fabric, stack, dst.name, "receive", str(seconds)) for _, dst, _ in wanted]
        senders = [
            _start(fabric, stack, src.name, "send", address, str(seconds), congestion_control)
            for src, _, address in wanted
        ]
        sent = [_answer(*each) for each in senders]
        got = [_answer(*each) for each in receivers]
        took = time.monotonic() - begin
        return Bulk(
            tuple(each["bytes"] * 8 / each["seconds"] for each in got),
            tuple(each["rtt_us"] for each in sent),
            (_busy_s() - before) / took,
            took,
        )


def _start(fabric: Fabric, stack: ExitStack, node: str, *arguments: str) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    out = stack.enter_context(tempfile.TemporaryFile())
    process = fabric.spawn(
        node, "benchmarks.bulk_tcp", ["--fd", str(out.fileno()), *arguments], out.fileno(), sys.stderr.buffer
    )
    return process, out


def _answer(process: subprocess.Popen[bytes], out: IO[bytes]) -> dict[str, float]:
    if process.wait(timeout=60):
        raise RuntimeError("a flow failed; see above")
    out.seek(0)
    figures: dict[str, float] = json.loads(out.read())
    return figures


def _busy_s() -> float:
    """CPU seconds that were not idle, over all CPUs, since boot."""
    row = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    times = [int(value) * _TICK_S for value in row]
    return sum(times) - times[3] - times[4]


def start_delay(fabric: Fabric) -> KernelDelay:
    """The delay line of every host of the fabric."""
    plan = fabric.plan
    return KernelDelay.start(plan, fabric.pids, plan.shape.rtt_ns // 2, [host.name for host in plan.hosts])


def _line(name: str, bulk: Bulk) -> str:
    shares = [each / (SHAPE.port_rate_bps * LINE_SHARE) for each in bulk.goodput_bps]
    pps = sum(bulk.goodput_bps) / 8 / PAYLOAD_BYTES
    return (
        f"{name:<14} {pps:8,.0f} packets/s   goodput {min(shares):.1%} .. {max(shares):.1%} of line"
        f"   RTT {min(bulk.rtt_us) / 1e3:.1f} .. {max(bulk.rtt_us) / 1e3:.1f} ms   busy {bulk.busy:.3f} CPUs"
    )


def _cost(before: DelayStats, after: DelayStats, bare: Bulk, held: Bulk) -> str:
    share = (after.cpu_ns - before.cpu_ns) / 1e9 / held.seconds
    return (
        f"{'':<14} process {share:.1%} of a core, machine {held.busy - bare.busy:+.1%} of a core more;"
        f" released late by p50 {after.late_p50_ns / 1e6:.2f}, p99 {after.late_p99_ns / 1e6:.2f},"
        f" max {after.late_max_ns / 1e6:.2f} ms; dropped {after.dropped}, unstamped {after.unstamped}"
    )


def _idle(seconds: float) -> float:
    before = _busy_s()
    time.sleep(seconds)
    return (_busy_s() - before) / seconds


def measure(counts: Sequence[int] = FLOWS, seconds: float = SECONDS) -> int:
    """Everything, on one fabric."""
    plan = build_plan(SHAPE)
    options = capabilities.choose(capabilities.probe(), SHAPE)
    fabric = Fabric.build(plan, options)
    one_segment_packets(fabric)
    bare = [run_flows(fabric, count, seconds) for count in counts]
    delay = start_delay(fabric)
    print(f"idle: busy {_idle(2):.3f} CPUs")
    for count, without in zip(counts, bare, strict=True):
        delay.begin_figures()
        before = delay.stats()
        held = run_flows(fabric, count, seconds)
        after = delay.stats()
        print(_line(f"{count} flows, no T", without))
        print(_line(f"{count} flows, T", held))
        print(_cost(before, after, without, held))
    delay.stop()
    return 0


if __name__ == "__main__":
    sys.exit(run_isolated(measure))
