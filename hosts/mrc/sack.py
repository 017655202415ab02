"""What part of the receiver's bitmap a SACK shows."""

from __future__ import annotations

BITS = 64
BITMAP_MASK = (1 << BITS) - 1
MIN_COUNTED_BYTES = 1024
"""Small packets count for this much, so that they too are acknowledged every few packets (spec
7.5.2, by its readers)."""
PROBE_SACKS = 4
"""Most SACKs in answer to one reliability probe. They show the oldest 256 packets out of order; what is found missing
there is sent again, and its SACKs go on from there. Without a bound 32 bytes asked for 16 SACKs."""


def pieces(received: int) -> range:
    """Where the bitmaps begin that show `received` to the asker, oldest first; one, when all is in order."""
    return range(0, min(max(received.bit_length(), 1), PROBE_SACKS * BITS), BITS)


class SackWindow:
    """Chooses where the 64 bits of a SACK begin.

    While all that is out of order lies within 64 PSNs of the first hole, every SACK begins at the hole and tells all.
    Beyond, htsim's rule (end the bitmap at the triggering packet) would never again mention the packets near the
    hole, and a bitmap that always began at the hole never the newest ones: the sender needs the first to know
    what is missing and the second to see what has overtaken it. So SACKs alternate: one ends at its trigger, the next
    shows 64 bits further on in a sweep from the hole to the top. Each bit is thus shown again and again, whatever SACKs
    are lost. htsim's other special case (begin *at* the trigger when it had CE or asked for a SACK) is left out: it
    would hide exactly the holes below the last packet of a burst.
    """

    __slots__ = ("_at_trigger", "_sweep")

    def __init__(self) -> None:
        self._at_trigger = True
        self._sweep = 0

    def begin(self, received: int, trigger: int) -> int:
        """Where the bitmap of the next SACK begins. Bit 0 of `received` is the first hole, `trigger` the trigger's."""
        width = received.bit_length()
        if width <= BITS:
            return 0
        if self._at_trigger and trigger >= BITS:
            self._at_trigger = False
            return trigger - BITS + 1
        self._at_trigger = True
        start = self._sweep if self._sweep < width else 0
        self._sweep = start + BITS
        return start
