"""CPU time per data packet of each transport, in the quickstart's shape: 8 hosts, 12.5 Mb/s x 4, T = 40 ms.

    sudo .venv/bin/python benchmarks/transports.py [TRANSPORT ...]

One run of training without faults a transport, one after the other. What counts is CPU time of all endpoint daemons
(user and system; the switches run in the context of the sender) from their first to their last report during the
steps, over the data packets sent in that time. Beside it is what the kernel delay takes, which has TCP's receive
path in it. The last column is `all us` over that of the first transport.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotReader

COMMAND = Path(sys.executable).with_name("mrc-testbed")
TRANSPORTS = ("mrc", "roce", "tcp")
SCENARIO = """
name: transports
fabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}
workload:
  - train: {hosts: all, steps: 8, compute: 100ms, allreduce: 4MiB}
"""


@dataclass(frozen=True)
class Cost:
    """Of one run. CPU in microseconds a data packet; `cores`: of daemons and delay together, over the time."""

    packets: int
    daemon_us: float
    delay_us: float
    cores: float
    step_s: float

    @property
    def all_us(self) -> float:
        """Daemons and kernel delay."""
        return self.daemon_us + self.delay_us


def measure(transport: str, folder: Path) -> Cost:
    """Run, and read what the run left."""
    scenario = folder / "transports.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    command = [str(COMMAND), "run", str(scenario), "--set", f"transport={transport}", "--out", str(folder / transport)]
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{transport}: {done.stdout}{done.stderr}")
    (run,) = (path.parent for path in (folder / transport).glob("*/verdict.json") if not path.parent.is_symlink())
    return cost_of(run)


def cost_of(run: Path) -> Cost:
    """From the snapshots between the first step's begin and the last one's end."""
    lines = (run / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [*map(SnapshotReader().whole, map(json.loads, lines))]
    steps = [event for event in events if event["event"] == "step"]
    begin_ns, end_ns = min(step["begin_ns"] for step in steps), max(step["end_ns"] for step in steps)
    within: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["event"] == "snapshot" and begin_ns <= event["t_ns"] <= end_ns:
            within[event["host"]].append(event)

    def grown(name: str) -> int:
        return sum(shots[-1]["counters"][name] - shots[0]["counters"][name] for shots in within.values())

    packets, daemons_ns = grown("data_sent"), grown("cpu_ns")
    delay = json.loads((run / "fidelity.json").read_text(encoding="utf-8")).get("kernel_delay")
    delay_ns = delay["cpu_ns"] if delay else 0
    seconds = (end_ns - begin_ns) / 1e9
    lasted = sorted((step["end_ns"] - step["begin_ns"]) / 1e9 for step in steps)
    return Cost(
        packets,
        daemons_ns / packets / 1e3,
        delay_ns / packets / 1e3,
        (daemons_ns + delay_ns) / 1e9 / seconds,
        lasted[len(lasted) // 2],
    )


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        costs = {transport: measure(transport, Path(folder)) for transport in sys.argv[1:] or TRANSPORTS}
    print("transport  data packets  daemons us  delay us  all us  cores  step s  ratio")
    first = next(iter(costs.values()))
    for transport, cost in costs.items():
        print(
            f"{transport:9s}  {cost.packets:12d}  {cost.daemon_us:10.1f}  {cost.delay_us:8.1f}  {cost.all_us:6.1f}"
            f"  {cost.cores:5.2f}  {cost.step_s:6.2f}  {cost.all_us / first.all_us:5.2f}"
        )


if __name__ == "__main__":
    main()
