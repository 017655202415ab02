"""Adaptive routing in virtual time: switches choose the port of each data packet by how much waits there.

Control packets go by the hash, as they are few and their order tells something. A dead port of the switch's own is out
at once; what is beyond, it knows only with `far_links`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from random import Random

from mrc_testbed.testbed.switching.adaptive import Looks
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.virtual.packet import DATA_ROW, VirtualPacket
from mrc_testbed.testbed.virtual.port import Port
from mrc_testbed.testbed.virtual.ways import HashedWays, PortTo, Topology, Toward, remember
from mrc_testbed.topos.plan import Plan

Chosen = tuple[Port, Port, int, int]
"""The port that a packet left by last, the one that it leaves by now, and the numbers of both hosts."""


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
        self._levels: dict[Port, tuple[int, ...]] = {}
        self._seen: dict[Toward, tuple[int, list[PortTo]]] = {}
        """When a switch last looked at its ports, and those that were in the least band then."""
        self._ports: dict[Chosen, tuple[Port, ...]] = {}

    def choose(self, packet: VirtualPacket) -> tuple[Port, ...]:
        """As of `Ways`; another answer for each packet of data."""
        if packet.row != DATA_ROW:
            return super().choose(packet)
        switch = packet.ports[-1].peer.interface.node
        least = self._least((switch, self._groups[packet.way.destination]))
        return self._over(packet, switch, least[int(self._draw() * len(least))]) if least else ()

    def _least(self, toward: Toward) -> list[PortTo]:
        """The ports in the least band, as the switch saw them last."""
        now_ns = self._now()
        seen = self._seen.get(toward)
        if seen is None or now_ns - seen[0] >= self._looks.every_ns:
            seen = self._seen[toward] = now_ns, self._look(toward)
        return seen[1]

    def _look(self, toward: Toward) -> list[PortTo]:
        bands = [
            (bisect_left(self._levels_of(hop.port), hop.port.backlog_bytes()), hop)
            for hop in self._topology.hops(toward)
            if hop.port.live and self._leads_on(hop.switch, toward[1])
        ]
        least = min((band for band, _ in bands), default=0)
        return [hop for band, hop in bands if band == least]

    def _levels_of(self, port: Port) -> tuple[int, ...]:
        """Those of a port's planned rate, which it keeps in bytes if a fault slows it down."""
        levels = self._levels.get(port)
        if levels is None:
            rates = self._plan.rates_bps[port.interface], self._plan.shape.port_rate_bps
            levels = self._levels[port] = self._looks.levels_at(*rates)
        return levels

    def _leads_on(self, switch: str, group: int) -> bool:
        """As of `HashedWays`; known with `far_links`."""
        if not self._options.far_links:
            return True
        place = self._plan.switch_by_name[switch].place
        if place == (0, group):
            return True
        return any(hop.port.live and self._leads_on(hop.switch, group) for hop in self._topology.hops((switch, group)))

    def _over(self, packet: VirtualPacket, switch: str, hop: PortTo) -> tuple[Port, ...]:
        last, way = packet.ports[-1], packet.way
        key = last, hop.port, way.source, way.destination
        ports = self._ports.get(key)
        if ports is None:
            onward = self._topology.onward(switch, self._plan.hosts[way.destination], hop)
            ports = remember(self._ports, key, (*packet.ports, *onward))
        return ports

    def ports_changed(self) -> None:
        """Every switch looks at its ports again."""
        super().ports_changed()
        self._seen.clear()
