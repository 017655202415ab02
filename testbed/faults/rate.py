"""link-rate: shapers and virtual queues at both ends of a link go slower; endpoints learn of it by ECN and trims."""

from __future__ import annotations

from testbed.faults.schedule import FaultStep
from testbed.faults.site import Site


def inject(site: Site, step: FaultStep) -> None:
    """Slow the links down. Raises FabricError."""
    for link in step.targets:
        site.fabric.set_rate(link, step.how.rate_bps)


def heal(site: Site, step: FaultStep) -> None:
    """Give them the rate of the plan again. Raises FabricError."""
    for link in step.targets:
        site.fabric.restore_rate(link)
