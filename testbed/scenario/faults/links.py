"""Faults of whole links: down, flapping, slower."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from testbed.scenario.faults.base import Changes, Fault, How, Lasting, Outage, Target
from testbed.scenario.fields import Names, PositiveDuration, PositiveRate, Whole
from testbed.scenario.units import format_rate
from topos.plan import Plan

MAX_FLAPS = 10_000


class LinkDown(Lasting):
    """One or more links go down together and come back after `for`."""

    kind: ClassVar[str] = "link-down"
    changes: ClassVar[Changes] = Changes.PORTS
    target: ClassVar[Target] = Target.LINK

    links: Names = Field(alias="link-down", description="the link or links", examples=["p0-t0-0:p0-t1-2"])

    @property
    def targets(self) -> tuple[str, ...]:
        """The links."""
        return self.links


class LinkFlap(Fault):
    """One or more links go down and up together, `count` times, one cycle every `period`."""

    kind: ClassVar[str] = "link-flap"
    changes: ClassVar[Changes] = Changes.PORTS
    target: ClassVar[Target] = Target.LINK

    links: Names = Field(alias="link-flap", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    period_ns: PositiveDuration = Field(alias="period", description="from one fall to the next", examples=["2s"])
    count: Whole = Field(ge=1, le=MAX_FLAPS, description="how many times it falls", examples=[3])
    duty: float = Field(default=0.5, strict=True, gt=0, lt=1, description="share of a period it is down")

    @property
    def targets(self) -> tuple[str, ...]:
        """The links."""
        return self.links

    @property
    def outages(self) -> tuple[Outage, ...]:
        """One a period."""
        down_ns = round(self.period_ns * self.duty)
        starts = (self.at_ns + cycle * self.period_ns for cycle in range(self.count))
        return tuple(Outage(start, start + down_ns) for start in starts)


class LinkRate(Lasting):
    """One or more links carry only `rate`, both ways, and their own rate again after `for`."""

    kind: ClassVar[str] = "link-rate"
    changes: ClassVar[Changes] = Changes.RATE
    target: ClassVar[Target] = Target.LINK

    links: Names = Field(alias="link-rate", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    rate_bps: PositiveRate = Field(alias="rate", description="what each carries meanwhile", examples=["6.25mbit"])

    @property
    def targets(self) -> tuple[str, ...]:
        """The links."""
        return self.links

    @property
    def how(self) -> How:
        """The rate."""
        return How(rate_bps=self.rate_bps, words=f"at {format_rate(self.rate_bps)}")

    def broken_links(self, plan: Plan) -> tuple[str, ...]:
        """None: what a slow link trims or marks is congestion, which takes no path out of use."""
        return ()
