"""switch-reboot: ports down, forwarding table gone, boot, the same static table written again, ports up."""

from __future__ import annotations

from testbed.errors import FabricError
from testbed.fabric.fabric import Fabric


def inject(fabric: Fabric, switches: tuple[str, ...]) -> None:
    """Cut the power. Raises FabricError, also when a route outlived it: then it was no reboot."""
    for switch in switches:
        left = fabric.switch_off(switch)
        if left:
            raise FabricError(switch, "switch off", f"{left} routes of its table are still there")


def heal(fabric: Fabric, switches: tuple[str, ...]) -> None:
    """Boot is over: ports up, table written. Raises FabricError."""
    for switch in switches:
        fabric.switch_on(switch)
