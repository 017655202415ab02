"""What the port program knows of the ports among which a switch chooses packet by packet (bpf/adaptive.h)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence

from mrc_testbed.testbed.fabric.port_maps import CHOICE, SharedArray
from mrc_testbed.testbed.switching.adaptive import Looks, ports_to_choose
from mrc_testbed.topos.nodes import FIRST_IFINDEX, Interface
from mrc_testbed.topos.plan import Plan

_NS_BITS = 8 * 10**9
_BANDS = struct.Struct("3Q")
_BANDS_AT, _LIVE_AT = 16, 48
"""Of `band_ns` and `live` in a choice."""
_WORD = struct.Struct("Q")


class PortChoices:
    """The choices of all switches that have any, in the program's memory. Without them switches hash."""

    def __init__(self, choices: SharedArray, plan: Plan, looks: Looks) -> None:
        """Let every switch choose among its next ports; all of them have carrier."""
        self._choices = choices
        self._plan = plan
        self._looks = looks
        self._chosen: dict[Interface, Interface] = {}
        """The ports to choose from of all switches, each with the other end of its link."""
        for switch in plan.switches:
            if ports := ports_to_choose(plan, switch):
                self._add(switch.name, ports)

    def _add(self, switch: str, among: Sequence[Interface]) -> None:
        """The ports of one switch. Those `among` which it chooses are told one after the other, in their order."""
        following = dict(zip(among, (*among[1:], among[0]), strict=True))
        first = _key(among[0])
        for own, peer in self._plan.ports[switch]:
            at, next_key = self._choices.at(_key(own)), _key(following.get(own, own))
            bands = self._bands(own, self._plan.rates_bps[own])
            numbers = first, len(among), next_key, 0
            CHOICE.pack_into(self._choices.memory, at, *numbers, *bands, self._looks.every_ns, own in following, 0, 0)
            if own in following:
                self._chosen[own] = peer

    def _bands(self, port: Interface, rate_bps: int) -> Iterator[int]:
        """Upper ends of the bands of a port that has this rate now, as times, since the program keeps its queue in
        ns."""
        levels = self._looks.levels_at(self._plan.rates_bps[port], self._plan.shape.port_rate_bps)
        return (level * _NS_BITS // rate_bps for level in levels)

    def set_rate(self, port: Interface, rate_bps: int) -> None:
        """Keep the bands of a port in bytes, at another rate."""
        if port in self._chosen:
            _BANDS.pack_into(
                self._choices.memory, self._choices.at(_key(port)) + _BANDS_AT, *self._bands(port, rate_bps)
            )

    def set_down(self, down: Collection[Interface]) -> None:
        """Leave out the ports that are among those, or lead to one of them."""
        for own, peer in self._chosen.items():
            live = own not in down and peer not in down
            _WORD.pack_into(self._choices.memory, self._choices.at(_key(own)) + _LIVE_AT, live)


def _key(port: Interface) -> int:
    """Of a port in the program's maps."""
    return port.ifindex - FIRST_IFINDEX
