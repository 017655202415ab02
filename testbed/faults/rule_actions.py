"""Actions by rules of the port program: packets are lost or corrupted as they come in, and every port stays up.

Each rule is taken away by its own handle, whatever else holds on the port.
"""

from __future__ import annotations

from collections.abc import Iterable

from testbed.fabric.port_rules import PortRule, RuleHandle
from testbed.faults.actions import FaultAction, does
from testbed.faults.target_system import TargetSystem
from testbed.scenario import LinkEnd, Occurrence

_MILLION = 1_000_000


class ByRule(FaultAction):
    """Puts the rule of `rule` at every place of an occurrence."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Put the rules. Raises FabricError; what was put until then is healed with the rest."""
        for place in occurrence.places:
            rule = self.rule(system, occurrence, place)
            keep(system, occurrence, [system.fabric.add_rule(place.link, place.toward, rule)])

    def rule(self, system: TargetSystem, occurrence: Occurrence, place: LinkEnd) -> PortRule:
        """Lose the occurrence's share of what comes in, whatever it is."""
        return PortRule("drop", chance(occurrence))

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Take away the rules of this occurrence and no others."""
        for handle in system.rules.pop(occurrence.key, []):
            system.fabric.remove_rule(handle)


def chance(occurrence: Occurrence) -> float:
    """The share of packets that an occurrence is about, as a probability."""
    return occurrence.parameters.share / _MILLION


def keep(system: TargetSystem, occurrence: Occurrence, handles: Iterable[RuleHandle]) -> None:
    """Remember handles until `heal`."""
    system.rules.setdefault(occurrence.key, []).extend(handles)


@does("link-loss", "one-way", "plane-loss")
class LosePackets(ByRule):
    """Packets are lost as they come in."""


@does("corrupt")
class CorruptPackets(ByRule):
    """A bit of the payload flips; switches pass the packet on, the receiver's ICRC check is to refuse it."""

    def rule(self, system: TargetSystem, occurrence: Occurrence, place: LinkEnd) -> PortRule:
        """Corrupt the occurrence's share of the data packets."""
        return PortRule("corrupt", chance(occurrence))


@does("ev-loss")
class LosePacketsOfEv(ByRule):
    """Packets of one sender on one EV are lost where they enter the T1; its other EVs and its neighbours go on."""

    def rule(self, system: TargetSystem, occurrence: Occurrence, place: LinkEnd) -> PortRule:
        """Lose the occurrence's share of what its sender sends (to its peer, if it has one) over the T1."""
        plan, parameters = system.plan, occurrence.parameters
        return PortRule(
            "drop",
            chance(occurrence),
            uplink=plan.switch_by_name[plan.link_by_name[place.link].far.node].index,
            source=plan.host_by_name[parameters.sender].index,
            destination=plan.host_by_name[parameters.peer].index if parameters.peer else None,
        )


@does("switch-silent")
class Silence(ByRule):
    """Ports stay up and everything that comes in is dropped; nobody is told (grey failure)."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Silence the switches."""
        for switch in occurrence.targets:
            keep(system, occurrence, system.fabric.silence(switch))
