"""switch-reboot: ports down, forwarding table gone, boot, the same static table written again, ports up."""

from __future__ import annotations

from testbed.errors import FabricError
from testbed.faults.site import Site
from testbed.scenario import Cycle


def inject(site: Site, cycle: Cycle) -> None:
    """Cut the power. Raises FabricError, also when a route outlived it: then it was no reboot."""
    ports = (own for switch in cycle.targets for own, _ in site.fabric.plan.ports[switch])
    site.down.take(cycle.key, ports)
    for switch in site.off.take(cycle.key, cycle.targets):
        left = site.fabric.switch_off(switch)
        if left:
            raise FabricError(switch, "switch off", f"{left} routes of its table are still there")


def heal(site: Site, cycle: Cycle) -> None:
    """Boot is over: table written, and the ports up that no other fault holds down. Raises FabricError."""
    freed = site.down.release(cycle.key)
    for switch in site.off.release(cycle.key):
        site.fabric.switch_on(switch, [port for port in freed if port.node == switch])
