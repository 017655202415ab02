"""The virtual network: times of single packets and trains, ways, counts."""

from __future__ import annotations

import tracemalloc

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.virtual import nic
from mrc_testbed.topos.routes import Routing
from tests.port_cases import SMALL
from tests.unit.virtual.virtual_stage import Got, Stage

NS_PER_BYTE = 320
"""At 25 Mb/s."""
DATA = bytes([bth.WRITE_MIDDLE]) + bytes(999)
PACKET_NS = (1000 + 102) * NS_PER_BYTE
"""What a packet of DATA takes on each wire: a switch is no slower than a NIC, or line rate would build a queue."""


@pytest.mark.parametrize(("destination", "switches"), [("h2", 3), ("h1", 1)])
def test_a_packet_is_stored_and_forwarded_by_every_switch(destination: str, switches: int) -> None:
    stage = Stage()
    stage.send(DATA, "h0", destination)
    stage.run()
    (got,) = stage.got[destination]
    assert got == ((1 + switches) * PACKET_NS, DATA, 0, 0, stage.plan.hosts[0].udp_port, wire.CLASS_TRIMMABLE)


def test_a_train_arrives_as_fast_as_its_slowest_link() -> None:
    stage = Stage()
    for _ in range(10):
        stage.send(DATA)
    stage.run()
    times = [got.at_ns for got in stage.got["h2"]]
    assert times == [(4 + number) * PACKET_NS for number in range(10)]


@pytest.mark.parametrize("number", range(SMALL.family.tiers[1]))
def test_every_path_goes_over_its_own_links(number: int) -> None:
    stage = Stage()
    hosts = stage.plan.host_by_name
    path = stage.plan.paths(hosts["h0"], hosts["h3"])[number]
    stage.send(DATA, "h0", "h3", number)
    stage.run()
    assert [got.flow_label for got in stage.got["h3"]] == [path.id.flow_label]
    links = [stage.plan.link_by_name[name] for name in stage.plan.links_on_path(hosts["h0"], hosts["h3"], path.id)]
    used = {row[:2] for row in stage.fabric.sample_ports() if row[3] + row[6]}
    assert used == {(end.node, end.name) for link in links for end in link.ends}
    assert not stage.ledger().unexplained


def test_memory_does_not_grow_with_the_run() -> None:
    """Of 20 times as many packets nothing is left."""
    stage = Stage()
    taken: list[int] = []
    host = stage.fabric.attach("h2", lambda *packet: None, lambda plane, up: None)

    def burst() -> None:
        for number in range(50):
            stage.nics["h0"].send(DATA, stage.to("h0", "h2", number % SMALL.family.tiers[1]), wire.CLASS_TRIMMABLE)
            host.send(DATA[:52], stage.to("h2", "h0", number % SMALL.family.tiers[1]), bth.CLASS_CONTROL)
        stage.run()
        stage.got["h0"].clear()
        taken.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        for _ in range(42):
            burst()
    finally:
        tracemalloc.stop()
    assert taken[-1] - taken[1] < 10_000


@pytest.mark.parametrize("routing", [Routing.SRV6, Routing.ECMP_STATIC])
def test_a_host_that_forgets_its_ways_sends_as_before(routing: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    def arrived() -> list[Got]:
        stage = Stage(routing=routing)
        plain = routing is Routing.ECMP_STATIC
        ways = [
            stage.plain_to("h0", "h2", up) if plain else stage.to("h0", "h2", up) for up in range(SMALL.family.tiers[1])
        ]
        for _ in range(3):
            for way in (*ways, *reversed(ways)):
                stage.give("h0", DATA, way, wire.CLASS_TRIMMABLE)
        stage.run()
        assert not stage.ledger().unexplained
        return stage.got["h2"]

    as_usual = arrived()
    monkeypatch.setattr(nic, "KNOWN_WAYS", 1)
    assert arrived() == as_usual


def test_a_flow_has_one_way_however_often_it_is_asked_for() -> None:
    stage = Stage(routing=Routing.ECMP_STATIC)
    ways, host = stage.fabric._ways, stage.plan.host_by_name["h0"]
    assert ways.way(host, stage.plain_to("h0", "h2", 1)) is ways.way(host, stage.plain_to("h0", "h2", 1))
