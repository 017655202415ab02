"""Spraying without a state of paths: every EV once a turn, whatever became of the packets before.

htsim's "oblivious" (uec_mp.cpp) takes the number of the packet, XOR a mask that is drawn for each turn, out of a power
of two EVs. Here each turn of a plane is shuffled, as in the other selections, for any number of EVs (ours), and planes
are in strict turn (ours: there the NIC takes the next free port). No EV rests and none is retired, so a dead path has
its share of all packets until somebody mends it, and each of them is sent again.
"""

from __future__ import annotations

from mrc_testbed.hosts.mrc.evselect.rotation import Rotation
from mrc_testbed.hosts.mrc.paths import Path


class Oblivious(Rotation):
    """The two rotations and nothing else."""

    __slots__ = ()

    uses_skip = False
    retires = False

    def on_congestion(self, path: Path, trimmed: bool, sent_ns: int, now_ns: int) -> None:
        """It is congestion control's affair."""
