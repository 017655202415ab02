"""What routing by BGP costs when something breaks, and what its daemons cost.

    sudo .venv/bin/python -m benchmarks.routing [CASE...] [--rounds N] [--kept FILE]

Planes are independent fabrics of 2 T0 and 2 T1, so each round runs a fault once in every plane, half a second apart.
In each plane 8 flows of 64 datagrams a second go from one rack to the other. Printed: how many of them a fault hit,
for how long packets of a flow did not arrive, and how long BGP took to have all routes again after the heal, as
least, median and most over all runs. At last (case `cost`), for the
switches of the quickstart: time until all routes are there, memory (PSS) and CPU of the daemons.

Each case runs until ten runs of it are there, or for N rounds. With `--kept` its runs are added to those in FILE, a
line of JSON each, and the table is of all of them: what takes too long at once can be measured in pieces.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import select
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of, run_isolated
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape

RUNS = 10
FLOWS, RATE_HZ, PORT, FIRST_PORT = 8, 64, 9, 40_000
HASH_SEED = 6
"""With which flows of every plane cross what breaks, 4 or 5 of 8 each."""
HIT_S = 4 / RATE_HZ
"""A longer gap between two datagrams of a flow is an outage."""
APART_S = 0.5
PROBE = bytes(64)
"""Shorter packets have no headers of a transport to the port program, so a grey switch would let them through."""
DAEMONS = ("zebra", "bgpd", "bfdd")
IDLE_S = 10
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
Heal = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A fault for `lasts_s`, in every one of `planes`."""

    name: str
    bgp: BgpOptions
    lasts_s: float
    inject: Callable[[Fabric, int], Heal]
    planes: int = 5


@dataclass(frozen=True)
class Outcome:
    """Of a case in one plane: flows hit, the longest time without packets, and until all routes were back."""

    hit: int
    outage_s: float
    back_s: float


def cut(rack: int) -> Callable[[Fabric, int], Heal]:
    """The link between a rack's T0 and T1 1 loses its carrier."""

    def inject(fabric: Fabric, plane: int) -> Heal:
        port = fabric.plan.link_by_name[f"p{plane}-t0-{rack}:p{plane}-t1-1"].far
        fabric.ports_down([port])
        return lambda: fabric.ports_up([port])

    return inject


def silent(fabric: Fabric, plane: int) -> Heal:
    """The link to the receivers loses every packet, both ways."""
    link = f"p{plane}-t0-1:p{plane}-t1-1"
    handles = [fabric.add_rule(link, "near", PortRule("drop")), fabric.add_rule(link, "far", PortRule("drop"))]
    return lambda: [fabric.remove_rule(handle) for handle in handles]


def grey(fabric: Fabric, plane: int) -> Heal:
    """A T1 forwards nothing, and its control plane lives."""
    handles = fabric.silence(f"p{plane}-t1-1", of_hosts=True)
    return lambda: [fabric.remove_rule(handle) for handle in handles]


def reboot(fabric: Fabric, plane: int) -> Heal:
    """A T1 is off; daemons and all."""
    switch = f"p{plane}-t1-1"
    fabric.switch_off(switch)
    return lambda: fabric.switch_on(switch, [own for own, _ in fabric.plan.ports[switch]])


HOLD, BFD_300, BFD_50 = BgpOptions(), BgpOptions(bfd_interval_ms=300), BgpOptions(bfd_interval_ms=50)
CASES = (
    Case("near-carrier", HOLD, 6, cut(0)),
    Case("far-carrier", HOLD, 6, cut(1)),
    Case("reboot", HOLD, 6, reboot),
    Case("silent-hold", HOLD, 12, silent),
    Case("silent-bfd-300", BFD_300, 6, silent),
    Case("silent-bfd-50", BFD_50, 6, silent, planes=2),
    Case("grey-bfd-300", BFD_300, 6, grey),
)


class Probes:
    """Flows in every plane, and when each datagram of theirs arrived."""

    def __init__(self, fabric: Fabric) -> None:
        first, last = fabric.plan.hosts[0], fabric.plan.hosts[-1]
        self.targets = dict(fabric.plan.host_ports(last))
        self.arrivals: dict[tuple[int, int], list[float]] = {}
        self.senders = [
            (plane, bound(fabric, first.name, source, FIRST_PORT + n))
            for plane, source in fabric.plan.host_ports(first)
            for n in range(FLOWS)
        ]
        self.receivers = {
            bound(fabric, last.name, address, PORT).fileno(): plane for plane, address in self.targets.items()
        }
        routes = fabric.routes.handlers() if fabric.routes else ()
        self._routes = {each.fileno(): changed for each, changed in routes}
        self._sockets = {fileno: socket.socket(fileno=os.dup(fileno)) for fileno in self.receivers}

    def send_until(self, end: float) -> None:
        """Keep all flows going until this time."""
        while (now := time.monotonic()) < end:
            for plane, sender in self.senders:
                sender.sendto(PROBE, (self.targets[plane], PORT))
            self._receive(now + 1 / RATE_HZ)

    def _receive(self, until: float) -> None:
        while (left := until - time.monotonic()) > 0:
            for fileno in select.select([*self._sockets, *self._routes], [], [], left)[0]:
                if changed := self._routes.get(fileno):
                    changed()
                else:
                    self._take(fileno)

    def _take(self, fileno: int) -> None:
        try:
            while True:
                port = self._sockets[fileno].recvfrom(64, socket.MSG_DONTWAIT)[1][1]
                self.arrivals.setdefault((self.receivers[fileno], port), []).append(time.monotonic())
        except BlockingIOError:
            return

    def gaps(self, plane: int, begin: float) -> Iterator[float]:
        """The longest gap of each flow of a plane since a time, less what lies between any two datagrams."""
        for (at, _), times in self.arrivals.items():
            if at == plane:
                seen = [t for t in times if t >= begin - HIT_S]  # the last before the fault is among them
                yield max(after - before for before, after in itertools.pairwise(seen)) - 1 / RATE_HZ


def bound(fabric: Fabric, host: str, address: str, port: int) -> socket.socket:
    """A UDP socket of a host."""
    with network_of(fabric.pids[host], host):
        found = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    found.bind((address, port))
    KEPT.append(found)
    return found


KEPT: list[socket.socket] = []
"""Sockets that stay open."""


def run_case(case: Case, options: FabricOptions, rounds: int) -> list[Outcome]:
    """All rounds on one fabric."""
    shape = clos2_shape(case.planes, 2, 2, 1, 25_000_000, 0)
    fabric = Fabric.build(build_plan(shape, Routing.BGP), replace(options, bgp=case.bgp))
    fabric.converge()
    fabric.verify()
    fabric.prepare_faults(fabric.plan.node_names)
    probes = Probes(fabric)
    return [outcome for _ in range(rounds) for outcome in run_round(case, fabric, probes)]


def run_round(case: Case, fabric: Fabric, probes: Probes) -> list[Outcome]:
    """The fault in each plane in turn, healed, and all routes back."""
    begun, healed = {}, {}
    fabric.route_changes()
    probes.arrivals.clear()
    probes.send_until(time.monotonic() + 1)
    start, heals = time.monotonic(), {}
    for plane in range(case.planes):
        probes.send_until(start + plane * APART_S)
        begun[plane], heals[plane] = time.monotonic(), case.inject(fabric, plane)
    for plane, heal in heals.items():
        probes.send_until(begun[plane] + case.lasts_s)
        healed[plane] = time.monotonic()
        heal()
    probes.send_until(time.monotonic() + 1)
    gaps = {plane: list(probes.gaps(plane, begun[plane])) for plane in begun}
    fabric.converge()
    backs = last_changes(fabric)
    time.sleep(2)  # until no session is younger than any other
    return [
        Outcome(
            sum(gap > HIT_S for gap in gaps[plane]), max(gaps[plane]), max(0.0, backs.get(plane, 0.0) - healed[plane])
        )
        for plane in begun
    ]


def last_changes(fabric: Fabric) -> dict[int, float]:
    """When the routes of each plane changed last."""
    switches = fabric.plan.switch_by_name
    return {switches[change.node].plane: change.t_ns / 1e9 for change in fabric.route_changes()}


def spread(values: Sequence[float]) -> str:
    """`0.13 / 0.14 / 0.15 s`."""
    return f"{min(values):.2f} / {statistics.median(values):.2f} / {max(values):.2f} s"


def report_case(case: Case, options: FabricOptions, rounds: int | None, kept: Path | None) -> None:
    """A line of the table."""
    found = run_case(case, options, rounds or -(-RUNS // case.planes))
    if kept:
        found = together(case, found, kept)
    hit = [one.hit for one in found]
    outages = [one.outage_s if one.hit else 0.0 for one in found]
    print(
        f"| {case.name} | {len(found)} | {min(hit)} to {max(hit)} of {FLOWS} | {spread(outages)}"
        f" | {spread([one.back_s for one in found])} |",
        flush=True,
    )


def together(case: Case, found: Sequence[Outcome], kept: Path) -> list[Outcome]:
    """These runs after those of the case that were kept before; from now on these are kept as well."""
    with kept.open("a+", encoding="utf-8") as file:
        file.writelines(json.dumps({"case": case.name, **asdict(one)}) + "\n" for one in found)
        file.seek(0)
        lines = [json.loads(line) for line in file]
    return [Outcome(**line) for line in lines if line.pop("case") == case.name]


def of_daemons() -> tuple[float, float]:
    """CPU seconds and MiB of PSS of all daemons in this sandbox."""
    cpu_s = pss_mib = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        if (folder / "comm").read_text().strip() in DAEMONS:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            cpu_s += (int(fields[11]) + int(fields[12])) * TICK_S
            lines = (folder / "smaps_rollup").read_text().splitlines()
            pss_mib += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return cpu_s, pss_mib


def report_cost(shape: Shape, bgp: BgpOptions, options: FabricOptions) -> None:
    """Start and idle cost of the daemons of a fabric."""
    begun = time.monotonic()
    fabric = Fabric.build(build_plan(shape, Routing.BGP), replace(options, bgp=bgp))
    built = time.monotonic()
    fabric.converge()
    full = time.monotonic()
    started_s, mib = of_daemons()
    time.sleep(IDLE_S)
    idle = (of_daemons()[0] - started_s) / IDLE_S
    bfd = f"BFD {bgp.bfd_interval_ms} ms" if bgp.bfd_interval_ms else "no BFD"
    print(
        f"{shape.switches} switches, {bfd}: built in {built - begun:.1f} s, all routes {full - built:.1f} s later;"
        f" daemons {mib:.0f} MiB, {started_s:.1f} s of CPU to start, {idle:.1%} of a core idle",
        flush=True,
    )


def main(wanted: Sequence[str], rounds: int | None, kept: Path | None) -> int:
    """Everything, each case in a sandbox of its own."""
    quick = clos2_shape(1, 2, 4, 4, 50_000_000, 0)
    options = replace(capabilities.choose(capabilities.probe(), quick), hash_seed=HASH_SEED)

    def apart(body: Callable[[], None]) -> None:
        def inside() -> int:
            body()
            return 0

        run_isolated(inside)

    for case in CASES:
        if not wanted or case.name in wanted:
            apart(lambda case=case: report_case(case, options, rounds, kept))  # type: ignore[misc]
    if not wanted or "cost" in wanted:
        for shape in (quick, replace(quick, planes=4)):
            for bgp in (HOLD, BFD_300):
                apart(lambda shape=shape, bgp=bgp: report_cost(shape, bgp, options))  # type: ignore[misc]
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", choices=["cost", *(case.name for case in CASES)])
    parser.add_argument("--rounds", type=int, help="of each case; usually as many as make ten runs")
    parser.add_argument("--kept", type=Path, help="file to which runs are added, and whose runs count as well")
    given = parser.parse_args()
    sys.exit(main(given.cases, given.rounds, given.kept))
