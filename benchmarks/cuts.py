"""How long senders go on sending into a T0-T1 link that was cut, in round trips, over many cuts in one run.

    sudo .venv/bin/python benchmarks/cuts.py [ROUNDS]

Runs `scenarios/lessons/t0-t1-cut.yaml` with ROUNDS rounds of 8 cuts. Each cut breaks one path of each of 4 senders, and
what is measured is the time from the moment the link was down (the end of the order that cuts it) to the last data
packet that the sender handed to its kernel for that path. Paths on which nothing was sent any more do not count. A
sender that waits for its neighbour when the cut comes has nothing to send and so learns nothing: this makes the long
ones, and the next row leaves that time out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.recovery import recoveries
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.checks.windows import outages
from mrc_testbed.testbed.rundir.results import run_folders

TARGET = 3.0
"""Wanted of the median, in round trips of full packets: senders lose those, and each takes its time on four links. Base
RTTs are of small ones (21.2 ms where a full packet takes 25.4)."""
LINKS = 4
ROUNDS = 10
SCENARIO = Path(__file__).parents[1] / "scenarios/lessons/t0-t1-cut.yaml"
COMMAND = Path(sys.executable).with_name("mrc-testbed")
STATISTICS = ("p50", "p99", "max")


@dataclass(frozen=True)
class Cuts:
    """What one run shows, over the paths that its cuts broke. Times in base RTTs of that run."""

    exposure: list[float]
    """From the cut to the last data packet, of every path that carried data after the cut."""
    busy_exposure: list[float]
    """The same from the first packet lost on: without the time in which the sender had nothing to send."""
    recovery: list[float]
    """From the first packet lost, or the cut, to the path being given up, of every path that was given up."""
    paths_cut: int
    """Paths of the workload's QPs that were cut, each time counted."""
    unexplained: int
    """Paths given up without a cut."""
    base_rtt_ns: int
    packet_rtt_ns: int
    """Round trip of a full packet without queues: T, and its time on each link."""
    order_ns: float
    """Median time that the order to cut took; the link went down within it."""

    @property
    def median_exposure(self) -> float:
        """In round trips of full packets."""
        return statistic(self.exposure, "p50") * self.base_rtt_ns / self.packet_rtt_ns

    def table(self) -> str:
        """For people."""
        rows = {
            "cut to last packet sent": self.exposure,
            "first packet lost to last sent": self.busy_exposure,
            "first packet lost to given up": self.recovery,
        }
        lines = [f"{'base RTTs':31}{'paths':>7}" + "".join(f"{name:>8}" for name in STATISTICS)]
        for name, values in rows.items():
            lines.append(f"{name:31}{len(values):7}" + "".join(f"{statistic(values, s):8.2f}" for s in STATISTICS))
        lines.append(
            f"{self.paths_cut} paths cut, {len(self.recovery)} given up for it, {self.unexplained} without a cut"
        )
        full = f"of a full packet {self.packet_rtt_ns / 1e6:.1f} ms"
        lines.append(
            f"base RTT {self.base_rtt_ns / 1e6:.1f} ms, {full}; the order to cut took {self.order_ns / 1e6:.1f} ms"
        )
        return "\n".join(lines)


def read_cuts(record: RunRecord) -> Cuts:
    """The figures of a finished run with at least one cut. Raises ValueError when no path was given up for one."""
    cuts = {(outage.fault, outage.number): outage for outage in outages(record)}
    given_up = recoveries(record)
    rtt_ns = record.base_rtt_ns
    if rtt_ns is None or not given_up:
        raise ValueError(f"{record.folder}: no path was given up because of a fault")
    exposed = [found for found in given_up if found.exposure_ns > 0]
    shape = record.scenario.shape()
    busy = [found.change.last_tx_ns - found.change.first_lost_tx_ns for found in exposed]
    return Cuts(
        [found.exposure_ns / rtt_ns for found in exposed],
        [min(found.exposure_ns, busy_ns) / rtt_ns for found, busy_ns in zip(exposed, busy, strict=True)],
        [found.duration_ns / rtt_ns for found in given_up],
        sum(_users(record, outage.links) for outage in cuts.values()),
        sum(change.retired for change in record.ev_changes) - len(given_up),
        rtt_ns,
        round(shape.rtt_ns + LINKS * 1e9 / shape.port_pps),
        median(outage.injected_ns - outage.invoked_ns for outage in cuts.values()),
    )


def _users(record: RunRecord, links: tuple[str, ...]) -> int:
    """How many paths from a rank to its right neighbour cross one of these links."""
    plan = record.plan
    ring = [plan.host_by_name[name] for name in record.scenario.host_names]
    return sum(
        not set(links).isdisjoint(plan.links_on_path(host, right, path.id))
        for host, right in zip(ring, ring[1:] + ring[:1], strict=True)
        for path in plan.paths(host, right)
    )


def settings(rounds: int) -> list[str]:
    """Changes to the scenario for `rounds` rounds; a step takes a little longer than a round."""
    counts = (f"faults.{number}.count={rounds}" for number in range(8))
    return [*counts, f"workload.0.train.steps={rounds + 2}"]


def main() -> int:
    """Run, print, judge. Returns 0 when the target is met; 3 when the run says nothing about it."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    changes = [word for change in settings(rounds) for word in ("--set", change)]
    with tempfile.TemporaryDirectory() as out:
        ran = subprocess.run([COMMAND, "run", SCENARIO, "--out", out, "--quiet", *changes], check=False)
        if ran.returncode != 0:
            return ran.returncode
        (folder,) = run_folders(Path(out))
        cuts = read_cuts(load_record(folder))
    print(cuts.table())
    observed = cuts.median_exposure
    print(f"senders leave a cut path after {observed:.2f} round trips, the median   (wanted: at most {TARGET:g})")
    return 0 if observed <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
