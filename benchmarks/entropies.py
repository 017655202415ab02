"""The busiest uplink of a T0 over their mean, by the number of entropies that are hashed to them.

    .venv/bin/python -m benchmarks.entropies [--seeds N] [--entropies 32,128,512]

Four hosts below a T0 send to the other group at less than half of their rate, so nothing is trimmed, and take their EVs
in turn (`ev_selection: oblivious`). With E entropies towards a peer over four planes, E are hashed to the four uplinks
of each T0. Each of its packets is one ball: the busiest uplink has what the fullest of four boxes has of E balls, a
multinomial. `by the hash`: the same ratio counted, by the hash of the switches. Last row: source routes, which no hash
spreads. Virtual time, 8 T0s a seed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from functools import reduce
from math import exp, lgamma, log
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from mrc_testbed.hosts.mrc.transport import FIRST_PORT
from mrc_testbed.hosts.udp import PORT
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.link_loads import sent_bytes
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.runner.virtual_world import virtual_options
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.model.evs import ev_ids
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.names import parse_switch, switch_name

UPLINKS = 4
Law = NDArray[np.float64]
SCENARIO = """
name: entropies
world: virtual
seed: {seed}
{transport}
fabric: {{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}}
workload:
  - write:
      pairs: [h0->h4, h1->h5, h2->h6, h3->h7]
      bidirectional: true
      message: 96KiB
      depth: 1
      for: {seconds}s
"""
HASHED = "transport: mrc-hashed\nendpoint: {{entropies: {0}, ev_active: {0}, ev_selection: oblivious}}"


def expected(entropies: int, uplinks: int = UPLINKS) -> float:
    """The mean of the fullest of `uplinks` boxes over E/`uplinks`. Boxes that fill by Poisson's law, given that they
    hold E together, are filled as by E balls; all of them have at most m with what m + 1 terms of the law make."""
    mean = entropies / uplinks
    law = np.array([exp(k * log(mean) - mean - lgamma(k + 1)) for k in range(entropies + 1)])
    of_all = _together(law, entropies, uplinks)
    return sum(1 - _together(law[: most + 1], entropies, uplinks) / of_all for most in range(entropies)) / mean


def _together(law: Law, balls: int, boxes: int) -> float:
    """The chance that independent boxes hold this number in all."""
    found = reduce(np.convolve, [law] * boxes)
    return float(found[balls]) if balls < len(found) else 0.0


def scenario_of(entropies: int | None, seed: int, seconds: int = 10) -> Scenario:
    """None: source routes."""
    transport = HASHED.format(entropies) if entropies else "transport: mrc"
    return load_scenario_text(SCENARIO.format(seed=seed, transport=transport, seconds=seconds))


def by_the_hash(scenario: Scenario) -> dict[str, float]:
    """By T0 the uplink with most entropies, over their mean."""
    plan = scenario.plan()
    fabric = VirtualFabric(plan, virtual_options(scenario), Scheduler(), scenario.seed)
    counts: dict[str, Counter[int]] = {}
    for source, destination in sorted(scenario.job.pairs(plan.shape)):
        ends = plan.host_by_name[source], plan.host_by_name[destination]
        flows = [
            PlainFlow(*ends, ev.plane, "udp", FIRST_PORT + (ev.plane << 8 | ev.uplink), PORT)
            for ev in ev_ids(scenario, plan, *ends)
        ]
        for flow, uplink in zip(flows, fabric.predicted_uplinks(flows), strict=True):
            counts.setdefault(switch_name(flow.plane, 0, flow.source.group), Counter())[uplink] += 1
    return {t0: max(found.values()) * UPLINKS / found.total() for t0, found in counts.items()}


def measured(scenario: Scenario) -> dict[str, float]:
    """By T0 what its busiest uplink sent, over their mean. Raises SystemExit where there was no run."""
    with TemporaryDirectory() as out:
        outcome = run_scenario(scenario, Path(out), quiet=True)
        if outcome.folder is None:
            raise SystemExit(f"no run: {outcome.error}")
        sent = sent_bytes(load_record(outcome.folder)).sent
    by_t0: dict[str, list[int]] = {}
    for (node, port), readings in sent.items():
        if (switch := parse_switch(node)) and switch[1] == 0 and port.startswith("up"):
            by_t0.setdefault(node, []).append(readings[-1] - readings[0])
    return {t0: max(counts) / fmean(counts) for t0, counts in by_t0.items()}


def _row(entropies: int | None, seeds: range) -> str:
    scenarios = [scenario_of(entropies, seed) for seed in seeds]
    seen = [each for one in scenarios for each in measured(one).values()]
    name, exact, counted = "source routes", 1.0, 1.0
    if entropies:
        name, exact = str(entropies), expected(entropies)
        counted = fmean(each for one in scenarios for each in by_the_hash(one).values())
    error = stdev(seen) / len(seen) ** 0.5
    return f"| {name} | {exact:.3f} | {counted:.3f} | {fmean(seen):.3f} | {error:.3f} | {len(seen)} |"


def main() -> None:
    """Print the table, as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--entropies", default="32,128,512")
    asked = parser.parse_args()
    seeds = range(1, asked.seeds + 1)
    rows = [_row(entropies, seeds) for entropies in (*map(int, asked.entropies.split(",")), None)]
    print("| entropies | multinomial | by the hash | measured, mean | its standard error | T0s |")
    print("|---|---|---|---|---|---|", *rows, sep="\n")


if __name__ == "__main__":
    main()
