"""Actions on settings: entries of a switch's table, the levels of its ports, and what a host is burdened with.

Each fault claims what it changes. After every change the sum of all claims is what holds.
"""

from __future__ import annotations

from typing import Any, Literal

from mrc_testbed.testbed.faults.actions import FaultAction, does
from mrc_testbed.testbed.faults.target_system import Burden, TargetSystem
from mrc_testbed.testbed.scenario import Occurrence
from mrc_testbed.testbed.scenario.faults.kinds.tables import misled_by, switch_of
from mrc_testbed.testbed.switching.thresholds import LevelFlaws, all_flaws
from mrc_testbed.topos.nodes import Interface


@does("entry-missing", "entry-wrong", "cables-swapped")
class MisleadEntries(FaultAction):
    """Entries of a switch go, or lead out of another port. Nobody is told, and the ports stay up."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Change the entries. Raises FabricError."""
        system.entries[occurrence.key] = misled_by(occurrence, system.plan)
        _apply_entries(system, switch_of(occurrence))

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Write them again as planned, or as the latest other fault has them. Raises FabricError."""
        system.entries.pop(occurrence.key, None)
        _apply_entries(system, switch_of(occurrence))


def _apply_entries(system: TargetSystem, switch: str) -> None:
    wanted: dict[Interface, Interface | None] = {}
    for entries in system.entries.values():
        wanted |= {own: instead for own, instead in entries.items() if own.node == switch}
    system.fabric.mislead(switch, wanted)


@does("ecn-stuck", "trim-off", "shallow-buffer")
class ChangeLevels(FaultAction):
    """The ports of switches judge packets by other levels than planned."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Change the levels."""
        system.flaws[occurrence.key] = dict.fromkeys(occurrence.targets, _flaws(occurrence))
        _apply_flaws(system, occurrence)

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Return to the planned ones, but for what other faults have changed."""
        system.flaws.pop(occurrence.key, None)
        _apply_flaws(system, occurrence)


def _flaws(occurrence: Occurrence) -> LevelFlaws:
    values: dict[str, Any] = dict(occurrence.parameters.values)
    marks: Literal["never", "always"] | None = values.get("marks")
    return LevelFlaws(marks, values.get("trims", True), values.get("drop"))


def _apply_flaws(system: TargetSystem, occurrence: Occurrence) -> None:
    for switch in occurrence.targets:
        system.fabric.set_flaws(switch, flaws_now(system, switch))


def flaws_now(system: TargetSystem, switch: str) -> LevelFlaws:
    """What all faults together make of a switch's levels."""
    return all_flaws(flaws[switch] for flaws in system.flaws.values() if switch in flaws)


@does("host-slow", "host-pause")
class Hinder(FaultAction):
    """A host's endpoint and its program wait: for a time a packet, or until the fault is over."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Tell the hosts. Raises RunError."""
        values = occurrence.parameters.values
        burden = Burden(bool(values.get("held")), int(values.get("per_packet_ns", 0)))
        system.burdens[occurrence.key] = dict.fromkeys(occurrence.targets, burden)
        _apply_burdens(system, occurrence)

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Relieve them of this fault's part. Raises RunError."""
        system.burdens.pop(occurrence.key, None)
        _apply_burdens(system, occurrence)


def _apply_burdens(system: TargetSystem, occurrence: Occurrence) -> None:
    """Of several faults one that holds the host is enough, and the longest time a packet counts."""
    for host in occurrence.targets:
        burdens = [each[host] for each in system.burdens.values() if host in each]
        held = any(burden.held for burden in burdens)
        system.hinder(host, held, max((burden.per_packet_ns for burden in burdens), default=0))
