"""Faults of hosts: one that is slow, and one that pauses. The network is whole, and no link loses anything."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from mrc_testbed.testbed.scenario.faults.base import Lasting, Misfit, Surroundings
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters
from mrc_testbed.testbed.scenario.faults.registry import declare
from mrc_testbed.testbed.scenario.faults.selection import Targets
from mrc_testbed.testbed.scenario.faults.traits import Defaults, Drawing, Effect, State
from mrc_testbed.testbed.scenario.text.fields import LaterStart, PositiveDuration
from mrc_testbed.testbed.scenario.text.units import format_duration


class _OfHost(Lasting, ABC):
    target: ClassVar[Target] = Target.HOST
    effect: ClassVar[Effect] = Effect.HOSTS
    drawing: ClassVar[Drawing] = Drawing(State.SLOW)

    at: LaterStart = Field(description="when it begins, after the workload's start", examples=["6s"])

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Refuses hosts that take no part: nobody would notice."""
        if around.plan is None or not around.peers:
            return
        for aim in self.aims:
            if aim.what in around.plan.host_by_name and aim.what not in around.peers:
                yield Misfit(self.kind, f"{aim.what} is not part of the workload and sends nothing")


@declare
class HostSlow(_OfHost):
    """A host needs a time for each packet that it sends or takes in, as one whose CPU is busy."""

    kind: ClassVar[str] = "host-slow"
    chaos: ClassVar[Defaults] = {"of": "hosts", "for": "2s"}

    aims: Targets = Field(alias="host-slow", description="the host or hosts", examples=["h3"])
    per_packet_ns: PositiveDuration = Field(
        alias="per_packet", description="what it needs for each packet", examples=["500us"]
    )

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Refuses a transport whose packets the kernel makes."""
        yield from super().misfits(around)
        if around.of_kernel:
            yield Misfit("", "the kernel handles these packets, not the host's daemon; try host-pause")

    @property
    def parameters(self) -> FaultParameters:
        """The time."""
        words = f"{format_duration(self.per_packet_ns)} a packet"
        return FaultParameters(words=words, values={"per_packet_ns": self.per_packet_ns})


@declare
class HostPause(_OfHost):
    """A host does nothing at all for a time: it neither takes in what comes nor sends."""

    kind: ClassVar[str] = "host-pause"
    chaos: ClassVar[Defaults] = {"of": "hosts", "for": "100ms"}

    aims: Targets = Field(alias="host-pause", description="the host or hosts", examples=["h3"])

    @property
    def parameters(self) -> FaultParameters:
        """That it is held."""
        return FaultParameters(values={"held": True})
