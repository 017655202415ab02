"""The rules for SKIP that the readers of the OCP specification give (section 9.3).

A mark and a trim before the last hop cost one turn of the rotation alike. Feedback on an EV in SKIP is ignored. One
packet restores at most one EV: of several in SKIP that it passes, the first.

The specification says nothing of backups. P1 does (Fig. 14): with a GOOD backup in the plane an EV in SKIP is swapped
for it. Then the EV is out of the rotation, so the turn it owes is one of the EVs that are in it (ours).
"""

from __future__ import annotations

from mrc_testbed.hosts.mrc.evselect.rotation import Rotation
from mrc_testbed.hosts.mrc.paths import Path


class Spec(Rotation):
    """The rotation with rests of one turn."""

    __slots__ = ()

    passes_a_packet = 1

    def on_congestion(self, path: Path, trimmed: bool, sent_ns: int, now_ns: int) -> None:
        """GOOD -> SKIP for one turn. In SKIP nothing changes."""
        if not path.penalty:
            self._evs.skip(path, "trimmed" if trimmed else "ecn")
            self._rest(path, 1, now_ns, 0)
