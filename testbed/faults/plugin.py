"""What the file of a fault kind imports, and what its class has to have (docs/extend.md)."""

from __future__ import annotations

from typing import Protocol

from testbed.fabric.commands import MTU
from testbed.fabric.readback_queues import Unplanned
from testbed.faults.actions import FaultAction
from testbed.faults.target_system import TargetSystem
from testbed.scenario.faults import Defaults, Drawing, Effect, InteractiveRequest, Target

__all__ = ["MTU", "FaultKind", "TargetSystem", "Unplanned"]


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
