"""Fault kinds of plugins: the interface of such a class, and its registration."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from testbed.fabric.commands import MTU
from testbed.fabric.readback_queues import Unplanned
from testbed.faults.actions import ACTIONS, FaultAction
from testbed.faults.target_system import TargetSystem
from testbed.scenario.faults import Defaults, Drawing, Effect, Fault, Request, Target
from testbed.scenario.faults.registry import declare

__all__ = ["MTU", "FaultKind", "TargetSystem", "Unplanned", "register_fault"]


@runtime_checkable
class FaultKind(FaultAction, Protocol):
    """A fault kind, as a class derived from `Fault` or `Lasting` in `testbed.scenario.faults`.

    Its fields are the keys that a scenario may write. `aims` has the alias `kind`. Its property `parameters` passes
    what the action needs to the occurrence, as `FaultParameters(words=..., values={...})`. `inject`, `heal` and
    `unplanned` are static methods.
    """

    kind: str
    """Its key in a scenario."""
    target: Target
    """What its target names mean."""
    effect: Effect
    """`Effect.OWN` if `inject` changes something by itself."""
    drawing: Drawing
    """How the report and the live view show the affected parts."""
    chaos: Defaults | None
    """Default keys in chaos, `of` among them; None: not allowed in chaos."""
    request: Request | None
    """How `run --interactive` offers it; None: not at all."""


_NEEDED = ("kind", "target", "effect", "drawing", "inject", "heal", "unplanned")
K = TypeVar("K", bound=Fault)


def register_fault(kind: type[K]) -> type[K]:
    """Register a kind; a class decorator. Raises ValueError for a class that is not a fault kind."""
    lacking = [name for name in _NEEDED if not hasattr(kind, name)]
    if lacking or not isinstance(kind, FaultKind):
        raise ValueError(f"{kind.__name__} is no fault kind; it lacks {', '.join(lacking)}")
    declare(kind)
    ACTIONS[kind.kind] = kind
    return kind
