"""Endpoints at rest, whose `mrc0` carries what somebody sends from a prompt."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from mrc_testbed.hosts.scratch import PRIVATE
from mrc_testbed.testbed.fabric.sandbox import run_tied
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.endpoints import Endpoints
from mrc_testbed.testbed.runner.kernel_world import KernelWorld
from mrc_testbed.testbed.runner.launching import Watched
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.topos.names import host_name
from mrc_testbed.topos.overlay import ipv4
from mrc_testbed.topos.plan import Plan

_FOLDER = PRIVATE / "shell"
_BEGIN_NS = 200_000_000
_A_DAY_NS = 24 * 3600 * 10**9


def data_addresses(scenario: Scenario) -> dict[str, str]:
    """What names of hosts mean at a prompt: the addresses of `mrc0`, on those that programs reach."""
    shape = scenario.shape()
    numbers = {number for job in scenario.job.programs for number in job.entry.job(shape).network}
    return {host_name(number): ipv4(number) for number in numbers}


class Standby:
    """Every endpoint of a scenario is connected and idle, on the fabric that `world` has built. Raises RunError,
    FabricError."""

    def __init__(self, world: KernelWorld, scenario: Scenario, plan: Plan) -> None:
        self._loop = world.loop
        (_FOLDER / "logs").mkdir(parents=True)
        job = scenario.job.plan_job(plan)
        endpoints = Endpoints(world, scenario, plan, job, Recorder(_FOLDER), lambda *_: None)
        endpoints.open({}, {})
        endpoints.begin_warm_up(())
        base_rtt_ns = endpoints.finish_warm_up()
        endpoints.start(self._loop.now_ns() + _BEGIN_NS, base_rtt_ns)

    def beside(self, prompt: Callable[[], int]) -> int:
        """Run the prompt in a process of its own, while endpoints are looked after. Returns its status."""
        read_end, write_end = os.pipe()

        def look_after() -> None:
            os.close(write_end)  # the other process has it until it ends
            ended = []
            self._loop.watch(Watched(read_end), lambda: ended.append(True))  # type: ignore[arg-type]
            while not self._loop.run_until(lambda: bool(ended), self._loop.now_ns() + _A_DAY_NS):
                continue

        return run_tied(prompt, (signal.SIGTERM, signal.SIGHUP), look_after)
