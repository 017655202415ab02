"""link-down and all flaps, of links, NIC ports and transceivers: the far end of each link goes admin-down.

A NIC port sees its carrier go; between T0 and T1 nobody is told, the T0 goes on sending into the dead link.
"""

from __future__ import annotations

from testbed.faults.site import Site
from testbed.scenario import Cycle


def inject(site: Site, cycle: Cycle) -> None:
    """Cut the links that are not cut yet. Raises FabricError."""
    ends = (site.fabric.plan.link_by_name[name].far for name in cycle.links)
    site.fabric.ports_down(site.down.take(cycle.key, ends))


def heal(site: Site, cycle: Cycle) -> None:
    """Plug in again what no other fault holds down. Raises FabricError."""
    site.fabric.ports_up(site.down.release(cycle.key))
