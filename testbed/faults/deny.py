"""deny: what a controller does that takes paths out of use and gives them back. Nothing in the network changes."""

from __future__ import annotations

from testbed.faults.schedule import FaultStep
from testbed.faults.site import Site


def inject(site: Site, step: FaultStep) -> None:
    """Deny the paths. Raises RunError."""
    site.tell("deny", step)


def heal(site: Site, step: FaultStep) -> None:
    """Allow them again: they return when probes have vouched for them. Raises RunError."""
    site.tell("allow", step)
