"""Adaptive routing in virtual time: switches choose the uplink of each data packet by how much waits there.

Control packets go by the hash, as they are few and their order tells something. A dead port of the switch's own is out
at once; what is beyond, it knows only with `far_links`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from random import Random

from mrc_testbed.testbed.switching.adaptive import Looks
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.virtual.packet import DATA_ROW, VirtualPacket
from mrc_testbed.testbed.virtual.port import Port
from mrc_testbed.testbed.virtual.ways import HashedWays, Topology, Toward, remember
from mrc_testbed.topos import names
from mrc_testbed.topos.plan import Plan


class AdaptiveWays(HashedWays):
    """As `HashedWays`, but of data each packet is chosen for by itself, and nothing of that is kept."""

    def __init__(
        self, plan: Plan, options: FabricOptions, topology: Topology, seed: int, looks: Looks, now: Callable[[], int]
    ) -> None:
        """`looks`: how switches see their queues; `now`: the time in ns."""
        super().__init__(plan, options, topology, seed)
        self._looks = looks
        self._now = now
        self._draw = Random(f"adaptive {seed}").random
        self._groups = [host.group for host in plan.hosts]
        self._seen: dict[Toward, tuple[int, list[int]]] = {}
        """When a T0 last looked at its uplinks, and those that were in the least band then."""
        self._ports: dict[tuple[int, int, int, int], Sequence[Port]] = {}
        """By the numbers of both hosts, plane and uplink."""

    def choose(self, packet: VirtualPacket) -> Sequence[Port]:
        """As of `Ways`; another answer for each packet of data."""
        if packet.row != DATA_ROW:
            return super().choose(packet)
        way = packet.way
        least = self._least((way.plane, self._groups[way.source], self._groups[way.destination]))
        if not least:
            return ()
        return self._over(way.source, way.destination, way.plane, least[int(self._draw() * len(least))])

    def _least(self, toward: Toward) -> list[int]:
        """The uplinks in the least band, as the switch saw them last."""
        now_ns = self._now()
        seen = self._seen.get(toward)
        if seen is None or now_ns - seen[0] >= self._looks.every_ns:
            seen = self._seen[toward] = now_ns, self._look(toward)
        return seen[1]

    def _look(self, toward: Toward) -> list[int]:
        uplinks = self._topology.uplinks(names.switch_name(toward[0], 0, toward[1]))
        levels = self._looks.levels
        bands = {
            number: bisect_left(levels, port.backlog_bytes())
            for number, port in enumerate(uplinks)
            if port.live and self._leads_on(toward, number)
        }
        least = min(bands.values(), default=0)
        return [number for number, band in bands.items() if band == least]

    def _leads_on(self, toward: Toward, uplink: int) -> bool:
        """As of `HashedWays`; known with `far_links`."""
        return not self._options.far_links or self._topology.downlink(toward[0], uplink, toward[2]).live

    def _over(self, source: int, destination: int, plane: int, uplink: int) -> Sequence[Port]:
        key = source, destination, plane, uplink
        ports = self._ports.get(key)
        if ports is None:
            hosts = self._plan.hosts
            ports = remember(self._ports, key, self._topology.between(hosts[source], hosts[destination], plane, uplink))
        return ports

    def ports_changed(self) -> None:
        """Every T0 looks at its uplinks again."""
        super().ports_changed()
        self._seen.clear()
