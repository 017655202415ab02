"""What fabrics of two and of three tiers cost on the kernel: to build, to read back, to reboot a switch, in one run.

    sudo .venv/bin/python benchmarks/family_fabrics.py [ROUNDS]

Each plane of three tiers is compared with one of two tiers with the same hosts and as many links, the largest with 96
hosts. One plane, a neighbour in another T0 to talk to for each host. Milliseconds of wall time a link,
the least of ROUNDS, each in a sandbox of its own, the families in turns: `build` from the first call to the last
answer, `verify` reads all back, `reboot` takes the first of the highest switches off and on again.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import pairwise
from typing import NamedTuple

from mrc_testbed.testbed.fabric import capabilities, trials
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import call_isolated
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import Shape

ROUNDS = 3
PAIRS: tuple[tuple[Family, Family], ...] = (
    (Clos2(4, 6, 6), Clos3(pods=2, t0=2, t1=4, t2=4, hosts_per_t0=6)),
    (Clos2(6, 8, 8), Clos3(pods=2, t0=4, t1=4, t2=8, hosts_per_t0=6)),
    (Clos2(12, 8, 8), Clos3(pods=4, t0=4, t1=4, t2=8, hosts_per_t0=6)),
)
"""24, 48 and 96 hosts; 48, 96 and 192 links."""


class Took(NamedTuple):
    """Seconds."""

    build: float
    verify: float
    reboot: float


def plan_of(family: Family) -> Plan:
    """Each host talks to one in the next T0."""
    plan = build_plan(Shape(1, family, 1_000_000, 500_000_000))
    step = len(family.below[0])
    return plan.with_paths_between((host, (host + step) % family.hosts) for host in range(family.hosts))


def took(family: Family, options: FabricOptions) -> Took:
    """In a sandbox."""

    def main() -> list[float]:
        plan = plan_of(family)
        highest = next(switch.name for switch in plan.switches if switch.tier == len(family.tiers) - 1)
        marks = [time.monotonic()]
        fabric = Fabric.build(plan, options)
        marks.append(time.monotonic())
        fabric.verify()
        marks.append(time.monotonic())
        fabric.switch_off(highest)
        fabric.switch_on(highest, [own for own, _ in plan.ports[highest]])
        marks.append(time.monotonic())
        return [after - before for before, after in pairwise(marks)]

    return Took(*call_isolated(main, lambda: None))


def row(family: Family, best: Took) -> str:
    """A row of the table."""
    links = family.hosts + family.cable_count
    tiers = " + ".join(f"{count} T{tier}" for tier, count in enumerate(family.tiers))
    cost = " | ".join(f"{seconds * 1000 / links:.2f}" for seconds in best[:2])
    took_s = f"{best.build:.2f} s | {cost} | {best.reboot * 1000:.0f} ms"
    return f"| {family.word} | {family.hosts} | {tiers} | {links} | {took_s} |"


def main(rounds: int) -> int:
    """Print the table."""
    found = trials.tried()
    options = capabilities.choose(found, plan_of(PAIRS[0][0]).shape)
    families = [family for pair in PAIRS for family in pair]
    results: dict[Family, list[Took]] = {family: [] for family in families}
    for _ in range(rounds):
        for family in families:
            results[family].append(took(family, options))
    print(f"{os.cpu_count()} CPUs, ports: {options.switch_ports}")
    print("| family | hosts | switches | links | build | build, ms a link | verify, ms a link | reboot |")
    print("|---|---|---|---|---|---|---|---|")
    for family, all_of in results.items():
        print(row(family, Took(*(min(column) for column in zip(*all_of, strict=True)))))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
