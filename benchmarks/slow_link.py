"""What one slow uplink of each T0 costs a permutation over hashed paths, beside the published table of a simulator.

    .venv/bin/python -m benchmarks.slow_link [--t0s 2,4] [--seeds N] [--selection NAME] [--trim BDP]

htsim (results/400g_nscc*.txt of its repository; leaf_spine_8192_400g.topo): 128 T0s of 64 nodes and 64 uplinks, 400
Gb/s, 1 us a link, 1 MB from each node to another one, 32 paths a flow, NSCC, queues of 100 packets, marks from 25 to
75. The last flow ends after 38.7 us, and after 42.0 us (x 1.08) where one link of each T0 has a quarter of its rate;
115 packets are sent again, and 10 842.

Here: virtual time, T0s of the same size and fewer of them. Ports have 100 Gb/s and T is 32 us, so as many packets are
in a T, and times are four times as long; what is printed is divided by four. The slow links lead to one T1.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mrc_testbed.testbed.app.finished import FinishedRun
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.scenario import load_scenario_text

NODES = 64
"""Below a T0, and its uplinks."""
SLOWER = 4
"""Than the simulator's."""
PUBLISHED = "| htsim, 8192 | 38.7 | 42.0 | 1.085 | 0.9 | 84.7 |"
SCENARIO = """
name: slow-link
world: virtual
scale: 1000
seed: {seed}
transport: mrc-hashed
fabric: {{planes: 1, t0_groups: {groups}, t1: {nodes}, hosts_per_t0: {nodes}, port_rate: 100mbit, rtt: 32ms,
  switch: {{ecn: [{low}, {high}], trim: {trim}, trim_last_hop: 1.0}}}}
endpoint: {{entropies: 32, ev_selection: {selection}}}
workload: [{{permutation: {{bytes: 1000KB, message: 1000KB}}}}]
"""
SLOW = 'faults: [{at: cold-start, link-rate: "p0-t0-*:p0-t1-0", rate: 25mbit, for: 60s}]\n'


class Outcome(NamedTuple):
    """Of one run: when the last flow had ended, and packets that were sent again."""

    tail_us: float
    again: float


def run(t0s: int, seed: int, selection: str, slow: bool, trim: float = 1.0) -> Outcome:
    """One permutation; `trim`: at how many BDP switches trim. Raises SystemExit where it does not come to an end."""
    levels = {"low": trim / 4, "high": 3 * trim / 4, "trim": trim}
    text = SCENARIO.format(seed=seed, groups=t0s, nodes=NODES, selection=selection, **levels) + SLOW * slow
    with TemporaryDirectory() as out:
        outcome = run_scenario(load_scenario_text(text), Path(out), quiet=True)
        if outcome.folder is None:
            raise SystemExit(f"no run: {outcome.error}")
        done = FinishedRun(outcome)
        return Outcome(done.metric("message_time.p100", "us") / SLOWER, done.metric("retransmissions"))


def _row(t0s: int, seeds: range, selection: str, trim: float) -> str:
    whole, slow = ([run(t0s, seed, selection, is_slow, trim) for seed in seeds] for is_slow in (False, True))
    tails = [fmean(one.tail_us for one in each) for each in (whole, slow)]
    again = [fmean(one.again for one in each) / t0s for each in (whole, slow)]
    ratio = tails[1] / tails[0]
    return f"| {t0s * NODES} | {tails[0]:.1f} | {tails[1]:.1f} | {ratio:.3f} | {again[0]:.1f} | {again[1]:.1f} |"


def main() -> None:
    """Print the table, as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--t0s", default="2,4")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--selection", default="adaptive")
    parser.add_argument("--trim", type=float, default=1.0)
    asked = parser.parse_args()
    rows = [_row(t0s, range(1, asked.seeds + 1), asked.selection, asked.trim) for t0s in map(int, asked.t0s.split(","))]
    print(
        "| nodes | tail, us | with slow links | ratio | sent again, a T0 | with slow links |\n|---|---|---|---|---|---|"
    )
    print(*rows, PUBLISHED, sep="\n")


if __name__ == "__main__":
    main()
