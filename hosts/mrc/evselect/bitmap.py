"""The penalties of htsim's "bitmap" (`UecMpBitmap` in uec_mp.cpp): all feedback adds to an EV's rest, up to a cap.

A mark adds one turn, a NACK four, 15 at the most, whatever the packet was sent before. A packet that passes EVs which
rest takes a turn off the first of them alone. Ours: a loss retires its EV, where htsim's timeout adds 15 turns; each
turn of a plane is shuffled, and planes are in strict turn, as in the other selections.
"""

from __future__ import annotations

from mrc_testbed.hosts.mrc.evselect.rotation import Rotation
from mrc_testbed.hosts.mrc.paths import Path

MARKED, REFUSED, MOST = 1, 4, 15
"""Turns that an EV owes for a mark, for a NACK of a trimmed packet, and at the most."""


class Bitmap(Rotation):
    """The rotation with rests that add up."""

    __slots__ = ()

    passes_a_packet = 1

    def on_congestion(self, path: Path, trimmed: bool, sent_ns: int, now_ns: int) -> None:
        """However old the packet is."""
        self._evs.skip(path, "trimmed" if trimmed else "ecn")
        self._rest(path, min(path.penalty + (REFUSED if trimmed else MARKED), MOST), now_ns, 0)
