"""What the file of a fault kind imports, and what its class needs (docs/extend.md)."""

from __future__ import annotations

from typing import Protocol

from mrc_testbed.testbed.fabric.commands import MTU
from mrc_testbed.testbed.faults.actions import FaultAction
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.scenario.faults import Defaults, Drawing, Effect, InteractiveRequest, Target
from mrc_testbed.testbed.switching.expected import Unplanned

__all__ = ["MTU", "FaultKind", "TargetSystem", "Unplanned"]


class FaultKind(FaultAction, Protocol):
    """A fault kind, as a class derived from `Fault` or `Lasting` in `mrc_testbed.testbed.scenario.faults`.

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
    request: InteractiveRequest | None
    """How `run --interactive` offers it; None: not at all."""
