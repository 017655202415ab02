"""What the supervisor of a run pays for showing it in browsers: a frame made, put into JSON and sent, and how long that
took at the most. The server is a process of its own; what it and the browsers cost is theirs.

    python benchmarks/web.py
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from mrc_testbed.testbed.live.layout import EVERY_S
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.runner.events import Note, PhaseBegins, PortsSampled, WorkloadBegins
from mrc_testbed.testbed.scenario import Scenario, load_scenario, load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.web.server_process import ServerProcess
from mrc_testbed.topos.plan import Plan

FRAMES = 500
LARGE = """
name: large
fabric: {planes: 4, t0_groups: 4, t1: 8, hosts_per_t0: 8}
workload: [{train: {hosts: all, steps: 30, compute: 100ms, allreduce: 1MiB}}]
"""


def busy_model(scenario: Scenario, plan: Plan) -> LiveModel:
    """A run in its middle, with a full ticker."""
    model, now_ns = LiveModel(scenario, plan), time.monotonic_ns()
    model.publish(PhaseBegins("run"))
    model.publish(WorkloadBegins(now_ns))
    for _ in range(60):
        model.publish(Note(now_ns, "note", "8 EVs of p1-t1-3 retired by 5 hosts"))
    for turn in (1, 2):
        rows = [(node, own.name, 0, 0, 0, turn * 10**5, 0, 0) for node, ports in plan.ports.items() for own, _ in ports]
        model.publish(PortsSampled(now_ns + turn * round(EVERY_S * 1e9), rows))
    return model


def measure(name: str, scenario: Scenario) -> None:
    """Print what frames of this scenario cost."""
    plan = scenario.plan()
    model = busy_model(scenario, plan)
    server = ServerProcess(None, interactive=False)
    server.begin(scenario, FabricOptions("dummy", "netem", "port program"))
    (screen,) = server.screens()
    taken = []
    for _ in range(FRAMES):
        began_ns = time.thread_time_ns()
        frame = model.frame(time.monotonic_ns())
        screen.draw(frame)
        taken.append((time.thread_time_ns() - began_ns) / 1e6)
        time.sleep(0.01)
    server.close()
    taken.sort()
    mean = sum(taken) / FRAMES
    share = mean / 1e3 / EVERY_S
    tail = f"p99 {taken[FRAMES * 99 // 100]:.2f} ms, longest {taken[-1]:.2f} ms"
    print(f"{name:10} {mean:.2f} ms a frame, {tail}; {share:.2%} of a core")


def main() -> None:
    """Two fabrics."""
    os.chdir(Path(__file__).parent.parent)
    measure("quickstart", load_scenario(Path("scenarios/quickstart.yaml")))
    measure("32 hosts", load_scenario_text(LARGE))


if __name__ == "__main__":
    main()
