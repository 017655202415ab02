"""link-loss, one-way and plane-loss: packets are lost as they come in, whatever they are; every port stays up."""

from __future__ import annotations

from testbed.fabric.port_rules import PortRule
from testbed.faults import rules
from testbed.faults.schedule import FaultStep
from testbed.faults.site import Site


def inject(site: Site, step: FaultStep) -> None:
    """Lose the step's share of what comes in at its places. Raises FabricError."""
    rules.put(site, step, PortRule("drop", rules.chance(step)))
