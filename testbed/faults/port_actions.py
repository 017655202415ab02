"""Actions on ports: cut and slow links, reboot switches. Shared claims are released by the last fault."""

from __future__ import annotations

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.faults.actions import FaultAction, does
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.scenario import Occurrence


@does("link-down", "link-flap", "port-flap", "transceiver-flap")
class CutLinks(FaultAction):
    """The far end of each link goes admin-down. A NIC port loses carrier; between T0 and T1 nobody is notified, and the
    T0 keeps sending into the dead link, unless it chooses the path itself and sees that its port has no carrier."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Cut the links that are not cut already."""
        ends = (system.plan.link_by_name[name].far for name in occurrence.links)
        system.fabric.ports_down(system.down.take(occurrence.key, ends))

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Bring up the ports that no other fault holds down."""
        system.fabric.ports_up(system.down.release(occurrence.key))


@does("switch-reboot")
class Reboot(FaultAction):
    """Ports down, forwarding table removed, boot, the same static table rewritten, ports up."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Take the switch off. Raises FabricError, also if a route remains: then it was no reboot."""
        ports = (own for switch in occurrence.targets for own, _ in system.plan.ports[switch])
        system.down.take(occurrence.key, ports)
        for switch in system.off.take(occurrence.key, occurrence.targets):
            left = system.fabric.switch_off(switch)
            if left:
                raise FabricError(switch, "switch off", f"{left} routes of its table are still there")

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """After the boot: rewrite the table, and bring up the ports that no other fault holds down."""
        freed = system.down.release(occurrence.key)
        for switch in system.off.release(occurrence.key):
            system.fabric.switch_on(switch, [port for port in freed if port.node == switch])


@does("link-rate")
class SlowLinks(FaultAction):
    """Shapers and virtual queues at both ends of a link slow down; endpoints notice by ECN and trims."""

    def inject(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Slow the links down; the lowest rate of all faults counts."""
        rates = dict.fromkeys(occurrence.targets, occurrence.parameters.rate_bps)
        system.limits("rate").take(occurrence.key, rates)
        _apply_rates(system, occurrence)

    def heal(self, system: TargetSystem, occurrence: Occurrence) -> None:
        """Restore the lowest remaining rate of other faults, or the planned one."""
        system.limits("rate").release(occurrence.key)
        _apply_rates(system, occurrence)


def _apply_rates(system: TargetSystem, occurrence: Occurrence) -> None:
    for link in occurrence.targets:
        rate_bps = system.limits("rate").of(link) or system.plan.link_by_name[link].rate_bps
        if rate_bps != system.fabric.rate_bps(link):
            system.fabric.set_rate(link, rate_bps)
