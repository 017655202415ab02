"""Faults of whole switches: a reboot, and a switch that passes nothing and says nothing."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from testbed.scenario.faults.base import Changes, Fault, Lasting, Outage, Place, Target
from testbed.scenario.fields import Names, PositiveDuration
from topos.plan import Plan


def links_of(switches: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
    """Every link with an end on one of the switches, once."""
    return tuple({link.name: None for name in switches for link in plan.links_of(name)})


class SwitchReboot(Fault):
    """A switch loses ports and table, boots for `boot`, and comes back with its static table."""

    kind: ClassVar[str] = "switch-reboot"
    changes: ClassVar[Changes] = Changes.PORTS
    target: ClassVar[Target] = Target.SWITCH

    switches: Names = Field(alias="switch-reboot", description="the switch or switches", examples=["p0-t1-2"])
    boot_ns: PositiveDuration = Field(alias="boot", description="from ports down to ports up", examples=["3s"])

    @property
    def targets(self) -> tuple[str, ...]:
        """The switches."""
        return self.switches

    @property
    def outages(self) -> tuple[Outage, ...]:
        """One."""
        return (Outage(self.at_ns, self.at_ns + self.boot_ns),)

    def broken_links(self, plan: Plan) -> tuple[str, ...]:
        """Every link with an end on one of the switches."""
        return links_of(self.switches, plan)


class SwitchSilent(Lasting):
    """A switch drops all that comes in while its ports stay up: a grey failure."""

    kind: ClassVar[str] = "switch-silent"
    changes: ClassVar[Changes] = Changes.RULES
    target: ClassVar[Target] = Target.SWITCH

    switches: Names = Field(alias="switch-silent", description="the switch or switches", examples=["p0-t1-2"])

    @property
    def targets(self) -> tuple[str, ...]:
        """The switches."""
        return self.switches

    def broken_links(self, plan: Plan) -> tuple[str, ...]:
        """Every link with an end on one of the switches."""
        return links_of(self.switches, plan)

    def places(self, plan: Plan) -> tuple[Place, ...]:
        """Every port of the switches."""
        return tuple(
            Place(link.name, "near" if link.near.node == name else "far")
            for name in self.switches
            for link in plan.links_of(name)
        )
