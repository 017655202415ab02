"""The exact list of what is broken and mended when. Pure; its cycles are written into plan.json before the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from testbed.scenario import Changes, Cycle, changes_of
from topos.plan import Plan


class Action(Enum):
    """The two halves of a fault's cycle."""

    INJECT = "inject"
    HEAL = "heal"


@dataclass(frozen=True, slots=True)
class FaultStep:
    """One half of one cycle, due `at_ns` after the start of the workload."""

    at_ns: int
    action: Action
    cycle: Cycle

    @property
    def cold(self) -> bool:
        """It is done before any endpoint is there."""
        return self.cycle.cold and self.action is Action.INJECT

    @property
    def changes(self) -> Changes:
        """What it changes in the fabric."""
        return changes_of(self.cycle.kind)

    def as_record(self) -> dict[str, Any]:
        """The fields of a history line."""
        cycle = self.cycle
        record: dict[str, Any] = {
            "op": self.action.value,
            "fault": cycle.fault,
            "kind": cycle.kind,
            "target": ",".join(cycle.targets),
            "cycle": cycle.number,
            "links": list(cycle.links),
        }
        more = {"hosts": list(cycle.hosts), "how": cycle.how.words, "from": cycle.how.sender, "to": cycle.how.peer}
        return {**record, **{key: value for key, value in more.items() if value}}


def fault_schedule(cycles: Iterable[Cycle]) -> list[FaultStep]:
    """Every injection and heal, in order of time; what heals at a moment makes room for what begins then."""
    steps = [step for cycle in cycles for step in (inject(cycle), heal(cycle))]
    return sorted(steps, key=lambda step: (step.at_ns, step.action is Action.INJECT))


def inject(cycle: Cycle) -> FaultStep:
    """The step that begins a cycle."""
    return FaultStep(cycle.begin_ns, Action.INJECT, cycle)


def heal(cycle: Cycle) -> FaultStep:
    """The step that ends it."""
    return FaultStep(cycle.end_ns, Action.HEAL, cycle)


def touched_nodes(cycles: Iterable[Cycle], plan: Plan) -> tuple[str, ...]:
    """Nodes whose ports a fault may take down: both ends of every link that it breaks."""
    found: dict[str, None] = {}
    for cycle in (cycle for cycle in cycles if changes_of(cycle.kind) is Changes.PORTS):
        for name in cycle.links:
            link = plan.link_by_name[name]
            found[link.near.node] = found[link.far.node] = None
    return tuple(found)
