"""What a probe of the mapper's agents costs, and what a decision on probes does.

    sudo .venv/bin/python -m benchmarks.mapper_agent [ROUNDS]

Runs the standard fabric at half its round trip and with next to no workload, in turn without probes and with as many as
there is room for, ROUNDS times each (3). The CPU time of all daemons, which has what the kernel does while they send,
and of the whole run: how much more there is with probes, for each probe that was sent. Before that one process decides
on the probes of such a fabric, period by period, clean and with three dead things.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.mapper.mapper import PathMapper
from mrc_testbed.testbed.rundir.results import run_folders
from tests.mapping.simulation import PERIOD_NS, Broken, Probed, plan_of

COMMAND = Path(sys.executable).with_name("mrc-testbed")
SCENARIO = """
name: idle
fabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 20ms}
mapper: {period: 100ms, evidence: [EVIDENCE]}
workload: [{train: {hosts: all, steps: 12, compute: 1s, allreduce: 4KiB}}]
"""
ROUNDS = 3
PERIODS = 300


def ran(folder: Path, evidence: str) -> tuple[RunRecord, float]:
    """A run, and the CPU time of all of its processes."""
    scenario = folder / f"{evidence}.yaml"
    scenario.write_text(SCENARIO.replace("EVIDENCE", evidence), encoding="utf-8")
    out = folder / f"{evidence}-{time.monotonic_ns()}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([COMMAND, "run", scenario, "--out", out], check=False, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (only,) = run_folders(out)
    return load_record(only), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost_of_probes(rounds: int) -> None:
    """Daemons and whole runs, with probes and without."""
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            (quiet, quiet_s), (probed, probed_s) = (ran(Path(folder), each) for each in ("endpoints", "probes"))
            probes = _sum(probed, "mapper_sent")
            daemons_us = (_sum(probed, "cpu_ns") - _sum(quiet, "cpu_ns")) / probes / 1e3
            figures.append((daemons_us, (probed_s - quiet_s) / probes * 1e6, probes))
            lost = probes - _sum(probed, "mapper_heard")
            print(f"{probes} probes, {lost} lost: daemons {daemons_us:.0f} us a probe, all {figures[-1][1]:.0f} us")
    print(f"median: daemons {median(row[0] for row in figures):.0f} us, all {median(row[1] for row in figures):.0f} us")


def _sum(record: RunRecord, name: str) -> int:
    return sum(own.get(name, 0) for own in record.counters.values())


def cost_of_decisions() -> None:
    """One decision a period, in the standard fabric."""
    probed = Probed(plan_of(4, 2, 4, 4))
    dead: Broken = {probed.table.named(name): 1.0 for name in ("h1:p0-t0-0", "p1-t1-2", "p2-t0-0:p2-t1-3")}
    for what, broken in (("nothing broken", {}), ("three dead things", dead)):
        mapper = PathMapper(probed.table, PERIOD_NS)
        periods = list(probed.periods(broken, seed=1, count=PERIODS, begin_ns=PERIODS // 2 * PERIOD_NS))
        began = time.process_time()
        for end_ns, rows in periods:
            mapper.turn(end_ns, rows)
        each_ms = (time.process_time() - began) / PERIODS * 1e3
        print(f"{what}: {len(probed.routes)} probes a period, {each_ms:.2f} ms a decision")


if __name__ == "__main__":
    cost_of_decisions()
    cost_of_probes(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
