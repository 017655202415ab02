"""The injector: executes the steps of a schedule and tracks active faults, so that all get healed."""

from __future__ import annotations

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.faults import (  # noqa: F401 - their actions are found by kind
    port_actions,
    rule_actions,
    setting_actions,
)
from mrc_testbed.testbed.faults.actions import action_of
from mrc_testbed.testbed.faults.schedule import Action, FaultStep
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.scenario import Effect, Occurrence
from mrc_testbed.testbed.scenario.faults.occurrence import OccurrenceKey
from mrc_testbed.testbed.scenario.text.units import format_rate


class Injector:
    """Acts on a target system. `broken`: injected and not healed yet, in order of injection."""

    def __init__(self, system: TargetSystem) -> None:
        self._system = system
        self.broken: dict[OccurrenceKey, Occurrence] = {}

    def do(self, step: FaultStep) -> None:
        """Inject or heal. Raises FabricError, RunError."""
        occurrence = step.occurrence
        action = action_of(occurrence.model)
        if step.action is Action.INJECT:
            self.broken[occurrence.key] = occurrence
            self._tell_unplanned()
            action.inject(self._system, occurrence)
        else:
            action.heal(self._system, occurrence)
            self.broken.pop(occurrence.key, None)
            self._tell_unplanned()

    def _tell_unplanned(self) -> None:
        """Tells the read-back what active actions have changed without the fabric's knowledge."""
        fabric = self._system.fabric
        every = (action_of(each.model).unplanned(each, fabric.plan) for each in self.broken.values())
        fabric.unplanned = frozenset(one for found in every for one in found)

    def read_back(self, step: FaultStep) -> None:
        """After a heal: compare the changed nodes with the plan minus the remaining faults.

        Raises FabricError naming what differs.
        """
        if step.effect is Effect.RULES:
            self._system.fabric.verify_rules(handle for held in self._system.rules.values() for handle in held)
        elif step.effect is Effect.LEVELS:
            switches = {name for each in self._system.flaws.values() for name in each}
            flaws = {switch: setting_actions.flaws_now(self._system, switch) for switch in switches}
            self._system.fabric.verify_flaws(flaws)
        elif step.effect.in_fabric:
            self._system.fabric.verify(self._nodes(step.occurrence))

    def verify_healed(self) -> None:
        """After the last heal: no rule, rate or port of a fault may remain. Raises FabricError naming the first."""
        fabric = self._system.fabric
        fabric.verify_rules(())
        fabric.verify_flaws({})
        for each in fabric.plan.links:
            rate_bps = fabric.rate_bps(each.name)
            if rate_bps != each.rate_bps:
                raise FabricError(each.near.node, "read-back", f"{each.name} is still at {format_rate(rate_bps)}")
        if down := fabric.ports_held_down():
            raise FabricError(down[0].node, "read-back", f"{down[0].name} is still held down by a fault")

    def _nodes(self, occurrence: Occurrence) -> set[str]:
        plan = self._system.plan
        named = [plan.link_by_name[name] for name in occurrence.targets if name in plan.link_by_name]
        links = [plan.link_by_name[name] for name in occurrence.links] or named
        ends = {end.node for link in links for end in link.ends}
        return ends | {name for name in occurrence.targets if name in plan.ports}
