"""Faults that only the endpoints are told of."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from testbed.scenario.faults.base import Changes, Lasting
from testbed.scenario.faults.cycle import How
from testbed.scenario.faults.names import Target
from testbed.scenario.faults.selection import Targets
from testbed.scenario.fields import LaterStart, SomeHosts
from topos.plan import Plan


class Deny(Lasting):
    """Paths are put on the denylist of the endpoints and taken off again after `for`, as a controller would."""

    kind: ClassVar[str] = "deny"
    changes: ClassVar[Changes] = Changes.NOTHING
    target: ClassVar[Target] = Target.PATH

    at: LaterStart = Field(description="when it begins, after the workload's start", examples=["6s"])
    aims: Targets = Field(alias="deny", description="planes, or uplinks by their T1", examples=["[p1, p0-t1-2]"])
    hosts: SomeHosts = Field(default=(), description="`all`, or the hosts that do not use them", examples=["[h0, h4]"])

    @property
    def told(self) -> tuple[str, ...]:
        """The hosts."""
        return self.hosts

    @property
    def how(self) -> How:
        """The hosts, where they are not all."""
        return How(words=f"for {' '.join(self.hosts)}" if self.hosts else "")

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """None: whoever is told to leave a path loses nothing on it."""
        return ()
