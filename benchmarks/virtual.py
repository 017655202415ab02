"""Cost of a run in virtual time: wall time, CPU time a data packet over three switches, all of it, and memory.

    .venv/bin/python benchmarks/virtual.py [SCENARIO] [--set KEY=VALUE ...] [--kernel] [--profile]

User and system time of this process from the start of the workload until its end: network, endpoints, both ends' data,
and the files that are written meanwhile. Memory is the resident set of this process, at a quarter of the workload's
time and at its end: does it grow with the run? Without SCENARIO it is the quickstart; benchmarks/large.yaml has 256
hosts. `--kernel` (as root) runs the same
scenario on the kernel, too: there it is the time of all endpoint daemons during the steps, which has the switches in
it (benchmarks/transports.py).
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from time import monotonic, process_time

from benchmarks.transports import COMMAND, cost_of
from mrc_testbed.testbed.runner.events import PhaseBegins, PortsSampled, RunEvent, WorkloadBegins
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.runner.virtual_world import VirtualWorld
from mrc_testbed.testbed.scenario import load_scenario

QUICKSTART = Path(__file__).parents[1] / "scenarios" / "quickstart.yaml"


class Stopwatch(Silent):
    """CPU time at the beginning of each phase. The workload begins where the phase "run" does. `resident_mib`: by the
    time of the run, as often as ports are sampled."""

    def __init__(self) -> None:
        self.began_s: dict[str, float] = {}
        self.resident_mib: list[float] = []
        self._memory = os.open("/proc/self/statm", os.O_RDONLY)

    def publish(self, event: RunEvent) -> None:
        if isinstance(event, PhaseBegins):
            self.began_s[event.name] = process_time()
        elif isinstance(event, WorkloadBegins):
            self.began_s["workload"] = process_time()
        elif isinstance(event, PortsSampled) and "heal" not in self.began_s:
            pages = int(os.pread(self._memory, 100, 0).split()[1])
            self.resident_mib.append(pages * resource.getpagesize() / 2**20)


def virtual(file: Path, changes: list[str], folder: Path, profile: bool) -> None:
    """Run here, and say what it took."""
    scenario = load_scenario(file, [*changes, "world=virtual"])
    watch, profiler = Stopwatch(), cProfile.Profile()
    gc.disable()  # as mrc_testbed.testbed.app.places does
    began_s, began_wall_s = process_time(), monotonic()
    with profiler if profile else nullcontext():
        status = run_phases(RunJob(scenario, folder, VirtualWorld(scenario)), watch)
    if status:
        raise SystemExit(status)
    hosts = json.loads((folder / "counters.json").read_text(encoding="utf-8"))["hosts"].values()
    packets = sum(host["counters"]["data_sent"] for host in hosts)
    taken_s = watch.began_s["heal"] - watch.began_s["workload"]
    before_s, after_s = watch.began_s["workload"] - began_s, process_time() - watch.began_s["heal"]
    wall_s, most_mib = monotonic() - began_wall_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seen_mib = watch.resident_mib
    print(
        f"virtual: {taken_s / packets * 1e6:.1f} us of CPU a data packet ({packets} in {taken_s:.1f} s; {before_s:.1f} "
        f"s before, {after_s:.1f} s after); {wall_s:.1f} s of wall time\n"
        f"virtual: {seen_mib[len(seen_mib) // 4]:.0f} MiB at a quarter of the workload, {seen_mib[-1]:.0f} at its end, "
        f"at most {most_mib:.0f}"
    )
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


def kernel(file: Path, changes: list[str], out: Path) -> None:
    """Run on the kernel, and say what its daemons took."""
    options = [word for change in changes for word in ("--set", change)]
    command = [str(COMMAND), "run", str(file), *options, "--out", str(out), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"kernel: {done.stdout}{done.stderr}")
    cost = cost_of((out / "latest").resolve())
    print(f"kernel:  {cost.all_us:.1f} us of CPU a data packet ({cost.packets}; {cost.cores:.2f} cores meanwhile)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", nargs="?", type=Path, default=QUICKSTART)
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--kernel", action="store_true")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    if asked.kernel and os.geteuid():
        sys.exit("--kernel needs root")
    with tempfile.TemporaryDirectory() as folder:
        virtual(asked.scenario, asked.changes, Path(folder), asked.profile)
        if asked.kernel:
            kernel(asked.scenario, asked.changes, Path(folder) / "kernel")


if __name__ == "__main__":
    main()
