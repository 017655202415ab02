"""The injector: does the steps of a schedule and keeps account of what is broken, so that all of it gets healed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from testbed.errors import FabricError
from testbed.faults import corrupt, deny, ev_loss, link, loss, rate, reboot, rules, silent
from testbed.faults.holds import Key
from testbed.faults.schedule import Action, FaultStep
from testbed.faults.site import Site
from testbed.scenario import Changes, Cycle
from testbed.scenario.units import format_rate

Change = Callable[[Site, Cycle], None]


class FaultKind(NamedTuple):
    """How a kind of fault is done and undone on its targets."""

    inject: Change
    heal: Change


KINDS = {
    "link-down": FaultKind(link.inject, link.heal),
    "link-flap": FaultKind(link.inject, link.heal),
    "port-flap": FaultKind(link.inject, link.heal),
    "transceiver-flap": FaultKind(link.inject, link.heal),
    "link-loss": FaultKind(loss.inject, rules.heal),
    "link-rate": FaultKind(rate.inject, rate.heal),
    "one-way": FaultKind(loss.inject, rules.heal),
    "plane-loss": FaultKind(loss.inject, rules.heal),
    "ev-loss": FaultKind(ev_loss.inject, rules.heal),
    "corrupt": FaultKind(corrupt.inject, rules.heal),
    "switch-reboot": FaultKind(reboot.inject, reboot.heal),
    "switch-silent": FaultKind(silent.inject, rules.heal),
    "deny": FaultKind(deny.inject, deny.heal),
}


class Injector:
    """Acts on a site. `broken` holds the injected cycles that are not healed yet, the last injected last."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.broken: dict[Key, Cycle] = {}

    def do(self, step: FaultStep) -> None:
        """Inject or heal. Raises FabricError, RunError."""
        cycle = step.cycle
        kind = KINDS[cycle.kind]
        if step.action is Action.INJECT:
            self.broken[cycle.key] = cycle
            kind.inject(self._site, cycle)
        else:
            kind.heal(self._site, cycle)
            self.broken.pop(cycle.key, None)

    def read_back(self, step: FaultStep) -> None:
        """After a heal: compare what it changed with what the faults that are still on leave of the plan.

        Raises FabricError naming what differs.
        """
        if step.changes is Changes.RULES:
            self._site.fabric.verify_rules(handle for held in self._site.rules.values() for handle in held)
        elif step.changes is not Changes.NOTHING:
            self._site.fabric.verify(self._nodes(step))

    def verify_healed(self) -> None:
        """After the last heal: no rule, no rate and no port of a fault is left. Raises FabricError naming the first."""
        fabric = self._site.fabric
        fabric.verify_rules(())
        for each in fabric.plan.links:
            rate_bps = fabric.rate_bps(each.name)
            if rate_bps != fabric.plan.shape.port_rate_bps:
                raise FabricError(each.near.node, "read-back", f"{each.name} is still at {format_rate(rate_bps)}")
        if down := fabric.ports_held_down():
            raise FabricError(down[0].node, "read-back", f"{down[0].name} is still held down by a fault")

    def _nodes(self, step: FaultStep) -> set[str]:
        cycle = step.cycle
        names = cycle.targets if step.changes is Changes.RATE else cycle.links
        ends = (self._site.fabric.plan.link_by_name[name] for name in names)
        return {node for link in ends for node in (link.near.node, link.far.node)}
