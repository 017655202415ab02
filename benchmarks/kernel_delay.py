"""The delay T for kernel protocols: what it does to TCP, and what it costs.

    sudo .venv/bin/python -m benchmarks.kernel_delay

Four TCP flows, from one rack of four hosts to the other, at port rates that make 1 600, 4 500 and 12 000 data packets a
second in all; T = 40 ms. First without a delay, then with it. Printed: the goodput as a share of what the line carries;
RTTs; the CPU of the delay's process, which runs TCP's receive path too, as a share of one core; and what the whole
machine had to do more than without the delay, which is the price of the delay alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.bulk_tcp import PAYLOAD_BYTES, SEGMENT_BYTES
from benchmarks.nodes import start_on
from mrc_testbed.testbed.fabric import capabilities, trials
from mrc_testbed.testbed.fabric.commands import MTU
from mrc_testbed.testbed.fabric.delay import DelayStats, KernelDelay
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import SID_DEVICE
from mrc_testbed.topos.shape import Shape

LOADS_PPS = (1_600, 4_500, 12_000)
FLOWS = 4
RTT_NS = 40_000_000
SECONDS = 6.0
WIRE_BYTES = 14 + 40 + 40 + 20 + SEGMENT_BYTES
"""Of a full segment with the SRv6 header of this fabric."""
LINE_SHARE = PAYLOAD_BYTES / WIRE_BYTES
"""What of a port's rate can be goodput."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Bulk:
    """Several flows at once. `goodput_bps` and `rtt_us` by flow; `busy`: CPUs of the machine that were at work."""

    goodput_bps: tuple[float, ...]
    rtt_us: tuple[float, ...]
    busy: float
    seconds: float


def full_packets(fabric: Fabric) -> None:
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
    out = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
    given = ["--fd", str(out.fileno()), *arguments]
    process = start_on(fabric, node, "benchmarks.bulk_tcp", given, out.fileno(), sys.stderr.buffer)
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


def shape_for(pps: float) -> Shape:
    """Two racks of four hosts whose four flows come to `pps` full packets a second."""
    rate_bps = round(pps / FLOWS * WIRE_BYTES * 8)
    return clos2_shape(planes=1, t0_groups=2, t1=4, hosts_per_t0=4, port_rate_bps=rate_bps, rtt_ns=RTT_NS)


def line_shares(bulk: Bulk, shape: Shape) -> list[float]:
    """Goodput of each flow as a share of what its line carries."""
    return [each / (shape.port_rate_bps * LINE_SHARE) for each in bulk.goodput_bps]


def _line(name: str, bulk: Bulk, shape: Shape) -> str:
    shares = line_shares(bulk, shape)
    pps = sum(bulk.goodput_bps) / 8 / PAYLOAD_BYTES
    return (
        f"{name:<10} {pps:7,.0f} packets/s   goodput {min(shares):.1%} .. {max(shares):.1%} of line"
        f"   RTT {min(bulk.rtt_us) / 1e3:.1f} .. {max(bulk.rtt_us) / 1e3:.1f} ms   busy {bulk.busy:.3f} CPUs"
    )


def _cost(before: DelayStats, after: DelayStats, bare: Bulk, held: Bulk) -> str:
    spent_ns, packets = after.cpu_ns - before.cpu_ns, after.released
    more = held.busy / sum(held.goodput_bps) - bare.busy / sum(bare.goodput_bps)
    return (
        f"{'':<10} process {spent_ns / 1e9 / held.seconds:.1%} of a core"
        f" ({spent_ns / 1e3 / packets:.1f} us a packet, {packets / held.seconds:,.0f}/s with acknowledgements);"
        f" machine {more * sum(held.goodput_bps):+.1%} of a core\n"
        f"{'':<10} late p50 {after.late_p50_ns / 1e6:.2f}, p99 {after.late_p99_ns / 1e6:.2f},"
        f" max {after.late_max_ns / 1e6:.2f} ms; dropped {after.dropped}, unstamped {after.unstamped}"
    )


def _measure(pps: float) -> int:
    shape = shape_for(pps)
    fabric = Fabric.build(build_plan(shape), capabilities.choose(trials.probe_kernel(), shape))
    full_packets(fabric)
    bare = run_flows(fabric, FLOWS, SECONDS)
    delay = start_delay(fabric)
    delay.begin_figures()
    before = delay.stats()
    held = run_flows(fabric, FLOWS, SECONDS)
    after = delay.stats()
    print(_line("without T", bare, shape))
    print(_line("with T", held, shape))
    print(_cost(before, after, bare, held), flush=True)
    delay.stop()
    return 0


def _in_sandbox(pps: float) -> int:
    return run_isolated(lambda: _measure(pps))


if __name__ == "__main__":
    sys.exit(max(_in_sandbox(pps) for pps in LOADS_PPS))
