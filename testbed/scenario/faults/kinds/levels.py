"""Faults of a switch's settings: it marks never or always, trims nothing, or drops from a short queue on."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from mrc_testbed.testbed.scenario.faults.base import Lasting, Misfit, Surroundings
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters
from mrc_testbed.testbed.scenario.faults.registry import declare
from mrc_testbed.testbed.scenario.faults.selection import Targets
from mrc_testbed.testbed.scenario.faults.traits import Defaults, Drawing, Effect, State
from mrc_testbed.topos.plan import Plan

LEAST_DROP_BDP = 0.05
"""Less than a packet or so: nothing would pass."""


class _OfLevels(Lasting, ABC):
    target: ClassVar[Target] = Target.SWITCH
    effect: ClassVar[Effect] = Effect.LEVELS
    drawing: ClassVar[Drawing] = Drawing(State.LOSSY, target=State.LOSSY)

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Refuses fabrics whose ports pause each other: they have other levels."""
        if around.pauses:
            yield Misfit("", f"ports that pause each other (buffers: pfc) have no level that {self.kind} changes")


@declare
class EcnStuck(_OfLevels):
    """A switch marks every ECN-capable packet, or none, whatever waits at its ports."""

    kind: ClassVar[str] = "ecn-stuck"
    drawing: ClassVar[Drawing] = Drawing(State.SLOW, target=State.SLOW)
    chaos: ClassVar[Defaults] = {"of": "switches", "for": "2s", "marks": "always"}

    aims: Targets = Field(alias="ecn-stuck", description="the switch or switches", examples=["p0-t1-2"])
    marks: Literal["never", "always"] = Field(description="what it marks: nothing, or all", examples=["always"])

    @property
    def parameters(self) -> FaultParameters:
        """What it marks."""
        return FaultParameters(words=self.marks, values={"marks": self.marks})

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """None: what is marked, or not, arrives."""
        return ()


@declare
class TrimOff(_OfLevels):
    """A switch trims nothing: what it would have trimmed waits, and is dropped where the queue ends."""

    kind: ClassVar[str] = "trim-off"
    chaos: ClassVar[Defaults] = {"of": "switches", "for": "2s"}

    aims: Targets = Field(alias="trim-off", description="the switch or switches", examples=["p0-t1-2"])

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Refuses transports that no switch trims anyway."""
        yield from super().misfits(around)
        if around.trims is False:
            yield Misfit("", "no switch trims packets of this transport, so nothing would change; remove this fault")

    @property
    def parameters(self) -> FaultParameters:
        """That it trims nothing."""
        return FaultParameters(values={"trims": False})


@declare
class ShallowBuffer(_OfLevels):
    """A switch drops data as soon as a short queue has filled, before it would mark or trim much of it."""

    kind: ClassVar[str] = "shallow-buffer"
    chaos: ClassVar[Defaults] = {"of": "switches", "for": "2s", "drop": 0.3}

    aims: Targets = Field(alias="shallow-buffer", description="the switch or switches", examples=["p0-t1-2"])
    drop: float = Field(
        strict=True, ge=LEAST_DROP_BDP, lt=3, description="plane-BDP above which it drops data", examples=[0.3]
    )

    @property
    def parameters(self) -> FaultParameters:
        """The level."""
        return FaultParameters(words=f"above {self.drop:g} BDP", values={"drop": self.drop})
