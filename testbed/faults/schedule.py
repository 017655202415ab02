"""The exact list of what is broken and mended when. Pure; plan.json has its occurrences before the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from testbed.scenario import Effect, Occurrence
from topos.plan import Plan


class Action(Enum):
    """The two halves of an occurrence."""

    INJECT = "inject"
    HEAL = "heal"


@dataclass(frozen=True, slots=True)
class FaultStep:
    """One half of an occurrence, due `at_ns` after the start of the workload."""

    at_ns: int
    action: Action
    occurrence: Occurrence

    @property
    def cold(self) -> bool:
        """It is done before any endpoint is there."""
        return self.occurrence.cold and self.action is Action.INJECT

    @property
    def effect(self) -> Effect:
        """What it changes in the fabric."""
        return self.occurrence.model.effect


def fault_schedule(occurrences: Iterable[Occurrence]) -> list[FaultStep]:
    """Every injection and heal, in order of time; what heals at a moment makes room for what begins then."""
    steps = [step for occurrence in occurrences for step in (inject(occurrence), heal(occurrence))]
    return sorted(steps, key=lambda step: (step.at_ns, step.action is Action.INJECT))


def inject(occurrence: Occurrence) -> FaultStep:
    """The step that begins it."""
    return FaultStep(occurrence.begin_ns, Action.INJECT, occurrence)


def heal(occurrence: Occurrence) -> FaultStep:
    """The step that ends it."""
    return FaultStep(occurrence.end_ns, Action.HEAL, occurrence)


def touched_nodes(occurrences: Iterable[Occurrence], plan: Plan) -> tuple[str, ...]:
    """Nodes whose ports a fault may take down: both ends of every link that it breaks."""
    found: dict[str, None] = {}
    cuts = (occurrence for occurrence in occurrences if occurrence.model.effect is Effect.PORTS)
    for occurrence in cuts:
        for name in occurrence.links:
            link = plan.link_by_name[name]
            found[link.near.node] = found[link.far.node] = None
    return tuple(found)
