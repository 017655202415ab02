"""link-down and link-flap: the far end of each link goes admin-down.

A NIC port sees its carrier go; between T0 and T1 nobody is told, the T0 goes on sending into the dead link.
"""

from __future__ import annotations

from testbed.fabric.fabric import Fabric


def inject(fabric: Fabric, links: tuple[str, ...]) -> None:
    """Cut the links. Raises FabricError."""
    for link in links:
        fabric.link_down(link)


def heal(fabric: Fabric, links: tuple[str, ...]) -> None:
    """Plug them in again. Raises FabricError."""
    for link in links:
        fabric.link_up(link)
