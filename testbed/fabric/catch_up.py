"""Shapers that lost time make it up: they go a little faster until they are where their links would be. Pure.

A shaper whose timer is late by more than its burst forgets the rest of that time. In a queue that runs empty now and
then nothing is left of it. A queue that stays full keeps it: losses of some milliseconds each, on a machine whose other
figures are all inside their limits, made a full port of 50 Mb/s 30 to 120 ms late within 40 s. A link forgets nothing.
A shaper that was always faster, or had a greater burst, would let packets go ahead of their time instead
(docs/decisions/0021-shaper-makes-up-time.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.topos.nodes import Interface

PERIOD_NS = 50_000_000
"""How often ports are looked at."""
MOST_PERCENT = 4
"""Inside the limit of 5 % for the rate of a port in any second. It makes up 2 ms in a period."""
_NS_A_PERCENT = 1_000_000
"""How far behind each per cent is for: at the end it is a half millisecond a period, so that none gets ahead."""
START_NS = 1_250_000
"""What a burst of a millisecond makes good needs no help."""


class CatchUp:
    """By how many per cent each port's shaper is faster now. `times`: how often one began to be."""

    def __init__(self) -> None:
        self.times = 0
        self._faster: dict[Interface, int] = {}
        self._late_before: set[Interface] = set()

    def look(self, behind_ns: Iterable[tuple[Interface, int]]) -> dict[Interface, int]:
        """Take how late the last packet of each port was; returns the ports to change, with their per cent.

        A port begins when it is late twice in a row: once may be a packet that its burst has just made good.
        """
        changes, late = {}, set()
        for port, behind in behind_ns:
            now = self._faster.get(port, 0)
            if not now and behind > START_NS:
                late.add(port)
            percent = min(MOST_PERCENT, behind // _NS_A_PERCENT) if now or port in late & self._late_before else 0
            if percent != now:
                changes[port] = percent
                self.times += not now
        self._late_before = late
        self._keep(changes)
        return changes

    def rest(self) -> dict[Interface, int]:
        """The ports that are faster, each with 0: as planned."""
        changes = dict.fromkeys(self._faster, 0)
        self._faster = {}
        return changes

    def forget(self, ports: Iterable[Interface]) -> None:
        """These ports have got a rate from elsewhere."""
        for port in ports:
            self._faster.pop(port, None)

    def _keep(self, changes: dict[Interface, int]) -> None:
        self._faster = {port: percent for port, percent in {**self._faster, **changes}.items() if percent}
