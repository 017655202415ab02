"""Data sent to the page once per run: the drawn fabric and the available interactive faults. Pure."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.runner.interactive import offers
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.render import svg

NOT_INTERACTIVE = "start the run with --interactive to break things from here"


def scene(scenario: Scenario, plan: Plan, port_program: bool, interactive: bool) -> dict[str, Any]:
    """`hand.why`: why interactive faults are disabled, empty if they are enabled."""
    return {
        "name": scenario.name,
        "about": scenario.about,
        "seed": scenario.seed,
        "speed": scenario.speed,
        "svg": svg(plan, from_afar=True),
        "links": [link.name for link in plan.links],
        "switches": [switch.name for switch in plan.switches],
        "hand": {"why": "" if interactive else NOT_INTERACTIVE, "offers": offers(scenario.fault_kinds, port_program)},
    }
