"""Where a run is carried out: in a sandbox on this kernel, or in this process in virtual time."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from mrc_testbed.testbed.errors import ExitCode, MissingCapability, TestbedError, UsageError
from mrc_testbed.testbed.rundir.recorder import note_interrupt
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.progress import Progress
from mrc_testbed.testbed.runner.world import World
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.terminal import say

_ELSEWHERE = "or `--virtual`, which needs neither Linux nor root"
_LEAST_PRIORITY = 19
MakeProgress = Callable[[], Progress]


class Place(Protocol):
    """A machine, or none, that can run a scenario."""

    options: FabricOptions

    def world(self) -> World:
        """For one run."""

    def require_reach(self, out: Path) -> None:
        """Raises UsageError if a run here could not write into this folder, although this process may."""

    def execute(self, job: RunJob, progress: MakeProgress) -> int:
        """Run all phases. Returns the exit status of the run."""


class KernelPlace:
    """This machine. Raises MissingCapability if the scenario needs what it lacks."""

    def __init__(self, scenario: Scenario) -> None:
        from mrc_testbed.testbed.fabric import capabilities
        from mrc_testbed.testbed.runner.options import fabric_options, require_limits

        try:
            capabilities.require([capabilities.LINUX])
            require_limits(scenario)
            self.found = capabilities.probe()
            capabilities.require(self.found)
        except MissingCapability as lacking:
            raise MissingCapability(lacking.what, f"{lacking.fix}, {_ELSEWHERE}") from None
        self.options = fabric_options(scenario, self.found)

    def world(self) -> World:
        """Namespaces and real time."""
        from mrc_testbed.testbed.runner.kernel_world import KernelWorld

        return KernelWorld(self.found, self.options)

    def require_reach(self, out: Path) -> None:
        """A sandbox in a user namespace has no rights over what other users closed."""
        from mrc_testbed.testbed.fabric.privileges import closed_to_own, needs_user_namespace

        closed = closed_to_own(out) if needs_user_namespace() else None
        if closed is not None:
            why = f"{closed} is closed to a run without root's rights, which is in a user namespace of its own"
            raise UsageError(f"--out {out}: {why}; choose another folder, or run with sudo")

    def execute(self, job: RunJob, progress: MakeProgress) -> int:
        """In a sandbox; what kills its supervisor is written down."""
        from mrc_testbed.testbed.fabric.sandbox import CRASHED, run_isolated

        status = run_isolated(lambda: _supervise(job, progress), meanwhile=_load_judge)
        if status != ExitCode.INTERRUPTED and status >= CRASHED:
            how = f"was killed by {signal.Signals(status - 128).name}" if status > 128 else "crashed, see above"
            note_interrupt(job.folder, f"the supervisor of the run {how}")
        return status


class VirtualPlace:
    """No machine."""

    def __init__(self, scenario: Scenario) -> None:
        from mrc_testbed.testbed.runner.virtual_world import virtual_options

        self._scenario = scenario
        self.options = virtual_options(scenario)

    def world(self) -> World:
        """Virtual time."""
        from mrc_testbed.testbed.runner.virtual_world import VirtualWorld

        return VirtualWorld(self._scenario)

    def require_reach(self, out: Path) -> None:
        """It has the rights of this process."""

    def execute(self, job: RunJob, progress: MakeProgress) -> int:
        """In this process, and as in the daemons no cycles of references are looked for: that takes 5 % of the time."""
        gc.collect()  # what the run before this one left: a batch would grow by 7.5 MB a run
        gc.disable()
        try:
            return _supervise(job, progress)
        finally:
            gc.enable()


def place_of(scenario: Scenario) -> Place:
    """Where the scenario wants to run. Raises MissingCapability."""
    return VirtualPlace(scenario) if scenario.world is WorldKind.VIRTUAL else KernelPlace(scenario)


def _load_judge() -> None:
    """What a run needs at its end alone: loaded before, it would put off the begin by 0.15 s. In a thread that leaves
    the CPUs to the build."""

    def load() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LEAST_PRIORITY)
        import mrc_testbed.testbed.app.judge  # noqa: F401

    threading.Thread(target=load, daemon=True).start()


def _supervise(job: RunJob, progress: MakeProgress) -> int:
    try:
        return run_phases(job, progress())
    except TestbedError as error:  # it could not even be written down
        say(f"mrc-testbed: {error}", err=True)
        return error.exit_code
