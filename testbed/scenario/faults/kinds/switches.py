"""Faults of whole switches: a reboot, and a switch that silently drops everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field

from mrc_testbed.testbed.scenario.faults.base import DownPeriod, Fault, Lasting
from mrc_testbed.testbed.scenario.faults.chance import Chance
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters, LinkEnd
from mrc_testbed.testbed.scenario.faults.registry import declare
from mrc_testbed.testbed.scenario.faults.selection import Targets
from mrc_testbed.testbed.scenario.faults.traits import Defaults, Drawing, Effect, InteractiveRequest, State
from mrc_testbed.testbed.scenario.text.fields import PositiveDuration
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.plan import Plan


@declare
class SwitchReboot(Fault):
    """A switch loses ports and table, boots for `boot`, and returns with its static table."""

    kind: ClassVar[str] = "switch-reboot"
    target: ClassVar[Target] = Target.SWITCH
    effect: ClassVar[Effect] = Effect.PORTS
    drawing: ClassVar[Drawing] = Drawing(State.BROKEN, target=State.BROKEN)
    chaos: ClassVar[Defaults] = {"of": "T1 switches", "boot": "1s"}
    request: ClassVar[InteractiveRequest | None] = InteractiveRequest("reboot", length="boot")

    aims: Targets = Field(alias="switch-reboot", description="the switch or switches", examples=["p0-t1-2"])
    boot_ns: PositiveDuration = Field(alias="boot", description="from ports down to ports up", examples=["3s"])

    @classmethod
    def once(cls, length_ns: int) -> Mapping[str, object]:
        """A boot of this length."""
        return {"boot": format_duration(length_ns)}

    @property
    def end_ns(self) -> int:
        """End of the boot."""
        return self.at_ns + self.boot_ns

    def down_periods(self, chance: Chance) -> Iterator[DownPeriod]:
        """One: from `at` until the switch has booted."""
        yield DownPeriod(self.at_ns, self.end_ns)


@declare
class SwitchSilent(Lasting):
    """A switch drops everything that arrives while its ports stay up: a grey failure."""

    kind: ClassVar[str] = "switch-silent"
    target: ClassVar[Target] = Target.SWITCH
    effect: ClassVar[Effect] = Effect.RULES
    drawing: ClassVar[Drawing] = Drawing(State.BROKEN, target=State.SILENT)
    chaos: ClassVar[Defaults] = {"of": "T1 switches", "for": "1s"}
    request: ClassVar[InteractiveRequest | None] = InteractiveRequest("silence")

    aims: Targets = Field(alias="switch-silent", description="the switch or switches", examples=["p0-t1-2"])
    control: Literal["dies", "lives"] = Field(
        default="dies",
        description="`lives`: it forwards nothing, and still talks to other switches",
        examples=["lives"],
    )

    @property
    def parameters(self) -> FaultParameters:
        """Whether its control plane goes on."""
        lives = self.control == "lives"
        return FaultParameters(words="control lives", values={"control": "lives"}) if lives else FaultParameters()

    def places(self, targets: tuple[str, ...], plan: Plan) -> tuple[LinkEnd, ...]:
        """Every port of the switches."""
        return tuple(
            LinkEnd(link.name, "near" if link.near.node == name else "far")
            for name in targets
            for link in plan.links_of(name)
        )
