"""How long a fabric takes to come up and to go down, against Mininet's own way, both in the same run.

    sudo .venv/bin/python benchmarks/bringup.py [ROUNDS]

64 nodes and 192 shaped links. Ours: with all addresses, neighbours, uSID tables and per-(host, EV) encap routes, two
queues a port. Mininet's: nodes and `TCLink(bw=...)`, nothing more. Up: from the first call to the last answer, imports
not counted. Down: from the order until the kernel has freed every node's network namespace, seen by a canary link into
each. The sides take turns; medians and their ratio are printed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import mininet.log
from mininet.link import TCLink
from mininet.net import Mininet

from mrc_testbed.testbed.fabric import capabilities, trials
from mrc_testbed.testbed.fabric.batch import IP, run_batch
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.tables import routes_of

SHAPE = clos2_shape(planes=4, t0_groups=4, t1=4, hosts_per_t0=8, port_rate_bps=25_000_000, rtt_ns=20_000_000)
UP_TARGET = 4.0
DOWN_TARGET = 10.0
GONE_TIMEOUT_S = 60
Teardown = Callable[[], None]
Build = Callable[[Plan], tuple[dict[str, int], Teardown]]
"""Builds a plan; returns the PID of a process in each node, and what takes it all down."""


def ours(options: FabricOptions) -> Build:
    """The testbed's fabric; it goes down with its supervisor."""

    def build(plan: Plan) -> tuple[dict[str, int], Teardown]:
        return Fabric.build(plan, options).pids, lambda: None

    return build


def mininets(plan: Plan) -> tuple[dict[str, int], Teardown]:
    """The same nodes and cables the way Mininet offers it."""
    net = Mininet(controller=None, link=TCLink, build=False)
    for name in plan.node_names:
        net.addHost(name)
    for link in plan.links:
        net.addLink(link.near.node, link.far.node, bw=plan.shape.port_rate_bps / 1e6)
    return {host.name: host.pid for host in net.hosts}, net.stop


def measure(build: Build, plan: Plan) -> tuple[float, float]:
    """Seconds up and down, in a sandbox of its own."""
    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    os.set_inheritable(outside, True)
    read_end, write_end = os.pipe()

    def main() -> int:
        start = time.monotonic()
        pids, tear_down = build(plan)
        up = time.monotonic() - start
        names = enumerate(pids.values())
        canary = f"netns /proc/self/fd/{outside} type veth peer name canary netns"
        run_batch(IP, "canaries", os.getpid(), [f"link add name canary{i} {canary} {pid}" for i, pid in names])
        os.write(write_end, f"{up} {time.monotonic()}".encode())
        tear_down()
        return 0

    status = run_isolated(main)
    if status != 0:
        raise SystemExit(f"a side failed with status {status}")
    _await_no_canary()
    gone = time.monotonic()
    up, ordered = map(float, os.read(read_end, 1000).split())
    for descriptor in (outside, read_end, write_end):
        os.close(descriptor)
    return up, gone - ordered


def _await_no_canary() -> None:
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while "canary" in Path("/proc/net/dev").read_text(encoding="ascii"):
        if time.monotonic() > deadline:
            raise SystemExit(f"namespaces are still there after {GONE_TIMEOUT_S} s")
        time.sleep(0.001)


def compare(rounds: int) -> int:
    """Measure both sides in turn and print the table. Returns 0 when both targets are met."""
    mininet.log.setLogLevel("critical")
    Mininet.inited = True  # keep it from writing sysctls of the whole machine
    plan = build_plan(SHAPE)
    options = capabilities.choose(trials.probe_kernel(), SHAPE)
    sides: dict[str, Build] = {"mrc-testbed": ours(options), "Mininet TCLink": mininets}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, build in sides.items():
            times[name].append(measure(build, plan))
    routes = sum(1 for node in plan.node_names for _ in routes_of(plan, node))
    print(f"{len(plan.node_names)} nodes, {len(plan.links)} shaped links, {routes} routes (ours), {rounds} rounds")
    print(f"{'median seconds':16} {'up':>8} {'down':>8}")
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in times.items()}
    for name, (up, down) in medians.items():
        print(f"{name:16} {up:8.3f} {down:8.3f}")
    ratio_up, ratio_down = (theirs / own for own, theirs in zip(*medians.values(), strict=True))
    print(f"{'faster by':16} {ratio_up:7.1f}x {ratio_down:7.1f}x   (wanted: {UP_TARGET:g}x up, {DOWN_TARGET:g}x down)")
    return 0 if ratio_up >= UP_TARGET and ratio_down >= DOWN_TARGET else 1


def main() -> int:
    """In a network namespace of its own: the canaries must not show in the user's."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    return run_isolated(lambda: compare(rounds))


if __name__ == "__main__":
    sys.exit(main())
