"""link-loss, one-way and plane-loss: packets are lost as they come in, whatever they are; every port stays up."""

from __future__ import annotations

from testbed.fabric.port_rules import PortRule
from testbed.faults import rules
from testbed.faults.site import Site
from testbed.scenario import Cycle


def inject(site: Site, cycle: Cycle) -> None:
    """Lose its share of what comes in at its places. Raises FabricError."""
    rules.put(site, cycle, PortRule("drop", rules.chance(cycle)))
