"""What the live view costs a run: CPU of its frames, the longest of them, and whether steps take longer beside it.

    sudo .venv/bin/python benchmarks/live.py [PAIRS]

Runs half a packet budget (8 hosts, 4 planes, 12.5 Mb/s) with a fault, PAIRS times with plain lines and PAIRS times with
the live view, in turn, on a terminal of 120 x 40 that `cat` reads. The view may take 3 % of a core. Steps beside it may
take longer by 2 %, or by as much as runs with plain lines differ among themselves.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from testbed.checks.record import load_record
from testbed.checks.steps import job_steps
from testbed.fabric import capabilities
from testbed.fabric.sandbox import run_isolated
from testbed.live.live import Live, Screen
from testbed.live.model import LiveModel
from testbed.live.terminal import Terminal
from testbed.live.tty import Tty
from testbed.runner.folder import Recorder, create_folder
from testbed.runner.news import News, PhaseBegins, WorkloadBegins
from testbed.runner.options import fabric_options
from testbed.runner.phases import RunJob, run_phases
from testbed.runner.progress import Lines, Progress, Silent, Together
from testbed.scenario import Scenario, load_scenario_text
from topos.plan import build_plan

PAIRS = 3
MAX_SHARE = 0.03
MAX_RATIO = 1.02
_SIZE = (40, 120)
_FOUND = "benchmark.json"
SCENARIO = """
name: live
seed: 7
fabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}
workload: [{train: {hosts: all, steps: 6, compute: 100ms, allreduce: 4MiB}}]
faults: [{at: 2s, switch-reboot: p1-t1-3, boot: 2s}]
"""


@dataclass(frozen=True)
class Cost:
    """One run. Shares are of a core, over the measured part; frames are none with plain lines."""

    step_s: float
    supervisor: float
    frames: int
    drawing: float
    longest_ms: tuple[float, float]
    """CPU time of the longest frame, and how long the loop was held by one, waits for a CPU included."""

    def line(self, name: str) -> str:
        """For people."""
        drawn = (
            f"{self.frames:8}{self.drawing:9.2%}{self.longest_ms[0]:9.1f} ms{self.longest_ms[1]:9.1f} ms"
            if self.frames
            else ""
        )
        return f"{name:8}{self.step_s:9.3f} s{self.supervisor:12.2%}{drawn}"


class Meter(Silent):
    """CPU time of the supervisor while the workload runs, written into the folder at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: tuple[float, float] | None = None
        self.running = False
        self.found: dict[str, Any] = {}

    def tell(self, news: News) -> None:
        """From the start of the workload to its end."""
        now = (time.monotonic(), sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
        match news:
            case WorkloadBegins():
                self._before, self.running = now, True
            case PhaseBegins("heal") if self._before:
                self.running = False
                self.found["seconds"], self.found["cpu_s"] = now[0] - self._before[0], now[1] - self._before[1]

    def close(self) -> None:
        """Keep it."""
        (self._folder / _FOUND).write_text(json.dumps(self.found), encoding="utf-8")


class MeasuredLive(Live):
    """Notes what each frame took while the workload ran."""

    def __init__(self, meter: Meter, model: LiveModel, *screens: Screen) -> None:
        super().__init__(model, *screens)
        self._meter = meter
        meter.found |= {"frames": 0, "drawing_s": 0.0, "longest_cpu_s": 0.0, "longest_s": 0.0}

    def draw(self) -> None:
        """As ever, by two clocks: that of the CPU, and that of whoever waits for the loop."""
        before = (time.thread_time(), time.monotonic())
        super().draw()
        if self._meter.running:
            self._note(time.thread_time() - before[0], time.monotonic() - before[1])

    def _note(self, cpu_s: float, took_s: float) -> None:
        found = self._meter.found
        found["frames"] += 1
        found["drawing_s"] += cpu_s
        found["longest_cpu_s"] = max(found["longest_cpu_s"], cpu_s)
        found["longest_s"] = max(found["longest_s"], took_s)


@contextmanager
def terminal() -> Iterator[Console]:
    """A terminal whose other end is read as fast as anybody can."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
    with (
        os.fdopen(slave, "w") as file,
        subprocess.Popen(["cat"], stdin=master, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as reader,
    ):
        os.close(master)
        yield Console(file=file, force_terminal=True, color_system="standard", highlight=False)
        file.close()
        reader.terminate()


def run(scenario: Scenario, out: Path, live: bool) -> Cost:
    """One run. Raises RuntimeError when it does not come to its end."""
    found = capabilities.probe()
    capabilities.require(found)
    folder = create_folder(out, scenario.name)
    Recorder(folder).text("scenario.yaml", scenario.dump_yaml())
    job = RunJob(scenario, folder, found, fabric_options(scenario, found))

    def listener(console: Console) -> Progress:
        meter, plan = Meter(folder), build_plan(scenario.shape())
        if not live:
            return Together(Lines(console), meter)
        screen = Terminal(console, plan, Tty(console.file))
        return Together(MeasuredLive(meter, LiveModel(scenario, plan), screen), meter)

    with terminal() as console:
        status = run_isolated(lambda: run_phases(job, listener(console)))
    if status:
        raise RuntimeError(f"the run ended with status {status}")
    return _cost(folder)


def _cost(folder: Path) -> Cost:
    found = json.loads((folder / _FOUND).read_text(encoding="utf-8"))
    seconds = found["seconds"]
    steps = [step.duration_ns / 1e9 for step in job_steps(load_record(folder))]
    drawing = found.get("drawing_s", 0.0) / seconds
    longest_ms = (found.get("longest_cpu_s", 0.0) * 1e3, found.get("longest_s", 0.0) * 1e3)
    return Cost(median(steps), found["cpu_s"] / seconds, found.get("frames", 0), drawing, longest_ms)


def main() -> int:
    """Run in turn, print, judge. Returns 0 when the view costs no more than it may."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    scenario = load_scenario_text(SCENARIO)
    plain: list[Cost] = []
    live: list[Cost] = []
    print(f"{'':8}{'step p50':>11}{'supervisor':>12}{'frames':>8}{'drawing':>9}{'longest':>12}{'held up':>12}")
    turns = [("plain", plain), ("live", live)]
    with tempfile.TemporaryDirectory() as out:
        for number in range(pairs):
            for name, costs in turns if number % 2 == 0 else turns[::-1]:
                costs.append(run(scenario, Path(out), name == "live"))
                print(costs[-1].line(name), flush=True)
    ratios = [one.step_s / other.step_s for one, other in zip(live, plain, strict=True)]
    spread = max(cost.step_s for cost in plain) / min(cost.step_s for cost in plain)
    share, ratio = max(cost.drawing for cost in live), median(ratios)
    print(f"drawing takes {share:.2%} of a core at most   (wanted: {MAX_SHARE:.0%})")
    print(f"steps live / plain {ratio:.4f}, from {min(ratios):.4f} to {max(ratios):.4f}")
    print(f"plain runs differ by {spread - 1:.2%}")
    return 0 if share <= MAX_SHARE and ratio <= max(MAX_RATIO, spread) else 1


if __name__ == "__main__":
    sys.exit(main())
