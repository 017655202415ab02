"""Adaptive routing: a T0 chooses the uplink of each data packet by how much waits there. Pure.

Backlogs are told apart by bands, and of the uplinks in the least band one is drawn. The bands are those of htsim's
`ecmp_ar` (fat_tree_switch.cpp): up to 5, 10 and 20 % of the queue, and above. The queue is that of a usual port, 3 BDP,
whatever a scenario lets its ports hold. A switch looks at its queues once in T/13, which is 1 us where T is 13 us; so
what it knows is up to so old, and packets that come meanwhile go where it seemed empty.
"""

from __future__ import annotations

from typing import NamedTuple

from mrc_testbed.testbed.switching.options import FabricOptions, level_bdp_bytes
from mrc_testbed.testbed.switching.thresholds import DEFAULT_THRESHOLDS
from mrc_testbed.topos.shape import Shape

BAND_SHARES = (0.05, 0.10, 0.20)
"""Upper ends of all bands but the last, as shares of the queue."""
LOOKS_PER_T = 13
"""How often a switch looks at its queues."""


class Looks(NamedTuple):
    """How a switch sees its queues. `levels`: upper ends of bands in bytes, from the least on; `every_ns`: how often it
    looks, 0 at each packet."""

    levels: tuple[int, ...]
    every_ns: int


def adaptive_words(options: FabricOptions) -> str:
    """What people read of it."""
    ends = ", ".join(f"{share:.0%}" for share in BAND_SHARES)
    bands = f"up to {ends} of {DEFAULT_THRESHOLDS.drop:.0f} BDP, and above"
    known = "dead links of its own and of T1s" if options.far_links else "dead links of its own"
    return f"adaptive routing: a T0 looks each T/{LOOKS_PER_T}, tells bands apart ({bands}), and leaves out {known}"


def looks_of(shape: Shape) -> Looks:
    """Of the switches of such a fabric."""
    queue = DEFAULT_THRESHOLDS.drop * level_bdp_bytes(shape)
    return Looks(tuple(int(share * queue) for share in BAND_SHARES), shape.rtt_ns // LOOKS_PER_T)
