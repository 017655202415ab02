"""corrupt: a bit of the payload flips; switches pass the packet on, the receiver's ICRC check is to refuse it."""

from __future__ import annotations

from testbed.fabric.port_rules import PortRule
from testbed.faults import rules
from testbed.faults.schedule import FaultStep
from testbed.faults.site import Site


def inject(site: Site, step: FaultStep) -> None:
    """Corrupt the step's share of the data packets that come in at its places. Raises FabricError."""
    rules.put(site, step, PortRule("corrupt", rules.chance(step)))
