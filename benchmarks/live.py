"""What the live view costs a run: CPU of its frames, the longest of them, and whether steps take longer beside it.

    sudo .venv/bin/python benchmarks/live.py [RUNS]

Runs half a packet budget (8 hosts, 4 planes, 12.5 Mb/s) on a terminal of 120 x 40 that `cat` reads, and draws in every
second step only, so that steps with and without the view have the same machine beside them. The view may take 3 % of a
core. Steps with it may take longer by 2 %, or by as much as two halves of the steps without it differ.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console

from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.live.live import Live
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.live.terminal import Terminal
from mrc_testbed.testbed.live.tty import Tty
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import create_folder
from mrc_testbed.testbed.runner.events import RunEvent, StepsDone
from mrc_testbed.testbed.runner.kernel_world import KernelWorld
from mrc_testbed.testbed.runner.options import fabric_options
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.progress import Screen
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text

RUNS = 2
MAX_SHARE = 0.03
MAX_RATIO = 1.02
_SIZE = (40, 120)
_FOUND = "benchmark.json"
SCENARIO = """
name: live
seed: 7
fabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}
workload: [{train: {hosts: all, steps: 17, compute: 100ms, allreduce: 4MiB}}]
"""


@dataclass
class Step:
    """One step of all ranks: `cpu_s` is the supervisor's, `drawing_s` the part of it for frames."""

    drawn: bool
    took_s: float
    cpu_s: float
    drawing_s: float
    frames: int
    longest_cpu_s: float
    """CPU time of its longest frame."""
    longest_s: float
    """How long the loop was held by one frame, waits for a CPU included."""


class EverySecondStep(Live):
    """A live view that is switched off in every second step, and notes what each step took. The first is left out."""

    def __init__(self, folder: Path, model: LiveModel, *screens: Screen) -> None:
        super().__init__(model, *screens)
        self._folder = folder
        self._steps: list[Step] = []
        self._frames: list[tuple[float, float]] = []
        self._cpu_s = 0.0

    def publish(self, event: RunEvent) -> None:
        """As ever; when a step ends, what it took."""
        super().publish(event)
        if isinstance(event, StepsDone):
            cpu_s = time.process_time()
            if event.done > 1:
                cpu = [frame[0] for frame in self._frames] or [0.0]
                held = [frame[1] for frame in self._frames] or [0.0]
                figures = (sum(cpu), len(self._frames), max(cpu), max(held))
                self._steps.append(Step(self._on, event.last_s, cpu_s - self._cpu_s, *figures))
            self._cpu_s, self._frames = cpu_s, []

    @property
    def _on(self) -> bool:
        return len(self._steps) % 2 == 0

    def draw(self) -> None:
        """By two clocks: that of the CPU, and that of those who wait for the loop."""
        if self._on:
            before = (time.thread_time(), time.monotonic())
            super().draw()
            self._frames.append((time.thread_time() - before[0], time.monotonic() - before[1]))

    def close(self) -> None:
        """Keep what was noted."""
        super().close()
        (self._folder / _FOUND).write_text(json.dumps([asdict(step) for step in self._steps]), encoding="utf-8")


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


def run(scenario: Scenario, out: Path) -> list[Step]:
    """One run. Raises RuntimeError when it does not come to its end."""
    found = capabilities.probe()
    capabilities.require(found)
    folder = create_folder(out, scenario.name)
    Recorder(folder).text("scenario.yaml", scenario.dump_yaml())
    job = RunJob(scenario, folder, KernelWorld(found, fabric_options(scenario, found)))
    plan = scenario.plan()

    def listener(console: Console) -> Live:
        return EverySecondStep(folder, LiveModel(scenario, plan), Terminal(console, plan, Tty(console.file)))

    with terminal() as console:
        status = run_isolated(lambda: run_phases(job, listener(console)))
    if status:
        raise RuntimeError(f"the run ended with status {status}")
    return [Step(**step) for step in json.loads((folder / _FOUND).read_text(encoding="utf-8"))]


def table(steps: list[Step]) -> str:
    """For people."""
    lines = [f"{'':14}{'steps':>6}{'median':>10}{'supervisor':>12}{'drawing':>9}{'longest':>10}{'held up':>10}"]
    for name, drawn in (("with frames", True), ("without", False)):
        some = [step for step in steps if step.drawn is drawn]
        all_s = sum(step.took_s for step in some)
        cpu, drawing = (sum(getattr(step, key) for step in some) / all_s for key in ("cpu_s", "drawing_s"))
        longest, held = (max(getattr(step, key) for step in some) * 1e3 for key in ("longest_cpu_s", "longest_s"))
        middle = median(step.took_s for step in some)
        row = f"{name:14}{len(some):6}{middle:8.3f} s{cpu:12.2%}"
        lines.append(row + (f"{drawing:9.2%}{longest:7.1f} ms{held:7.1f} ms" if drawn else ""))
    return "\n".join(lines)


def main() -> int:
    """Run, print, judge. Returns 0 when the view costs no more than it may."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    scenario = load_scenario_text(SCENARIO)
    with tempfile.TemporaryDirectory() as out:
        steps = [step for _ in range(runs) for step in run(scenario, Path(out))]
    drawn, plain = ([step for step in steps if step.drawn is on] for on in (True, False))
    share = sum(step.drawing_s for step in drawn) / sum(step.took_s for step in drawn)
    ratio = median(step.took_s for step in drawn) / median(step.took_s for step in plain)
    halves = [median(step.took_s for step in plain[at::2]) for at in (0, 1)]
    noise = max(halves) / min(halves)
    print(table(steps))
    print(f"frames take {share:.2%} of a core   (wanted: at most {MAX_SHARE:.0%})")
    print(f"steps with frames / without {ratio:.4f}; two halves of those without differ by {noise - 1:.2%}")
    return 0 if share <= MAX_SHARE and ratio <= max(MAX_RATIO, noise) else 1


if __name__ == "__main__":
    sys.exit(main())
