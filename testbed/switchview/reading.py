"""What is known of one switch at a moment, whichever world and source it comes from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mrc_testbed.testbed.switching.classes import TrimRules
from mrc_testbed.testbed.switching.port_counts import SidCounts
from mrc_testbed.topos import usid
from mrc_testbed.topos.plan import Plan


@dataclass(frozen=True, slots=True)
class PortReading:
    """One port: its name, the node at the other end, and counts by their names in counters.json and samples.csv. A
    count that nobody knows is left out."""

    name: str
    peer: str
    counts: Mapping[str, int]

    def sum(self, *names: str) -> int | None:
        """Of these counts; None if one of them is not known."""
        found = [self.counts.get(name) for name in names]
        known = [count for count in found if count is not None]
        return sum(known) if len(known) == len(found) else None


@dataclass(frozen=True, slots=True)
class SwitchReading:
    """One switch. `sid`: its own uSID as a prefix; None where packets list no switches.

    `sids`: by uSID what it has taken; `no_sid`: packets for whose destination there was neither a uSID nor a route.
    None: not known.
    """

    switch: str
    ports: tuple[PortReading, ...]
    sid: str | None
    trimming: TrimRules | None
    sids: Mapping[str, SidCounts] | None = None
    no_sid: int | None = None


def sid_prefix(plan: Plan, switch: str) -> str | None:
    """The uSID of a switch as a prefix; None where packets list no switches."""
    return usid.locator(plan.switch_by_name[switch].usid) if plan.by_usid else None


def plain_shaper_counts(drops: int, of_control: int) -> dict[str, int]:
    """Counts of a port without the port program, which neither trims nor drops before the queues."""
    before = dict.fromkeys(("out_dropped", "out_other_dropped", "out_trimmed"), 0)
    return {**before, "queue_drops_high": of_control, "queue_drops_data": drops - of_control}
