"""ev-loss: packets of one sender on one EV are lost where they enter the T1; its other EVs and its neighbours go on."""

from __future__ import annotations

from testbed.fabric.port_rules import PortRule
from testbed.faults import rules
from testbed.faults.site import Site
from testbed.scenario import Cycle


def inject(site: Site, cycle: Cycle) -> None:
    """Lose its share of what its sender sends (to its peer, if it has one) over each T1. Raises FabricError."""
    plan = site.fabric.plan
    for place in cycle.places:
        rule = PortRule(
            "drop",
            rules.chance(cycle),
            uplink=plan.switch_by_name[plan.link_by_name[place.link].far.node].index,
            source=plan.host_by_name[cycle.how.sender].index,
            destination=plan.host_by_name[cycle.how.peer].index if cycle.how.peer else None,
        )
        rules.keep(site, cycle, [site.fabric.add_rule(place.link, place.toward, rule)])
