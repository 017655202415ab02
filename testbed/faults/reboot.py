"""switch-reboot: ports down, forwarding table gone, boot, the same static table written again, ports up."""

from __future__ import annotations

from testbed.errors import FabricError
from testbed.faults.schedule import FaultStep
from testbed.faults.site import Site


def inject(site: Site, step: FaultStep) -> None:
    """Cut the power. Raises FabricError, also when a route outlived it: then it was no reboot."""
    for switch in step.targets:
        left = site.fabric.switch_off(switch)
        if left:
            raise FabricError(switch, "switch off", f"{left} routes of its table are still there")


def heal(site: Site, step: FaultStep) -> None:
    """Boot is over: ports up, table written. Raises FabricError."""
    for switch in step.targets:
        site.fabric.switch_on(switch)
