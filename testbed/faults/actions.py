"""How each fault kind is injected and healed, by its key.

A built-in kind is declared in `mrc_testbed.testbed.scenario.faults` and has its action here, in `port_actions` or in
`rule_actions`; a plugin's kind is its own action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, runtime_checkable

from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.scenario import Occurrence
from mrc_testbed.testbed.scenario.faults import Traits
from mrc_testbed.testbed.switching.expected import Unplanned
from mrc_testbed.topos.plan import Plan


@runtime_checkable
class FaultAction(Protocol):
    """An action on the target system. All methods raise FabricError or RunError."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Break the targets. `heal` also reverts a partial injection."""

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Revert what only this occurrence holds broken."""

    def unplanned(self, occurrence: Occurrence, plan: Plan) -> Iterable[Unplanned]:
        """What read-back must skip meanwhile, besides what the fabric itself tracks."""
        return ()


A = TypeVar("A", bound=FaultAction)

ACTIONS: dict[str, FaultAction] = {}
"""The action of every kind of ours."""


def does(*kinds: str) -> Callable[[type[A]], type[A]]:
    """Class decorator: registers an action for these kinds."""

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
    """A controller takes paths out of use and returns them. The network does not change."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Deny the paths."""
        system.update_denylists("deny", occurrence)

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Allow them again; probes must restore them."""
        system.update_denylists("allow", occurrence)
