"""`mrc-testbed shell`: the fabric alone, with Mininet's prompt on it."""

from __future__ import annotations

from testbed.errors import ExitCode, TestbedError
from testbed.fabric import capabilities
from testbed.fabric.fabric import Fabric
from testbed.fabric.sandbox import run_isolated
from testbed.report.console import open_console
from testbed.scenario import Scenario
from topos.plan import Plan, build_plan


def open_shell(scenario: Scenario) -> int:
    """Build, verify, prompt, take down. Returns the exit code. Raises MissingCapability before anything is built."""
    shape = scenario.shape()
    found = capabilities.probe()
    capabilities.require(found)
    options = capabilities.choose(found, shape)
    plan = build_plan(shape)
    console = open_console()

    def main() -> int:
        try:
            fabric = Fabric.build(plan, options)
            fabric.verify()
        except TestbedError as error:
            console.print(f"mrc-testbed: {error}", markup=False)
            return error.exit_code
        console.print(_welcome(plan), markup=False, soft_wrap=True)
        fabric.prompt()
        return ExitCode.PASS

    return run_isolated(main)


def _welcome(plan: Plan) -> str:
    shape = plan.shape
    other = plan.hosts[-1].name
    switch = plan.switches[-1].name
    return (
        f"{shape.hosts} hosts, {shape.switches} switches, {shape.links} links are up and equal to the plan.\n"
        f"Try:  h0 ping -c3 {other}    {switch} ip -6 route    h0 ip -6 route    exit"
    )
