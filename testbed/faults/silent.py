"""switch-silent: ports stay up and everything that comes in is dropped; nobody is told (grey failure)."""

from __future__ import annotations

from testbed.faults import rules
from testbed.faults.site import Site
from testbed.scenario import Cycle


def inject(site: Site, cycle: Cycle) -> None:
    """Silence the switches. Raises FabricError."""
    for switch in cycle.targets:
        rules.keep(site, cycle, site.fabric.silence(switch))
