"""deny: what a controller does that takes paths out of use and gives them back. Nothing in the network changes."""

from __future__ import annotations

from testbed.faults.site import Site
from testbed.scenario import Cycle


def inject(site: Site, cycle: Cycle) -> None:
    """Deny the paths. Raises RunError."""
    site.tell("deny", cycle)


def heal(site: Site, cycle: Cycle) -> None:
    """Allow them again: they return when probes have vouched for them. Raises RunError."""
    site.tell("allow", cycle)
