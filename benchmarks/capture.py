"""What it costs to capture a packet, by a ring that the supervisor drains and by tcpdump, and what runs show of it.

    sudo .venv/bin/python benchmarks/capture.py cost [ROUNDS]
    sudo .venv/bin/python benchmarks/capture.py steps [ROUNDS]

`cost`: the bare UDP of benchmarks/endpoint.py, the machine saturated, every link captured at its end nearer to the
hosts, 160 bytes a packet, so that each packet is captured four times. Sides take turns: nothing; taps that were told to
take nothing (as between two windows); taps; a tcpdump a port. Printed: packets a second, CPU time a packet, what one
capture of one packet adds to it, and what was lost by the capture.

`steps`: a training of eight hosts at half load, short, in turn without a capture, with one link and with all links
captured from beginning to end. Printed: the median and the longest step of each, and the ratio to the run without,
taken round by round.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.endpoint import SCENARIO, Result, measure_bare
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.steps import job_steps
from mrc_testbed.testbed.fabric import capabilities, trials
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of, run_isolated
from mrc_testbed.testbed.fabric.tap import FLUSH_S, Tap
from mrc_testbed.testbed.pcap.index import read_index
from mrc_testbed.testbed.rundir.results import run_folders
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.plan import build_plan

SNAP_BYTES = 160
CROSSED = 4
"""Links on the way of a packet, each captured."""
NOTHING, MUTED, RING, TCPDUMP = "nothing", "muted taps", "taps", "tcpdump"
TRAINING = """
name: captured
fabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}
workload:
  - train: {steps: 6, compute: 50ms, allreduce: 4MiB}
faults:
  - {at: 0s, deny: p0-t1-0, for: 1ms, name: always}
"""
"""The fault is there for its window; at half the standard rate the machine has time to spare."""
CAPTURES = {
    "without": "",
    "one link": "capture:\n  - {links: p1-t0-0:p1-t1-1, around: always, after: 60s}\n",
    "all 64 links": "capture:\n  - {links: links, around: always, after: 60s}\n",
}
COMMAND = Path(sys.executable).with_name("mrc-testbed")


class Drain(threading.Thread):
    """Writes what taps hear into a file until told to stop; counts what they lost."""

    def __init__(self, taps: list[Tap], folder: Path) -> None:
        super().__init__()
        self._taps = taps
        self._path = folder / "drained"
        self._over = threading.Event()
        self.lost = 0

    def run(self) -> None:
        with self._path.open("wb", buffering=0) as file:
            while not self._over.wait(0.02):
                for tap in self._taps:
                    for block in tap.blocks():
                        file.write(block)
        self.lost = sum(tap.lost() for tap in self._taps)

    def stop(self) -> None:
        self._over.set()
        self.join()


@contextmanager
def taps(fabric: Fabric, folder: Path, listening: bool) -> Iterator[list[int]]:
    """All links captured by rings; the list takes the number of packets lost."""
    heard = [fabric.tap(link.name, SNAP_BYTES) for link in fabric.plan.links]
    for tap in heard:
        tap.listen()
        if not listening:
            tap.mute()
    drain, lost = Drain(heard, folder), list[int]()
    drain.start()
    yield lost
    threading.Event().wait(FLUSH_S)
    drain.stop()
    lost.append(drain.lost)
    for tap in heard:
        tap.close()


@contextmanager
def tcpdumps(fabric: Fabric, folder: Path) -> Iterator[list[int]]:
    """The same by a tcpdump each."""
    started, lost = [], list[int]()
    for number, link in enumerate(fabric.plan.links):
        node = link.near.node
        with network_of(fabric.pids[node], node):
            words = ["tcpdump", "-i", link.near.name, "-s", str(SNAP_BYTES), "-B", "32768"]
            words += ["-w", str(folder / f"{number}.pcap"), "not", "ip6", "multicast"]
            started.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True))
    threading.Event().wait(1)
    yield lost
    for process in started:
        process.terminate()
        said = process.communicate()[1].splitlines()
        lost += [int(line.split()[0]) for line in said if "dropped by kernel" in line]


def cost(rounds: int) -> int:
    """Measure the sides in turn and print the table."""
    shape = load_scenario_text(SCENARIO).shape()
    chosen = capabilities.choose(trials.probe_kernel(), shape)
    fabric = Fabric.build(build_plan(shape), FabricOptions(chosen.sid_device, "none"))
    results: dict[str, list[Result]] = {name: [] for name in (NOTHING, MUTED, RING, TCPDUMP)}
    missed = dict.fromkeys(results, 0)
    for _ in range(rounds):
        results[NOTHING].append(measure_bare(fabric))
        for name in (MUTED, RING, TCPDUMP):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder)
                with tcpdumps(fabric, place) if name == TCPDUMP else taps(fabric, place, name == RING) as lost:
                    results[name].append(measure_bare(fabric))
                missed[name] += sum(lost)
    print(f"{len(fabric.plan.links)} links captured, {SNAP_BYTES} bytes a packet, {rounds} rounds, medians")
    print(f"{'':12}{'packets/s':>12}{'CPU us each':>13}{'us a capture':>14}{'lost':>9}")
    for name, rows in results.items():
        cpu_us = statistics.median(row.parts_us["all"] for row in rows)
        pairs = zip(rows, results[NOTHING], strict=True)
        more_us = statistics.median(row.parts_us["all"] - bare.parts_us["all"] for row, bare in pairs) / CROSSED
        pps = statistics.median(row.pps for row in rows)
        print(f"{name:12}{pps:12,.0f}{cpu_us:13.1f}{more_us:14.2f}{missed[name]:9}")
    return 0


def steps(rounds: int) -> int:
    """Run the sides in turn and print the table."""
    medians: dict[str, list[float]] = {name: [] for name in CAPTURES}
    longest: dict[str, list[float]] = {name: [] for name in CAPTURES}
    kept = dict.fromkeys(CAPTURES, (0, 0))
    for _ in range(rounds):
        for name, capture in CAPTURES.items():
            with tempfile.TemporaryDirectory() as folder:
                took, kept[name] = _run(Path(folder), capture)
            medians[name].append(statistics.median(took))
            longest[name].append(max(took))
    print(f"{rounds} rounds")
    print(f"{'':14}{'median step':>12}{'longest':>9}{'ratio of medians':>18}{'captured':>10}{'lost':>6}")
    for name in CAPTURES:
        ratios = [a / b for a, b in zip(medians[name], medians["without"], strict=True)]
        told = f"{min(ratios):.3f} to {max(ratios):.3f}"
        middle = f"{statistics.median(medians[name]):.3f} s"
        print(f"{name:14}{middle:>12}{max(longest[name]):7.3f} s{told:>18}{kept[name][0]:10}{kept[name][1]:6}")
    return 0


def _run(folder: Path, capture: str) -> tuple[list[float], tuple[int, int]]:
    """Seconds of each step, and packets that were captured and lost."""
    scenario = folder / "captured.yaml"
    scenario.write_text(TRAINING + capture, encoding="utf-8")
    out = folder / "results"
    subprocess.run([COMMAND, "run", scenario, "--out", out, "--quiet"], check=False)
    (run,) = run_folders(out)
    files = read_index(run)
    took = [step.duration_ns / 1e9 for step in job_steps(load_record(run))]
    return took, (sum(file.packets for file in files), sum(file.lost for file in files))


def main() -> int:
    """`cost` in namespaces of its own, `steps` as a user would."""
    what, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    return run_isolated(lambda: cost(rounds)) if what == "cost" else steps(rounds)


if __name__ == "__main__":
    sys.exit(main())
