"""What a fabric should be now: the plan, and what faults have changed of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.tables import Misled
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan


class Unplanned(NamedTuple):
    """A property of a port that a fault changes by its own code; read-back skips it meanwhile."""

    port: Interface
    what: Literal["mtu", "queues", "neighbours", "routes"]


@dataclass(frozen=True, slots=True)
class Expected:
    """What the kernel should hold: the plan, the chosen parts, link rates changed by faults, ids of the port programs
    by name, ports `down` and switches `off` by faults, entries of switches that they have `misled`, and what else they
    changed `unplanned`."""

    plan: Plan
    options: FabricOptions
    rates_bps: Mapping[str, int] = field(default_factory=dict)
    programs: Mapping[str, int] = field(default_factory=dict)
    down: Collection[Interface] = ()
    off: Collection[str] = ()
    unplanned: Collection[Unplanned] = ()
    misled: Misled = field(default_factory=dict)

    def port_rates(self, node: str) -> dict[str, int]:
        """Current shaper rate of each port of a node."""
        rates = {}
        for link in self.plan.links_of(node):
            own = link.near if link.near.node == node else link.far
            rates[own.name] = self.rates_bps.get(link.name, link.rate_bps)
        return rates

    def devices_without(self, what: str, node: str) -> set[str]:
        """Ports of a node whose property `what` is not compared."""
        return {port.name for port, changed in self.unplanned if changed == what and port.node == node}

    def lost_links(self) -> set[str]:
        """Links with an end that is down."""
        return {link.name for link in self.plan.links if any(end in self.down for end in link.ends)}

    def has_egress(self, node: str) -> bool:
        """True if the ports of a node run the port program at egress."""
        return self.options.port_program and node in self.plan.switch_by_name
