"""Probes of hosts to themselves on this kernel, by the uSIDs that switches have: over two tiers, three, and rails."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from mrc_testbed.hosts.common.bth import CLASS_CONTROL
from mrc_testbed.hosts.probe_socket import ProbeSocket
from mrc_testbed.hosts.self_probes import probe_payload, sequence_of
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of
from mrc_testbed.testbed.mapper.probing import ProbeRoute, probe_routes
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape
from tests.emu.conftest import isolated
from tests.emu.port_stage import options as options

FAMILIES = [Clos2(2, 2, 2), Clos3(pods=2, t0=2, t1=2, t2=4, hosts_per_t0=2), Rail(rails=2, nodes=2, spine=2)]


class Probing:
    """The probe sockets of all hosts of a fabric."""

    def __init__(self, family: Family, options: FabricOptions) -> None:
        plan = build_plan(Shape(2, family, 25_000_000, 20_000_000))
        self.fabric = Fabric.build(plan, options)
        self.routes = probe_routes(plan, SuspectTable(plan), owners=2)
        self.sockets: dict[str, ProbeSocket] = {}
        for host in plan.hosts:
            with network_of(self.fabric.pids[host.name], host.name):
                self.sockets[host.name] = ProbeSocket(host.address, CLASS_CONTROL, 0)

    def lost(self) -> list[ProbeRoute]:
        """Each host sends every probe once; those that do not come back."""
        for host, routes in self.routes.items():
            for number, route in enumerate(routes):
                self.sockets[host].send(route.address, probe_payload(number, number))
        time.sleep(0.5)
        return [
            route
            for host, routes in self.routes.items()
            for back in [set(self._back(host))]
            for number, route in enumerate(routes)
            if number not in back
        ]

    def _back(self, host: str) -> Iterable[int | None]:
        while (packet := self.sockets[host].receive(time.monotonic_ns())) is not None:
            payload, arrival_ns = packet
            assert 0 <= time.monotonic_ns() - arrival_ns < 1_000_000_000
            yield sequence_of(payload)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.word)
def test_every_probe_comes_back_over_its_own_links_and_no_others(family: Family, options: FabricOptions) -> None:
    def main() -> None:
        one = Probing(family, options)
        one.fabric.verify()
        before = one.fabric.port_counts()
        assert one.lost() == []
        wanted = {place: 0 for place in before}
        for routes in one.routes.values():
            for link in (one.fabric.plan.link_by_name[name] for route in routes for name in route.links):
                for end in link.ends:
                    wanted[end.node, end.name] += 1
        now = one.fabric.port_counts()
        assert {place: now[place].in_control - before[place].in_control for place in before} == wanted
        assert all(sockets.strangers == 0 and not sockets.lost for sockets in one.sockets.values())

    isolated(main)


def test_a_silent_t1_a_dead_port_and_a_lossy_link_lose_what_crosses_them(options: FabricOptions) -> None:
    def main() -> None:
        one = Probing(Clos2(2, 2, 2), options)
        one.fabric.prepare_faults(one.fabric.plan.node_names)
        rules = one.fabric.silence("p0-t1-1")
        assert {route.switches[-1] for route in one.lost()} == {"p0-t1-1"}
        for rule in rules:
            one.fabric.remove_rule(rule)
        link = one.fabric.plan.link_by_name["h1:p1-t0-0"]
        one.fabric.ports_down([link.far])
        assert {route.links[0] for route in one.lost()} == {link.name}
        one.fabric.ports_up([link.far])
        assert one.lost() == []

    isolated(main)
