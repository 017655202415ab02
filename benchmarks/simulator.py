"""The same leaf-spine, flows and bytes in uet-htsim, as you have built it, and here in virtual time.

    .venv/bin/python -m benchmarks.simulator PATH [--hosts 64,256] [--kib 4096]

PATH: the program `htsim_uec`, or a folder that has it below it (https://github.com/ultraethernet/uet-htsim). Every host
sends one message to the host in the same place on the next leaf; leaves have as many uplinks as hosts, so nobody waits.
Printed for both: packets (here an empty one ends each flow), those sent again, wall and CPU time by the packet, and the
completion times of the flows (least, median, most) as ratios to an ideal: packets of that program's size one behind the
other, store-and-forward, and an acknowledgement back. There ports have 100 Gb/s and links 1 us; here the same numbers
of packets in flight at 12.5 Mb/s, which ratios do not show. Times there are of the whole process, here of the workload;
set-up, warm-up and files are told beside it.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, process_time

from mrc_testbed.testbed.errors import RunError, TestbedError, UsageError
from mrc_testbed.testbed.runner.events import PhaseBegins, RunEvent, WorkloadBegins
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.runner.virtual_world import VirtualWorld
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.workloads.estimate import LEAST_FRAME_BYTES, earliest_completion_ns
from mrc_testbed.topos.shape import PAYLOAD_BYTES, Shape

PROGRAM = "htsim_uec"
HOSTS, KIB = (64, 256), 4096
GBPS, LINK_NS = 100, 1_000
"""Of the other program's ports; of each of its four links one way."""
SLOWER = 8_000
"""Rates here, and T in proportion: endpoints take turns no closer than 50 us."""
UEC_HEADER_BYTES, UEC_ACK_BYTES = 64, 64
"""Of the other program's packets."""
LINKS = 4
_LEAST_HOSTS = 4
_ENOUGH = 200
"""Times the ideal after which the other program ends, whatever is under way."""
_FINISHED = re.compile(r"^Flow Uec_(\d+)_(\d+) .* finished at ([0-9.e+]+)", re.MULTILINE)
_SENT = re.compile(r"^New: (\d+) Rtx: (\d+) ", re.MULTILINE)
_SHOWN = 200


@dataclass(frozen=True)
class Case:
    """`hosts`: a power of two."""

    hosts: int
    size_bytes: int

    @property
    def below(self) -> int:
        """Hosts on a leaf: as many as leaves, or half as many."""
        return 1 << (self.hosts.bit_length() - 1) // 2

    @property
    def leaves(self) -> int:
        return self.hosts // self.below

    @property
    def scenario(self) -> Scenario:
        """Here."""
        size = f"t0_groups: {self.leaves}, t1: {self.below}, hosts_per_t0: {self.below}"
        rtt_ns = 2 * LINKS * LINK_NS * SLOWER
        return load_scenario_text(
            f"name: simulator\nworld: virtual\nvirtual: {{lateness: 0s}}\n"
            f"fabric: {{planes: 1, {size}, port_rate: {GBPS * 10**9 // SLOWER}bit, rtt: {rtt_ns}ns}}\n"
            f"workload: [{{permutation: {{bytes: {self.size_bytes}B, message: {self.size_bytes}B}}}}]\n"
            "expect: [qp_errors == 0, bytes_wrong == 0]\n"
        )

    @property
    def topology(self) -> str:
        """There."""
        tier = "Tier {}\nDownlink_speed_Gbps {}\nRadix_Down {}\n{}Downlink_Latency_ns {}\nSwitch_Latency_ns 0\n"
        leaf = tier.format(0, GBPS, self.below, f"Radix_Up {self.below}\n", LINK_NS)
        spine = tier.format(1, GBPS, self.leaves, "", LINK_NS)
        return f"Nodes {self.hosts}\nTiers 2\nPodsize {self.hosts}\n{leaf}{spine}"

    @property
    def matrix(self) -> str:
        """There."""
        pairs = ((host, (host + self.below) % self.hosts) for host in range(self.hosts))
        lines = "".join(
            f"{src}->{dst} id {number} start 0 size {self.size_bytes}\n" for number, (src, dst) in enumerate(pairs, 1)
        )
        return f"Nodes {self.hosts}\nConnections {self.hosts}\n{lines}"

    def ideal_ns(self, shape: Shape, answer_bytes: int) -> float:
        """Of a flow, from its begin until its acknowledgement is back."""
        return earliest_completion_ns(shape, self.size_bytes, LINKS, answer_bytes)

    @property
    def other_ideal_ns(self) -> float:
        """There."""
        here = self.scenario.shape()
        rate, rtt_ns = GBPS * 10**9, 2 * LINKS * LINK_NS
        there = replace(here, port_rate_bps=rate, rtt_ns=rtt_ns, header_bytes=UEC_HEADER_BYTES)
        return self.ideal_ns(there, UEC_ACK_BYTES)


@dataclass(frozen=True)
class Found:
    """Of one program. `ratios`: of each flow that ended, its time by the ideal; `beside_s`: wall time that `wall_s`
    leaves out."""

    packets: int
    again: int
    wall_s: float
    cpu_s: float
    beside_s: float
    ratios: Sequence[float]


def program_below(path: Path) -> Path:
    """Raises UsageError where there is none that can be run."""
    for found in (path, *sorted(path.rglob(PROGRAM))):
        if found.is_file() and os.access(found, os.X_OK):
            return found.absolute()
    raise UsageError(f"{path}: no program {PROGRAM} there; build uet-htsim, then name it or a folder above it")


def there(program: Path, case: Case) -> Found:
    """Run the other program. Raises RunError."""
    with tempfile.TemporaryDirectory() as folder:
        topology, matrix = Path(folder, "leaf-spine.topo"), Path(folder, "shift.cm")
        topology.write_text(case.topology, encoding="ascii")
        matrix.write_text(case.matrix, encoding="ascii")
        end_us = int(case.other_ideal_ns * _ENOUGH / 1000)
        words = [program, "-topo", topology, "-tm", matrix, "-linkspeed", GBPS * 1000, "-paths", case.below]
        words += ["-mtu", PAYLOAD_BYTES + UEC_HEADER_BYTES, "-end", end_us, "-seed", 1]
        began_s, used_s = monotonic(), _used_by_children_s()
        try:
            done = subprocess.run(
                [str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise RunError(f"{program}: {error.strerror}") from error
        wall_s, cpu_s = monotonic() - began_s, _used_by_children_s() - used_s
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-_SHOWN:]
        raise RunError(f"{program}: exit status {done.returncode}: {said}")
    return found_in(done.stdout, case, wall_s, cpu_s)


def _used_by_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def found_in(output: str, case: Case, wall_s: float, cpu_s: float) -> Found:
    """What the other program printed. Raises RunError for anything else."""
    sent = _SENT.search(output)
    ended = {(int(src), int(dst)): float(time_us) for src, dst, time_us in _FINISHED.findall(output)}
    if sent is None or not ended:
        raise RunError(f"{PROGRAM} printed no count of packets or no end of a flow: {output.strip()[-_SHOWN:]}")
    ratios = [time_us * 1000 / case.other_ideal_ns for time_us in ended.values()]
    new, again = map(int, sent.groups())
    return Found(new + again, again, wall_s, cpu_s, 0.0, ratios)


class Stopwatch(Silent):
    """When phases began: wall and CPU time."""

    def __init__(self) -> None:
        self.began: dict[str, tuple[float, float]] = {}

    def publish(self, event: RunEvent) -> None:
        if isinstance(event, PhaseBegins):
            self.began[event.name] = monotonic(), process_time()
        elif isinstance(event, WorkloadBegins):
            self.began["workload"] = monotonic(), process_time()


def here(case: Case) -> Found:
    """Run here. Raises RunError."""
    scenario, watch = case.scenario, Stopwatch()
    began_s = monotonic()
    gc.disable()  # as runs do
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if status := run_phases(RunJob(scenario, folder, VirtualWorld(scenario)), watch):
            raise RunError(f"the run in virtual time ended with exit status {status}")
        hosts = json.loads((folder / "counters.json").read_text(encoding="utf-8"))["hosts"].values()
        with (folder / "messages.csv").open(encoding="utf-8", newline="") as file:
            times_ns = [int(row["duration_ns"]) for row in csv.DictReader(file)]
    counters = [host["counters"] for host in hosts]
    sent, again = (sum(each.get(key, 0) for each in counters) for key in ("data_sent", "retransmitted"))
    ideal_ns = case.ideal_ns(scenario.shape(), LEAST_FRAME_BYTES)
    (begin_s, before_s), (end_s, after_s) = watch.began["workload"], watch.began["heal"]
    beside_s = monotonic() - began_s - (end_s - begin_s)
    ratios = [each / ideal_ns for each in times_ns]
    return Found(sent, again, end_s - begin_s, after_s - before_s, beside_s, ratios)


def line(word: str, case: Case, found: Found) -> str:
    """A row of the table."""
    ratios = sorted(found.ratios)
    times = "".join(f"{each:8.3f}" for each in (ratios[0], statistics.median(ratios), ratios[-1]))
    lacking = case.hosts - len(ratios)
    rest = f"  {lacking} flows did not end" if lacking else ""
    wall_us, cpu_us = (each_s * 1e6 / found.packets for each_s in (found.wall_s, found.cpu_s))
    took = f"{found.wall_s:9.2f}{found.beside_s:8.2f}{wall_us:9.2f}{cpu_us:9.2f}"
    return f"{case.hosts:>5} {word:10}{found.packets:>10,}{found.again:>7}{took}{times}{rest}"


HEAD = f"hosts {'':10}{'packets':>10}{'again':>7}{'wall s':>9}{'beside':>8}{'wall us':>9}{'CPU us':>9}   FCT / ideal"


def case_of(word: str, kib: int) -> Case:
    """Raises UsageError."""
    hosts = int(word) if word.isdigit() else 0
    if hosts < _LEAST_HOSTS or hosts & (hosts - 1) or kib < 1:
        raise UsageError(f"--hosts {word} --kib {kib}: powers of two from {_LEAST_HOSTS} on, and 1 KiB or more")
    return Case(hosts, kib * 1024)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the arguments, run both, print."""
    parser = argparse.ArgumentParser(prog="benchmarks.simulator")
    parser.add_argument("path", type=Path)
    parser.add_argument("--hosts", default=",".join(map(str, HOSTS)))
    parser.add_argument("--kib", type=int, default=KIB)
    asked = parser.parse_args(arguments)
    try:
        program = program_below(asked.path)
        cases = [case_of(word, asked.kib) for word in asked.hosts.split(",")]
        print(HEAD)
        for case in cases:
            print(line(PROGRAM, case, there(program, case)), flush=True)
            print(line("here", case, here(case)), flush=True)
    except TestbedError as error:
        print(f"simulator: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
