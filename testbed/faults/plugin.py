"""Kinds of faults from outside the project: what such a class has to have, and how it is registered."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from testbed.fabric.commands import MTU
from testbed.fabric.readback_queues import Unplanned
from testbed.faults.actions import ACTIONS, FaultAction
from testbed.faults.target_system import TargetSystem
from testbed.scenario.faults import Defaults, Drawing, Effect, Fault, InteractiveRequest, Target
from testbed.scenario.faults.registry import declare

__all__ = ["MTU", "FaultKind", "TargetSystem", "Unplanned", "register_fault"]


@runtime_checkable
class FaultKind(FaultAction, Protocol):
    """A kind of fault, as a class derived from `Fault` or `Lasting` in `testbed.scenario.faults`.

    Its fields are the keys that a scenario may write. `aims` has the alias `kind`. Its property `parameters` hands
    what the action needs of them to the occurrence, as `FaultParameters(words=..., values={...})`. `inject`, `heal`
    and `unplanned` are static methods.
    """

    kind: str
    """Its key in a scenario."""
    target: Target
    """What its names mean."""
    effect: Effect
    """`Effect.OWN` for what `inject` changes by itself."""
    drawing: Drawing
    """How the report and the live view show what it touches."""
    chaos: Defaults | None
    """Keys that need not be written in chaos, `of` among them; None: no part of chaos."""
    request: InteractiveRequest | None
    """How a person asks for it in `run --interactive`; None: not at all."""


_NEEDED = ("kind", "target", "effect", "drawing", "inject", "heal", "unplanned")
K = TypeVar("K", bound=Fault)


def register_fault(kind: type[K]) -> type[K]:
    """Add a kind to all there are; decorates its class. Raises ValueError for a class that is none."""
    lacking = [name for name in _NEEDED if not hasattr(kind, name)]
    if lacking or not isinstance(kind, FaultKind):
        raise ValueError(f"{kind.__name__} is no fault kind; it lacks {', '.join(lacking)}")
    declare(kind)
    ACTIONS[kind.kind] = kind
    return kind
