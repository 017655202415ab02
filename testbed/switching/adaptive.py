"""Adaptive routing: switches choose the port of each data packet by how much waits there. Pure.

Backlogs are told apart by bands, and of the ports in the least band one is drawn. The bands are those of htsim's
`ecmp_ar` (fat_tree_switch.cpp): up to 5, 10 and 20 % of the queue, and above. The queue is that of a usual port, 3 BDP,
whatever a scenario lets its ports hold; on a slower link the same time makes a band. A switch looks at its queues once
in T/13, which is 1 us where T is 13 us; so what it knows is up to so old, and packets that come meanwhile go where it
seemed empty.
"""

from __future__ import annotations

from typing import NamedTuple

from mrc_testbed.testbed.switching.options import FabricOptions, level_bdp_bytes
from mrc_testbed.testbed.switching.thresholds import DEFAULT_THRESHOLDS
from mrc_testbed.topos import names
from mrc_testbed.topos.graph import SwitchPlace
from mrc_testbed.topos.nodes import Interface, Switch
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.shape import Shape

BAND_SHARES = (0.05, 0.10, 0.20)
"""Upper ends of all bands but the last, as shares of the queue."""
LOOKS_PER_T = 13
"""How often a switch looks at its queues."""


class Looks(NamedTuple):
    """How a switch sees its queues. `levels`: upper ends of bands in bytes at the port rate, from the least on;
    `every_ns`: how often it looks, 0 at each packet."""

    levels: tuple[int, ...]
    every_ns: int

    def levels_at(self, rate_bps: int, port_rate_bps: int) -> tuple[int, ...]:
        """Those of a port of this rate: the same times as at the port rate."""
        return tuple(level * rate_bps // port_rate_bps for level in self.levels)


def adaptive_words(options: FabricOptions, tiers: int = 2) -> str:
    """What people read of it, in a plane of this number of tiers."""
    ends = ", ".join(f"{share:.0%}" for share in BAND_SHARES)
    bands = f"up to {ends} of {DEFAULT_THRESHOLDS.drop:.0f} BDP, and above"
    two = tiers <= 2  # all above the T0s have one way on
    beyond = f" and of {'T1s' if two else 'switches beyond'}" if options.far_links else ""
    looks = f"{'a T0' if two else 'a switch'} looks each T/{LOOKS_PER_T}"
    return f"adaptive routing: {looks}, tells bands apart ({bands}), and leaves out dead links of its own{beyond}"


def looks_of(shape: Shape) -> Looks:
    """Of the switches of such a fabric."""
    queue = DEFAULT_THRESHOLDS.drop * level_bdp_bytes(shape, shape.port_rate_bps)
    return Looks(tuple(int(share * queue) for share in BAND_SHARES), shape.rtt_ns // LOOKS_PER_T)


def choices_of(plan: Plan, switch: Switch) -> set[tuple[SwitchPlace, ...]]:
    """The switches that come next, for all groups to which a switch has a choice."""
    return {places for places in plan.next_places(switch.place).values() if len(places) > 1}


def ports_to_choose(plan: Plan, switch: Switch) -> list[Interface]:
    """The ports among which a switch chooses where it has a choice, in their order; none if it has none.

    Raises ValueError if it depends on the group, which the port program does not read.
    """
    choices = choices_of(plan, switch)
    if len(choices) > 1:
        raise ValueError(f"{switch.name} chooses among other ports for each group")
    places = next(iter(choices), ())
    return [plan.port_toward(switch.name, names.switch_name(switch.plane, *place)) for place in places]
