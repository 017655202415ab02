"""What switches that answer cost a fabric while it is built and read back, with and without in turn.

    sudo .venv/bin/python benchmarks/answering.py [ROUNDS]

Every host talks to the next one. Medians are printed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.capabilities import Capability
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.tables import routes_of

SHAPES = [clos2_shape(4, 2, 4, 4, 12_500_000, 40_000_000), clos2_shape(4, 8, 8, 8, 12_500_000, 40_000_000)]


def took(plan: Plan, found: list[Capability]) -> tuple[float, float]:
    """Seconds to build, and to read back."""
    with tempfile.NamedTemporaryFile("r") as told:

        def main() -> int:
            began = time.monotonic()
            fabric = Fabric.build(plan, capabilities.choose(found, plan.shape))
            built = time.monotonic()
            fabric.verify()
            Path(told.name).write_text(f"{built - began} {time.monotonic() - built}", encoding="ascii")
            return 0

        if run_isolated(main):
            sys.exit(1)
        build_s, verify_s = map(float, told.read().split())
    return build_s, verify_s


def compare(shape: Shape, rounds: int) -> None:
    """Print both sides of one shape."""
    found = capabilities.probe()
    ring = build_plan(shape).with_paths_between((host, (host + 1) % shape.hosts) for host in range(shape.hosts))
    sides = {"silent": ring, "answering": ring.answering()}
    seconds: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, plan in sides.items():
            seconds[side].append(took(plan, found))
    for side, plan in sides.items():
        build_s, verify_s = (statistics.median(column) for column in zip(*seconds[side], strict=True))
        routes = sum(1 for node in plan.node_names for _ in routes_of(plan, node))
        print(f"{shape.hosts} hosts, {side}: {routes} routes, build {build_s:.2f} s, read-back {verify_s:.2f} s")


if __name__ == "__main__":
    for each in SHAPES:
        compare(each, int(sys.argv[1]) if len(sys.argv) > 1 else 3)
