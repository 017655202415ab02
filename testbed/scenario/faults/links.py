"""Faults of whole links that last for a time: down, slower."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from testbed.scenario.faults.base import Changes, Lasting
from testbed.scenario.faults.cycle import How
from testbed.scenario.faults.names import Target
from testbed.scenario.faults.selection import Targets
from testbed.scenario.fields import PositiveRate
from testbed.scenario.units import format_rate
from topos.plan import Plan


class LinkDown(Lasting):
    """One or more links go down together and come back after `for`."""

    kind: ClassVar[str] = "link-down"
    changes: ClassVar[Changes] = Changes.PORTS
    target: ClassVar[Target] = Target.LINK

    aims: Targets = Field(alias="link-down", description="the link or links", examples=["p0-t0-0:p0-t1-2"])


class LinkRate(Lasting):
    """One or more links carry only `rate`, both ways, and what they carried before again after `for`."""

    kind: ClassVar[str] = "link-rate"
    changes: ClassVar[Changes] = Changes.RATE
    target: ClassVar[Target] = Target.LINK

    aims: Targets = Field(alias="link-rate", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    rate_bps: PositiveRate = Field(alias="rate", description="what each carries meanwhile", examples=["6.25mbit"])

    @property
    def how(self) -> How:
        """The rate."""
        return How(rate_bps=self.rate_bps, words=f"at {format_rate(self.rate_bps)}")

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """None: what a slow link trims or marks is congestion, which takes no path out of use."""
        return ()
