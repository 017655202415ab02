"""The virtual network beside the kernel's: the same frames on every link, the same uplink for every flow."""

from __future__ import annotations

import socket
from collections import Counter

import pytest

from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.tap import Tap
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.ring import packets_of
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from tests.emu.plain_traffic import ROCE, WRITE_ONLY, address, flow, flows, opened, with_ecmp
from tests.emu.port_stage import options as options
from tests.emu.port_stage import run
from tests.emu.runs import wait_for
from tests.emu.traffic import Sink, Source
from tests.port_cases import CORE_LINK, LAST_LINK, mrc_packet, rc_packet

LINKS = ("h0:p0-t0-0", CORE_LINK, "p0-t0-1:p0-t1-0", LAST_LINK)
FLOWS = 64
LABELS = range(1, 33)


def twin(fabric: Fabric) -> tuple[VirtualFabric, Scheduler]:
    scheduler = Scheduler()
    return VirtualFabric(fabric.plan, fabric.options, scheduler, seed=0), scheduler


def nobody(*_: object) -> None:
    """Takes what a host is told."""


def taken(tap: Tap) -> list[bytes]:
    """The frames that a tap of the kernel has seen, once there are some."""
    found: list[bytes] = []

    def look() -> bool:
        found.extend(bytes(packet.frame) for block in tap.blocks() for packet in packets_of(block))
        return bool(found)

    wait_for(look, "a frame", 2)
    return found


def test_frames_are_those_of_the_kernel_on_every_link(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        Sink(fabric, "h2")
        virtual, scheduler = twin(fabric)
        taps = [(fabric.tap(link, 9000), virtual.tap(link, 9000, 0, nobody)) for link in LINKS]
        for pair in taps:
            for tap in pair:
                tap.listen()
        source, nic = Source(fabric, "h0", "h2"), virtual.attach("h0", nobody, nobody)
        source.send(mrc_packet(7))
        nic.send(mrc_packet(7), source.address, 18)
        scheduler.run_until(lambda: scheduler.next_ns is None, 10**9)
        for kernel, computed in taps:
            computed.mute()
            (block,) = computed.blocks()
            assert taken(kernel) == [bytes(packet.frame) for packet in packets_of(block)]

    run(body, options)


@pytest.mark.parametrize("ecmp_hash", ["polarised", "independent"])
def test_every_flow_takes_the_uplink_that_it_takes_on_the_kernel(ecmp_hash: str, options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        virtual, _ = twin(fabric)
        asked = [*flows(fabric, "h0", "h2", FLOWS, 1), *flows(fabric, "h3", "h1", FLOWS)]
        asked = [*asked, *(one._replace(protocol="tcp", destination_port=40000) for one in asked)]
        assert virtual.predicted_uplinks(asked) == fabric.predicted_uplinks(asked)
        fabric.prepare_faults(fabric.plan.node_names)
        ends = [fabric.plan.link_by_name["p1-t0-0:p1-t1-1"].far, fabric.plan.link_by_name["p0-t0-1:p0-t1-2"].near]
        for world in (fabric, virtual):
            world.ports_down(ends)
        wait_for(lambda: virtual.predicted_uplinks(asked) == fabric.predicted_uplinks(asked), "the same uplinks", 2)
        assert 1 not in virtual.predicted_uplinks(asked[:FLOWS])

    with_ecmp(body, options, hash_seed=7, ecmp_hash=ecmp_hash)


def test_where_port_numbers_alone_are_hashed_planes_and_hosts_are_alike_in_both_worlds(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        virtual, scheduler = twin(fabric)
        nic = virtual.attach("h0", nobody, nobody)
        fabric.verify()
        for port in range(50000, 50016):
            ways = set()
            for plane in range(fabric.plan.shape.planes):
                one, target = flow(fabric, "h0", "h2", port, plane), (address(fabric, "h2", plane), ROCE, 0, 0)
                before = arrived(fabric, plane)
                with opened(fabric, one) as sender:
                    sender.sendto(rc_packet(WRITE_ONLY, 1), target)
                    wait_for(lambda: arrived(fabric, plane) != before, "a packet", 2)  # noqa: B023
                nic.send(rc_packet(WRITE_ONLY, 1), (port, target), 0)
                scheduler.run_until(lambda: scheduler.next_ns is None, 10**12)
                assert arrived(virtual, plane) == arrived(fabric, plane), port
                ways.add(tuple(arrived(fabric, plane) - before))
            assert len(ways) == 1, "the same T1 in every plane"

    with_ecmp(body, options, hash_seed=7, hash_ports=True)


def test_with_repath_a_flow_label_has_the_uplink_that_it_has_on_the_kernel(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        virtual, scheduler = twin(fabric)
        nic = virtual.attach("h0", nobody, nobody)
        one = flow(fabric, "h0", "h2", 50000)
        with opened(fabric, one) as sender:
            sender.setsockopt(socket.IPPROTO_IPV6, 33, 1)  # IPV6_FLOWINFO_SEND
            sender.setsockopt(socket.IPPROTO_IPV6, 70, 0)  # IPV6_AUTOFLOWLABEL
            for label in LABELS:
                target = (address(fabric, "h2"), ROCE, label, 0)
                before = arrived(fabric)
                sender.sendto(rc_packet(WRITE_ONLY, label), target)
                wait_for(lambda before=before: arrived(fabric) != before, "a packet", 2)  # type: ignore[misc]
                nic.send(rc_packet(WRITE_ONLY, label), (50000, target), 0)
                scheduler.run_until(lambda: scheduler.next_ns is None, 10**12)
                assert arrived(virtual) == arrived(fabric), label

    with_ecmp(body, options, hash_seed=7, repath=True)


def arrived(world: Fabric | VirtualFabric, plane: int = 0) -> Counter[int]:
    """Packets that came to each T1 of a plane from group 0."""
    counts = world.port_counts()
    t1s = [switch.name for switch in world.plan.switches if switch.tier and switch.plane == plane]
    return Counter({number: counts[name, "down0"].in_data for number, name in enumerate(t1s)})
