"""`mrc-testbed shell`: the fabric alone, with Mininet's prompt on it."""

from __future__ import annotations

import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mrc_testbed.testbed.app.standby import Standby, data_addresses
from mrc_testbed.testbed.errors import ExitCode, TestbedError
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.prompt import Failed
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.report.console import open_console
from mrc_testbed.testbed.runner.kernel_world import KernelWorld
from mrc_testbed.testbed.runner.options import fabric_options, require_limits
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.terminal import say
from mrc_testbed.topos.plan import Plan


def open_shell(scenario: Scenario, commands: Sequence[str] = ()) -> int:
    """Build, verify, prompt or run single commands, take down. Returns the exit code.

    Raises MissingCapability before anything is built.
    """
    require_limits(scenario)
    found = capabilities.probe()
    capabilities.require(found)
    options = fabric_options(scenario, found)
    plan = scenario.plan(prompt=True)
    console = open_console()

    def main() -> int:
        world = KernelWorld(found, options)
        try:
            fabric = world.build(plan)
            fabric.converge()
            fabric.verify()
            standby = Standby(world, scenario, plan) if scenario.job.programs else None
        except TestbedError as error:
            return _refuse(str(error), error.exit_code)
        except OSError as error:  # of this process itself: files, processes or memory have run out
            return _refuse(error.strerror or str(error), ExitCode.INCONCLUSIVE)
        if not commands:
            console.print(_welcome(scenario, plan, options.delay), soft_wrap=True)

        def prompt() -> int:
            return first_status(fabric.prompt(commands, data_addresses(scenario)))

        return standby.beside(prompt) if standby else prompt()

    with terminal_kept():
        return run_isolated(main, passed_on=(signal.SIGTERM, signal.SIGHUP))


@contextmanager
def terminal_kept() -> Iterator[None]:
    """Mininet's prompt leaves the terminal without line mode; whatever ends it, the user gets back what was there."""
    if not sys.stdin.isatty():
        yield
        return
    settings = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)


def _refuse(reason: str, status: int) -> int:
    say(f"mrc-testbed: {reason}", err=True)
    return status


def first_status(failed: Sequence[Failed]) -> int:
    """The exit code of single commands: the status of the first that failed."""
    return failed[0].status if failed else ExitCode.PASS


def about_ping(delay: str) -> str:
    """What a ping shows of T, where that may surprise."""
    if delay == "endpoint":
        return "The endpoints make T here, as this kernel has no netem: ping shows the links without it.\n"
    return ""


def about_mrc0(scenario: Scenario) -> str:
    """The addresses that names of hosts mean where programs reach them."""
    if not scenario.job.programs:
        return ""
    return "Names such as h0 are addresses of mrc0: what is sent there travels over the endpoints and all paths.\n"


def _welcome(scenario: Scenario, plan: Plan, delay: str) -> str:
    shape = plan.shape
    other = plan.hosts[-1].name
    switch = plan.switches[-1].name
    return (
        f"{shape.hosts} hosts, {shape.switches} switches, {shape.links} links are up and equal to the plan.\n"
        f"{about_mrc0(scenario) or about_ping(delay)}"
        f"Try:  h0 ping -c3 {other}    {switch} ip -6 route    h0 ip -6 route    exit"
    )
