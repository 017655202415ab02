"""link-down and link-flap: the far end of each link goes admin-down.

A NIC port sees its carrier go; between T0 and T1 nobody is told, the T0 goes on sending into the dead link.
"""

from __future__ import annotations

from testbed.faults.schedule import FaultStep
from testbed.faults.site import Site


def inject(site: Site, step: FaultStep) -> None:
    """Cut the links. Raises FabricError."""
    for link in step.targets:
        site.fabric.link_down(link)


def heal(site: Site, step: FaultStep) -> None:
    """Plug them in again. Raises FabricError."""
    for link in step.targets:
        site.fabric.link_up(link)
