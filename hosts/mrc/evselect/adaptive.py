"""The rules of this project for SKIP: rests that grow while congestion lasts.

Ours, all of it: that a trim costs more than a mark, that rests double and add up in SKIP, that feedback on packets sent
before the last rest is ignored, that one packet can restore several EVs, and that an EV is not swapped in again at
once. `spec` (hosts/mrc/evselect/spec.py) has what the readers of the specification say instead.
docs/decisions/0060-two-sets-of-skip-rules.md compares the two: what matters of this is that old feedback is ignored.
"""

from __future__ import annotations

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc.evselect.rotation import Rotation
from mrc_testbed.hosts.mrc.paths import Path

MAX_PENALTY = 15
"""Most passes an EV in SKIP can owe (htsim's cap)."""
ECN_PASSES = 1
"""Turns of its plane an EV is passed over for one CE mark (htsim's penalty)."""
TRIM_PASSES = 4
"""The same for one packet trimmed before the last hop."""
MOST_DOUBLINGS = 4
"""Doublings of an EV's rest: 1, 2, 4, 8, then MAX_PENALTY turns. One turn a round trip is right against the chance
marks of a full fabric, and far too little against a link that has lost most of its rate. (htsim adds a turn for each
mark: with 4 EVs a plane and 15 packets a plane under way, a permutation swings between its uplinks and loses 16 %.)"""
SWAP_REST_T = 64
"""T for which an EV swapped out for congestion is not swapped in again. Two flows that had parted would meet again on
the first chance mark: without this rest a flow alone on its EV goes back to the busy one every 10 T, at the price of
20 trimmed packets a time."""
SWAP_AGAIN_AT = 2
"""Congestion marks in a row on the EV in use after which any other EV is better, rested or not."""


class Adaptive(Rotation):
    """The rotation with rests of 1 to MAX_PENALTY turns."""

    __slots__ = ()

    passes_a_packet = NEVER

    def on_congestion(self, path: Path, trimmed: bool, sent_ns: int, now_ns: int) -> None:
        """Other EVs of the plane go first for some turns, twice as many each time until a packet comes through
        unmarked.

        What was sent before the EV last went to SKIP met the queue that this was the answer to, and changes nothing.
        """
        if sent_ns < path.skipped_ns:
            return
        passes = (TRIM_PASSES if trimmed else ECN_PASSES) << path.congested
        path.congested = min(path.congested + 1, MOST_DOUBLINGS)
        self._evs.skip(path, "trimmed" if trimmed else "ecn")
        rest_t = SWAP_REST_T if path.congested < SWAP_AGAIN_AT else 0
        owed = min(path.penalty + passes, MAX_PENALTY)
        self._rest(path, owed, now_ns, rest_t * self._evs.timing.t_ns)

    def on_arrival(self, path: Path, sent_ns: int) -> None:
        """Its next rest is a short one again."""
        if path.congested and sent_ns >= path.skipped_ns:
            path.congested = 0
