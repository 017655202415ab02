"""corrupt: a bit of the payload flips; switches pass the packet on, the receiver's ICRC check is to refuse it."""

from __future__ import annotations

from testbed.fabric.port_rules import PortRule
from testbed.faults import rules
from testbed.faults.site import Site
from testbed.scenario import Cycle


def inject(site: Site, cycle: Cycle) -> None:
    """Corrupt its share of the data packets that come in at its places. Raises FabricError."""
    rules.put(site, cycle, PortRule("corrupt", rules.chance(cycle)))
