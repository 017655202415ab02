"""link-rate: shapers and virtual queues at both ends of a link go slower; endpoints learn of it by ECN and trims.

Where several faults slow one link down, the slowest counts.
"""

from __future__ import annotations

from testbed.faults.site import Site
from testbed.scenario import Cycle


def inject(site: Site, cycle: Cycle) -> None:
    """Slow the links down. Raises FabricError."""
    site.rates.take(cycle.key, dict.fromkeys(cycle.targets, cycle.how.rate_bps))
    _apply(site, cycle)


def heal(site: Site, cycle: Cycle) -> None:
    """Give them the rate that is left to them, by other faults or by the plan. Raises FabricError."""
    site.rates.release(cycle.key)
    _apply(site, cycle)


def _apply(site: Site, cycle: Cycle) -> None:
    planned_bps = site.fabric.plan.shape.port_rate_bps
    for link in cycle.targets:
        rate_bps = site.rates.of(link) or planned_bps
        if rate_bps != site.fabric.rate_bps(link):
            site.fabric.set_rate(link, rate_bps)
