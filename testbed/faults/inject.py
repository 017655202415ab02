"""The injector: does the steps of a schedule and keeps account of what is broken, so that all of it gets healed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from testbed.faults import deny, link, reboot
from testbed.faults.schedule import Action, FaultStep
from testbed.faults.site import Site

Change = Callable[[Site, FaultStep], None]


class FaultKind(NamedTuple):
    """How a kind of fault is done and undone on its targets."""

    inject: Change
    heal: Change


KINDS = {
    "link-down": FaultKind(link.inject, link.heal),
    "link-flap": FaultKind(link.inject, link.heal),
    "switch-reboot": FaultKind(reboot.inject, reboot.heal),
    "deny": FaultKind(deny.inject, deny.heal),
}


class Injector:
    """Acts on a site. `broken` holds the injected steps that are not healed yet, by fault name."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.broken: dict[str, FaultStep] = {}

    def do(self, step: FaultStep) -> None:
        """Inject or heal. Raises FabricError, RunError."""
        kind = KINDS[step.kind]
        if step.action is Action.INJECT:
            self.broken[step.fault] = step
            kind.inject(self._site, step)
        else:
            kind.heal(self._site, step)
            self.broken.pop(step.fault, None)

    def read_back(self, step: FaultStep) -> None:
        """After a heal: compare the nodes at both ends with the plan, but for those that another fault still touches.

        Raises FabricError naming what differs.
        """
        self._site.fabric.verify(self._nodes(step) - self._broken_nodes())

    def _nodes(self, step: FaultStep) -> set[str]:
        ends = (self._site.fabric.plan.link_by_name[name] for name in step.links)
        return {node for link in ends for node in (link.near.node, link.far.node)}

    def _broken_nodes(self) -> set[str]:
        return {node for step in self.broken.values() for node in self._nodes(step)}
