"""How each kind of fault is done and undone, by its key. A kind of the project is declared in `testbed.scenario.faults`
and has its action here, in `port_actions` or in `rule_actions`; a plugin's kind is its own action."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, runtime_checkable

from testbed.fabric.readback_queues import Unplanned
from testbed.faults.target_system import TargetSystem
from testbed.scenario import Occurrence
from testbed.scenario.faults import Traits
from topos.plan import Plan


@runtime_checkable
class FaultAction(Protocol):
    """What is done to the target system. All raise FabricError or RunError."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Break the targets. What was done before an error is healed by `heal`."""

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Mend what this occurrence alone holds broken."""

    def unplanned(self, occurrence: Occurrence, plan: Plan) -> Iterable[Unplanned]:
        """What read-back must not compare with the plan meanwhile, besides what the fabric itself knows of."""
        return ()


A = TypeVar("A", bound=FaultAction)

ACTIONS: dict[str, FaultAction] = {}
"""The action of every kind of ours."""


def does(*kinds: str) -> Callable[[type[A]], type[A]]:
    """Decorates the class of an action: it is that of these kinds."""

    def added(action: type[A]) -> type[A]:
        ACTIONS.update(dict.fromkeys(kinds, action()))
        return action

    return added


def action_of(model: type[Traits]) -> FaultAction:
    """How a kind is done. Raises TypeError for one of a plugin that is no action itself."""
    action = ACTIONS.get(model.kind, model)
    if not isinstance(action, FaultAction):
        raise TypeError(f"fault kind {model.kind} has no action")
    return action


@does("deny")
class DenyPaths(FaultAction):
    """What a controller does that takes paths out of use and gives them back. Nothing in the network changes."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Deny the paths."""
        system.update_denylists("deny", occurrence)

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Allow them again: they return when probes have vouched for them."""
        system.update_denylists("allow", occurrence)
