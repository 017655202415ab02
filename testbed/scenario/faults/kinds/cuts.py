"""Faults that take ports down: cut links, and flapping links, NIC ports and transceivers (several ports each)."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from mrc_testbed.testbed.scenario.faults.base import (
    SHORTEST_OUTAGE_NS,
    DownPeriod,
    Fault,
    Lasting,
    Misfit,
    Surroundings,
)
from mrc_testbed.testbed.scenario.faults.chance import Chance
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters
from mrc_testbed.testbed.scenario.faults.registry import declare
from mrc_testbed.testbed.scenario.faults.selection import Targets
from mrc_testbed.testbed.scenario.faults.traits import Defaults, Drawing, Effect, InteractiveRequest, State
from mrc_testbed.testbed.scenario.text.fields import WHOLE, PositiveDuration, Share, Whole, given
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.names import parse_host
from mrc_testbed.topos.nodes import Link
from mrc_testbed.topos.plan import Plan

MAX_FLAPS = 10_000
_FLAPS: Defaults = {"period": "500ms", "count": 3, "jitter": "50%"}
"""Default keys of a flap in chaos."""
TRANSCEIVER_PORTS = 4
"""Ports of a T0 on one transceiver (P1, figure 6)."""


@declare
class LinkDown(Lasting):
    """One or more links go down together and come back after `for`."""

    kind: ClassVar[str] = "link-down"
    target: ClassVar[Target] = Target.LINK
    effect: ClassVar[Effect] = Effect.PORTS
    drawing: ClassVar[Drawing] = Drawing(State.BROKEN)
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", "for": "1s"}
    request: ClassVar[InteractiveRequest | None] = InteractiveRequest("cut")

    aims: Targets = Field(alias="link-down", description="the link or links", examples=["p0-t0-0:p0-t1-2"])


class Flap(Fault, ABC):
    """`count` falls, one every `period`, each for `duty` of it; `jitter` varies every down and up time."""

    effect: ClassVar[Effect] = Effect.PORTS
    drawing: ClassVar[Drawing] = Drawing(State.BROKEN)

    period_ns: PositiveDuration = Field(alias="period", description="from one fall to the next", examples=["2s"])
    count: Whole = Field(ge=1, le=MAX_FLAPS, description="how many times it falls", examples=[3])
    duty: float = Field(default=0.5, strict=True, gt=0, lt=1, description="share of a period it is down")
    jitter: Share = Field(default=0, description="by how much each time may be shorter or longer", examples=["30%"])

    @classmethod
    def once(cls, length_ns: int) -> Mapping[str, object]:
        """A single fall, in the first half of a period."""
        return {"period": format_duration(2 * length_ns), "count": 1, "duty": None, "jitter": None}

    @property
    def drawn(self) -> bool:
        """With jitter its times are drawn too."""
        return bool(self.jitter) or super().drawn

    @property
    def spread(self) -> float:
        """`jitter` as a fraction."""
        return self.jitter / WHOLE

    @property
    def down_ns(self) -> int:
        """Down time in a period, without jitter."""
        return round(self.period_ns * self.duty)

    @property
    def end_ns(self) -> int:
        """The last heal; with jitter, with the longest possible times."""
        regular = self.at_ns + (self.count - 1) * self.period_ns + self.down_ns
        return regular + round((regular - self.at_ns) * self.spread)

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Refuses flaps that are too quick, whatever times are drawn."""
        down_ns, up_ns = self.down_ns, self.period_ns - self.down_ns
        if min(down_ns, up_ns) * (1 - self.spread) < SHORTEST_OUTAGE_NS:
            cycle = f"{format_duration(down_ns)} down and {format_duration(up_ns)} up"
            less = "both must be at least 1ms" + (", the jitter taken off" if self.jitter else "")
            yield Misfit("period", f"makes {cycle}; {less}")

    def down_periods(self, chance: Chance) -> Iterator[DownPeriod]:
        """One down period in each period of the flap; jitter varies the down and up times."""
        if not self.jitter:
            starts = (self.at_ns + number * self.period_ns for number in range(self.count))
            yield from (DownPeriod(start, start + self.down_ns) for start in starts)
            return
        start = self.at_ns
        for _ in range(self.count):
            up = start + chance.around(self.down_ns, self.spread)
            yield DownPeriod(start, up)
            start = up + chance.around(self.period_ns - self.down_ns, self.spread)


@declare
class LinkFlap(Flap):
    """One or more links go down and up together."""

    kind: ClassVar[str] = "link-flap"
    target: ClassVar[Target] = Target.LINK
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", **_FLAPS}

    aims: Targets = Field(alias="link-flap", description="the link or links", examples=["p0-t0-0:p0-t1-2"])


@declare
class PortFlap(Flap):
    """One or more NIC ports go down and up, each independently of the others."""

    kind: ClassVar[str] = "port-flap"
    target: ClassVar[Target] = Target.NIC_LINK
    chaos: ClassVar[Defaults] = {"of": "NIC links", **_FLAPS}

    aims: Targets = Field(alias="port-flap", description="the NIC port or ports", examples=["h3:p1-t0-0"])

    def groups(self, targets: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Each port flaps by itself."""
        return tuple((target,) for target in targets)


@declare
class TransceiverFlap(Flap):
    """A transceiver of a T0 loses and regains light: its NIC ports go down and up together."""

    kind: ClassVar[str] = "transceiver-flap"
    target: ClassVar[Target] = Target.T0
    chaos: ClassVar[Defaults] = {"of": "T0 switches", **_FLAPS}

    aims: Targets = Field(alias="transceiver-flap", description="the T0 or T0s", examples=["p1-t0-0"])
    ports: Annotated[Whole | None, Field(ge=1), given("4")] = Field(
        default=None, description="how many host ports are on it", examples=[4]
    )
    first: Whole = Field(default=0, ge=0, description="the first of them, counted from 0", examples=[0])

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Also refuses ports that a T0 of this fabric does not have."""
        yield from super().misfits(around)
        if around.plan is None:
            return
        ports = max(map(len, around.plan.shape.family.below))
        has = f"a T0 has host ports 0 to {ports - 1}"
        if self.first >= ports:
            yield Misfit("first", f"there is no port {self.first}; {has}")
        elif self.ports is not None and self.first + self.ports > ports:
            yield Misfit("ports", f"{self.ports} ports from port {self.first} on; {has}")

    @property
    def parameters(self) -> FaultParameters:
        """The ports, if given."""
        if self.ports is None:
            return FaultParameters(words=f"from port {self.first} on" if self.first else "")
        last = self.first + self.ports - 1
        return FaultParameters(words=f"ports {self.first} to {last}" if last > self.first else f"port {self.first}")

    def groups(self, targets: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Transceivers of several switches are independent."""
        return tuple((target,) for target in targets)

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """The links of the hosts on these ports."""
        ports = range(self.first, self.first + (self.ports or TRANSCEIVER_PORTS))
        links = (link for name in targets for link in plan.links_of(name) if link.is_host_link)
        return tuple(link.name for link in links if _downlink(link, plan) in ports)


def _downlink(link: Link, plan: Plan) -> int:
    host = parse_host(link.near.node)
    return 0 if host is None else plan.hosts[host].downlink
