"""Slowdown of flows with the sizes of a web search, by size and load, beside a closed form.

    .venv/bin/python -m benchmarks.slowdown [--flows N] [--loads 30,50,80] [--seed N] [--sizes websearch]

Virtual time at real scale: 8 hosts in a leaf-spine of two planes, ports of 100 Gb/s, T of 5 us, nothing
oversubscribed. Flows begin at random, each host at this share of its line rate. A row is a bin of sizes at a load. The
closed form is the slowdown of every flow at one port that all flows under way share alike (M/G/1 with processor
sharing): 1 / (1 - load), whatever the sizes are.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.tables import FlowTime
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.workloads.sizes import SIZES

BINS = (30_000, 200_000, 2_000_000, 1 << 40)
"""The largest size of each bin, in bytes."""
HOSTS, LINE_BPS, STRETCH = 8, 200e9 * 4096 / 4238, 8000
"""`STRETCH`: times of a scenario are written that many times longer than they run."""
SCENARIO = """
name: slowdown
world: virtual
scale: real
seed: {seed}
fabric: {{planes: 2, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}}
workload: [{{poisson: {{sizes: {sizes}, load: {load}%, for: {written_ms:.0f}ms, qps: 16}}}}]
"""


def scenario_text(sizes: str, load: int, flows: int, seed: int) -> str:
    """A run in which about this number of flows begins."""
    each_s = SIZES[sizes].mean * 8 / (load / 100 * LINE_BPS)
    return SCENARIO.format(seed=seed, sizes=sizes, load=load, written_ms=flows / HOSTS * each_s * STRETCH * 1000)


def flow_times(text: str) -> list[FlowTime]:
    """All flows of a run. Raises SystemExit where it does not pass."""
    with TemporaryDirectory() as out, open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(load_scenario_text(text), Path(out), True, PatientConsole(file=nowhere))
        if outcome.folder is None or outcome.exit_code is not ExitCode.PASS:
            raise SystemExit(f"no measurement: {outcome.error or 'the run did not pass'}")
        return list(load_record(outcome.folder).flow_times)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that this share does not exceed."""
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]


def rows(load: int, found: Sequence[FlowTime]) -> Iterator[str]:
    """Lines of Markdown, a bin each."""
    least = 0
    for most in BINS:
        slowdowns = sorted(one.slowdown for one in found if least < one.bytes <= most)
        least = most
        if slowdowns:
            name = f"up to {most // 1000} KB" if most < BINS[-1] else "larger"
            figures = [fmean(slowdowns), *(percentile(slowdowns, percent) for percent in (50, 95, 99))]
            cells = [f"{load} %", name, str(len(slowdowns)), *(f"{one:.2f}" for one in figures)]
            yield f"| {' | '.join(cells)} | {100 / (100 - load):.2f} |"


def main() -> None:
    """The table, as it is found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slowdown", description=__doc__)
    parser.add_argument("--flows", type=int, default=1000, help="about how many begin at each load; 1000")
    parser.add_argument("--loads", default="30,50,80", help="in percent; 30,50,80")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", choices=[*SIZES], default="websearch")
    given = parser.parse_args()
    say("| load | size | flows | mean | P50 | P95 | P99 | 1 / (1 - load) |\n|---|---|---|---|---|---|---|---|")
    for load in map(int, given.loads.split(",")):
        for row in rows(load, flow_times(scenario_text(given.sizes, load, given.flows, given.seed))):
            say(row)


def say(line: str) -> None:
    """On standard output, at once."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
