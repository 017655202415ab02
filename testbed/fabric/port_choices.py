"""What the port program knows of the uplinks among which a T0 chooses packet by packet (bpf/adaptive.h)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator

from mrc_testbed.testbed.fabric.port_maps import CHOICE, SharedArray
from mrc_testbed.testbed.switching.adaptive import Looks
from mrc_testbed.topos.nodes import FIRST_IFINDEX, Interface
from mrc_testbed.topos.plan import Plan

_NS_BITS = 8 * 10**9
_BANDS = struct.Struct("3Q")
_BANDS_AT, _LIVE_AT = 8, 40
"""Of `band_ns` and `live` in a choice."""
_WORD = struct.Struct("Q")


class PortChoices:
    """The choices of all T0s in the program's memory. Without them switches hash."""

    def __init__(self, choices: SharedArray, plan: Plan, looks: Looks) -> None:
        """Let every T0 choose among its uplinks, all of which have carrier."""
        self._choices = choices
        self._levels = looks.levels
        self._uplinks: dict[Interface, Interface] = {}
        """Those of all T0s, each with the other end of its link."""
        for switch in plan.switches:
            if switch.tier == 0:
                self._add(plan.ports[switch.name], set(plan.host_by_name), plan.shape.port_rate_bps, looks.every_ns)

    def _add(
        self, ports: Iterable[tuple[Interface, Interface]], hosts: Collection[str], rate_bps: int, every_ns: int
    ) -> None:
        """The ports of one T0."""
        ends = {own: peer for own, peer in ports if peer.node not in hosts}
        if not ends:
            return
        first = min(own.ifindex for own in ends) - FIRST_IFINDEX
        for own, _ in ports:
            bands = _bands(self._levels, rate_bps)
            CHOICE.pack_into(self._choices.memory, self._at(own), first, len(ends), *bands, every_ns, own in ends, 0, 0)
        self._uplinks.update(ends)

    def _at(self, port: Interface) -> int:
        return self._choices.at(port.ifindex - FIRST_IFINDEX)

    def set_rate(self, port: Interface, rate_bps: int) -> None:
        """Keep the bands of a port in bytes, at another rate."""
        if port in self._uplinks:
            bands = _bands(self._levels, rate_bps)
            _BANDS.pack_into(self._choices.memory, self._at(port) + _BANDS_AT, *bands)

    def set_down(self, down: Collection[Interface]) -> None:
        """Leave out the uplinks whose own port, or the other end of its link, is one of those."""
        for own, peer in self._uplinks.items():
            live = own not in down and peer not in down
            _WORD.pack_into(self._choices.memory, self._at(own) + _LIVE_AT, live)


def _bands(levels: Iterable[int], rate_bps: int) -> Iterator[int]:
    """The upper ends of bands as times, since the program keeps its queue in ns."""
    return (level * _NS_BITS // rate_bps for level in levels)
