"""Paths that a controller withdraws: only the endpoints are told, and the network does not change."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from mrc_testbed.testbed.scenario.faults.base import Lasting
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters
from mrc_testbed.testbed.scenario.faults.registry import declare
from mrc_testbed.testbed.scenario.faults.selection import Targets
from mrc_testbed.testbed.scenario.faults.traits import Drawing, Effect, State
from mrc_testbed.testbed.scenario.text.fields import LaterStart, SomeHosts
from mrc_testbed.topos.plan import Plan


@declare
class Deny(Lasting):
    """A controller puts paths on the endpoints' denylist and removes them after `for`."""

    kind: ClassVar[str] = "deny"
    target: ClassVar[Target] = Target.PATH
    effect: ClassVar[Effect] = Effect.NOTHING
    drawing: ClassVar[Drawing] = Drawing(State.DENIED)

    at: LaterStart = Field(description="when it begins, after the workload's start", examples=["6s"])
    aims: Targets = Field(
        alias="deny", description="planes, or paths by a switch or a number", examples=["[p1, p0-t1-2]"]
    )
    hosts: SomeHosts = Field(default=(), description="`all`, or the hosts that do not use them", examples=["[h0, h4]"])

    @property
    def notified_hosts(self) -> tuple[str, ...]:
        """`hosts`, as written; empty: all hosts that are told."""
        return self.hosts

    @property
    def parameters(self) -> FaultParameters:
        """The hosts, if not all."""
        return FaultParameters(words=f"for {' '.join(self.hosts)}" if self.hosts else "")

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """None: an endpoint that is told to leave a path loses nothing on it."""
        return ()
