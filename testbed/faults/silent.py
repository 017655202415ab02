"""switch-silent: ports stay up and everything that comes in is dropped; nobody is told (grey failure)."""

from __future__ import annotations

from testbed.faults import rules
from testbed.faults.schedule import FaultStep
from testbed.faults.site import Site


def inject(site: Site, step: FaultStep) -> None:
    """Silence the switches. Raises FabricError."""
    for switch in step.targets:
        rules.keep(site, step, site.fabric.silence(switch))
