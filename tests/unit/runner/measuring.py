"""A measurement on fakes: virtual time, a fabric and daemons that only remember."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.faults.inject import Injector
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import create_folder
from mrc_testbed.testbed.runner.events import FaultDone, RunEvent, StepsDone
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from mrc_testbed.testbed.runner.measure import Measurement
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.topos.plan import build_plan
from tests.unit.fakes import FakeClock, FakeFabric

S = 1_000_000_000
SCENARIO = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 3, compute: 1s, allreduce: 1MiB}}]
time_limit: 20s
"""
CUT = "faults: [{at: 1s, link-down: p0-t0-0:p0-t1-0, for: 2s, name: cut}]\n"
TWO = """\
faults:
  - {at: 1s, link-down: p0-t0-0:p0-t1-0, for: 9s, name: cut}
  - {at: 2s, switch-reboot: p1-t1-1, boot: 9s, name: reboot}
"""


class Told(Silent):
    """A progress that remembers."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def publish(self, event: RunEvent) -> None:
        self.events.append(event)

    @property
    def steps(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, StepsDone)]

    @property
    def faults(self) -> list[str]:
        return [f"{event.step.action.value} {event.text}" for event in self.events if isinstance(event, FaultDone)]


class FakeWatch:
    """The machine's figures without the machine."""

    softnet_has_dead_ports = False

    def figures(self) -> dict[str, Any]:
        return {
            "measured_s": 1.0,
            "cpu_pressure_some": None,
            "run_delay": {},
            "softnet_drops": 0,
            "wall_clock_step_ns": 0,
        }

    def at_rest(self) -> dict[str, Any]:
        return {}

    def unavailable(self) -> dict[str, str]:
        return {"cpu_pressure_some": "this kernel does not count it (PSI)"}


class FakeTeam:
    """Daemons that fall quiet and answer `stats`."""

    pids = {"h0": 1, "h1": 2}  # noqa: RUF012

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, command: str, *_: Any, **__: Any) -> dict[str, dict[str, Any]]:
        self.asked.append(command)
        return {
            host: {
                "id": 9,
                "ok": True,
                "counters": {"sent": pid},
                "paths": {},
                "qps": {},
                "lateness": {"p99_ns": pid * 10, "max_ns": pid * 100},
            }
            for host, pid in self.pids.items()
        }


class Bench:
    """A measurement on fakes. Times of `at` count in seconds from the start of the workload."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
        self.clock = FakeClock().install(monkeypatch)
        self.folder = create_folder(tmp_path, "small")
        scenario = load_scenario_text(SCENARIO + extra)
        plan = build_plan(scenario.shape())
        self.fabric, self.loop, self.told = FakeFabric(plan), RealTimeLoop(), Told()
        fabric = cast(Fabric, self.fabric)
        self.injector = Injector(TargetSystem(fabric, self.fabric.update_denylists))
        self.measurement = Measurement(scenario, fabric, self.loop, Recorder(self.folder), self.told, self.injector)
        self.start_ns = self.clock.now_ns + S // 5
        self.fake_team = FakeTeam()
        self.team = cast(Team, self.fake_team)
        self.rtt_ns = scenario.fabric.rtt_ns

    def say(self, at_s: float, host: str, event: str, **fields: Any) -> None:
        t_ns = self.start_ns + int(at_s * S)
        self.loop.at(t_ns, lambda: self.measurement.on_event(host, {"event": event, "t_ns": t_ns, **fields}))

    def step(self, at_s: float, host: str, step: int) -> None:
        end_ns = self.start_ns + int(at_s * S)
        begin_ns = end_ns - S // 2
        self.say(
            at_s, host, "step", step=step, begin_ns=begin_ns, end_ns=end_ns, bytes=100 + step, bytes_wrong=0, waits={}
        )

    def finish(self, at_s: float, *hosts: str) -> None:
        for host in hosts or ("h0", "h1"):
            self.say(at_s, host, "program_done")

    def run(self) -> float:
        """Run it; how long that took, in seconds from the start."""
        self.measurement.watch_machine(FakeWatch())
        try:
            self.measurement.run(self.start_ns)
        finally:
            self.took_s = (self.clock.now_ns - self.start_ns) / S
        return self.took_s

    def history(self, *keys: str) -> list[tuple[Any, ...]]:
        lines = [json.loads(line) for line in (self.folder / "history.jsonl").read_text().splitlines()]
        return [tuple(line.get(key) for key in keys) for line in lines]

    def faults_done(self) -> list[tuple[Any, ...]]:
        return [line for line in self.history("op", "fault", "type") if line[0] != "workload"]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bench:
    return Bench(tmp_path, monkeypatch, getattr(request, "param", ""))


cut = pytest.mark.parametrize("bench", [CUT], indirect=True, ids=["one cut"])
DENIED = "faults: [{at: 1s, deny: [p1, p0-t1-0], for: 2s, name: controller}]\n"
COLD = "faults: [{at: cold-start, link-flap: p0-t0-0:p0-t1-0, period: 2s, count: 2, name: cold}]\n"
denied = pytest.mark.parametrize("bench", [DENIED], indirect=True, ids=["denied"])
cold = pytest.mark.parametrize("bench", [COLD], indirect=True, ids=["cold"])
two = pytest.mark.parametrize("bench", [TWO], indirect=True, ids=["two faults"])
loss = pytest.mark.parametrize(
    "bench", ["faults: [{at: 1s, link-loss: p0-t0-0:p0-t1-0, loss: 20%, for: 2s, name: loss}]\n"], indirect=True
)
