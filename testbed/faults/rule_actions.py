"""Actions by rules of the port program: packets are lost or corrupted on arrival while every port stays up.

Each rule is removed by its own handle.
"""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.testbed.faults.actions import FaultAction, does
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.scenario import LinkEnd, Occurrence, parse_paths
from mrc_testbed.testbed.scenario.faults.ways import entrances
from mrc_testbed.testbed.switching.port_rules import PortRule, RuleHandle

_MILLION = 1_000_000


class ByRule(FaultAction):
    """Applies `rule` at every place of an occurrence."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Add the rules. Raises FabricError; rules added before the error are healed with the rest."""
        for place in occurrence.places:
            rule = self.rule(system, occurrence, place)
            keep(system, occurrence, [system.fabric.add_rule(place.link, place.toward, rule)])

    def rule(self, system: TargetSystem, occurrence: Occurrence, place: LinkEnd) -> PortRule:
        """Lose the occurrence's share of all arriving packets."""
        return PortRule("drop", chance(occurrence))

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Remove the rules of this occurrence only."""
        for handle in system.rules.pop(occurrence.key, []):
            system.fabric.remove_rule(handle)


def chance(occurrence: Occurrence) -> float:
    """The share of affected packets as a probability."""
    return occurrence.parameters.share / _MILLION


def keep(system: TargetSystem, occurrence: Occurrence, handles: Iterable[RuleHandle]) -> None:
    """Remember handles until `heal`."""
    system.rules.setdefault(occurrence.key, []).extend(handles)


@does("link-loss", "one-way", "plane-loss")
class LosePackets(ByRule):
    """Packets are lost on arrival."""


@does("corrupt")
class CorruptPackets(ByRule):
    """A bit of the payload flips; switches forward the packet, and the receiver's ICRC check should reject it."""

    def rule(self, system: TargetSystem, occurrence: Occurrence, place: LinkEnd) -> PortRule:
        """Corrupt the occurrence's share of the data packets."""
        return PortRule("corrupt", chance(occurrence))


@does("ev-loss")
class LosePacketsOfEv(ByRule):
    """Packets of one sender on one EV are lost where they enter a switch; other EVs and senders are unaffected."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Add a rule for each EV at each place. Raises as `ByRule` does."""
        ends = occurrence.parameters.sender, occurrence.parameters.peer
        for name in occurrence.targets:
            rule = self._rule_for(name, system, occurrence)
            for place in entrances(name, *ends, system.plan):
                keep(system, occurrence, [system.fabric.add_rule(place.link, place.toward, rule)])

    def _rule_for(self, name: str, system: TargetSystem, occurrence: Occurrence) -> PortRule:
        """Lose the occurrence's share of its sender's packets (to its peer, if given). Where EVs are named by a switch
        all that come there are on them."""
        paths, parameters, hosts = parse_paths(name), occurrence.parameters, system.plan.host_by_name
        return PortRule(
            "drop",
            chance(occurrence),
            uplink=paths and paths.number,
            source=hosts[parameters.sender].index,
            destination=hosts[parameters.peer].index if parameters.peer else None,
        )


@does("switch-silent")
class Silence(ByRule):
    """Ports stay up and drop everything that arrives, without notice to anyone (grey failure); with `control: lives`
    everything but what switches say to each other."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Silence the switches."""
        spared = occurrence.parameters.values.get("control") == "lives"
        for switch in occurrence.targets:
            keep(system, occurrence, system.fabric.silence(switch, of_hosts=spared))
