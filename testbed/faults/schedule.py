"""Scenario -> the exact list of what is broken and mended when. Pure; written into plan.json before the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from testbed.scenario import Deny, Scenario
from topos.plan import Plan


class Action(Enum):
    """The two halves of a fault's cycle."""

    INJECT = "inject"
    HEAL = "heal"


@dataclass(frozen=True, slots=True)
class FaultStep:
    """One half of one cycle. `at_ns` counts from the start of the workload; `links` are those that carry nothing.

    `cold`: it is done before any endpoint is there. `hosts`: those that are told, where endpoints are; empty: all.
    """

    at_ns: int
    action: Action
    fault: str
    kind: str
    targets: tuple[str, ...]
    cycle: int
    links: tuple[str, ...]
    cold: bool = False
    hosts: tuple[str, ...] = ()

    def healed(self) -> FaultStep:
        """The step that undoes this one."""
        return replace(self, action=Action.HEAL, cold=False)

    def as_record(self) -> dict[str, Any]:
        """The fields of a history line."""
        record = {
            "op": self.action.value,
            "fault": self.fault,
            "kind": self.kind,
            "target": ",".join(self.targets),
            "cycle": self.cycle,
            "links": list(self.links),
        }
        return {**record, "hosts": list(self.hosts)} if self.hosts else record


def fault_schedule(scenario: Scenario, plan: Plan) -> list[FaultStep]:
    """Every injection and heal of the scenario, in order of time."""
    return sorted(_steps(scenario, plan), key=lambda step: step.at_ns)


def _steps(scenario: Scenario, plan: Plan) -> Iterator[FaultStep]:
    for fault in scenario.faults:
        links = fault.broken_links(plan)
        hosts = fault.hosts if isinstance(fault, Deny) else ()
        for cycle, outage in enumerate(fault.outages):
            for at_ns, action in ((outage.down_ns, Action.INJECT), (outage.up_ns, Action.HEAL)):
                cold = fault.at.cold and cycle == 0 and action is Action.INJECT
                yield FaultStep(at_ns, action, fault.name, fault.kind, fault.targets, cycle, links, cold, hosts)


def touched_nodes(steps: list[FaultStep], plan: Plan) -> tuple[str, ...]:
    """Nodes whose own state a fault may change: both ends of every link that breaks."""
    found: dict[str, None] = {}
    for step in steps:
        for name in step.links:
            link = plan.link_by_name[name]
            found[link.near.node] = found[link.far.node] = None
    return tuple(found)
