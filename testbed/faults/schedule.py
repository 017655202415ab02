"""The exact list of injections and heals with their times. Pure; plan.json holds its occurrences before the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from mrc_testbed.testbed.scenario import Effect, Occurrence
from mrc_testbed.topos.plan import Plan


class Action(Enum):
    """Inject or heal."""

    INJECT = "inject"
    HEAL = "heal"


@dataclass(frozen=True, slots=True)
class FaultStep:
    """The injection or heal of an occurrence, due `at_ns` after the start of the workload."""

    at_ns: int
    action: Action
    occurrence: Occurrence

    @property
    def cold(self) -> bool:
        """True if it happens before any endpoint starts."""
        return self.occurrence.cold and self.action is Action.INJECT

    @property
    def effect(self) -> Effect:
        """What it changes in the fabric."""
        return self.occurrence.model.effect


def fault_schedule(occurrences: Iterable[Occurrence]) -> list[FaultStep]:
    """Every injection and heal in time order; at equal times heals come first."""
    steps = [step for occurrence in occurrences for step in (inject(occurrence), heal(occurrence))]
    return sorted(steps, key=lambda step: (step.at_ns, step.action is Action.INJECT))


def inject(occurrence: Occurrence) -> FaultStep:
    """The injection of an occurrence."""
    return FaultStep(occurrence.begin_ns, Action.INJECT, occurrence)


def heal(occurrence: Occurrence) -> FaultStep:
    """The heal of an occurrence."""
    return FaultStep(occurrence.end_ns, Action.HEAL, occurrence)


def touched_nodes(occurrences: Iterable[Occurrence], plan: Plan) -> tuple[str, ...]:
    """Nodes whose ports a fault may take down: both ends of every affected link."""
    found: dict[str, None] = {}
    cuts = (occurrence for occurrence in occurrences if occurrence.model.effect is Effect.PORTS)
    for occurrence in cuts:
        for name in occurrence.links:
            link = plan.link_by_name[name]
            found[link.near.node] = found[link.far.node] = None
    return tuple(found)
