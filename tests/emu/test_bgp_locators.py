"""uSIDs by BGP on the real kernel: a lost link leaves a path dead, or a detour over two more switches revives it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv6Address
from typing import Literal

import pytest

from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.topos.nodes import Path
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Carries, Routing
from tests.emu.conftest import isolated
from tests.emu.port_stage import options as options
from tests.emu.test_bgp import FAR, SHAPE
from tests.emu.test_bgp import frr as frr

_IPV6 = 0x86DD
_HOP_LIMIT = 14 + 7
_INNER_DESTINATION = slice(14 + 40 + 24, 14 + 40 + 40)
BROKEN_UPLINK = 1


def with_usids(
    body: Callable[[Fabric], None],
    options: FabricOptions,
    carries: Carries = Carries.LOCATORS,
    t1_as: Literal["one", "each"] = "one",
) -> None:
    asked = replace(options, bgp=BgpOptions(t1_as=t1_as))

    def main() -> None:
        fabric = Fabric.build(build_plan(SHAPE, Routing.BGP, by_usid=True, carries=carries), asked)
        fabric.converge()
        fabric.verify()
        fabric.prepare_faults(fabric.plan.node_names)
        body(fabric)

    isolated(main)


def path_over(fabric: Fabric, uplink: int) -> Path:
    hosts = fabric.plan.host_by_name
    return next(path for path in fabric.plan.paths(hosts["h0"], hosts["h2"]) if path.id.uplink == uplink)


def hop_limit(fabric: Fabric, path: Path) -> int | None:
    """Of the outer header of a ping on a path, as it comes to h2; None if no answer is back after 0.3 s."""
    with network_of(fabric.pids["h2"], "h2"):
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_IPV6))
    with tap:
        tap.bind(("port0", _IPV6))
        tap.setblocking(False)
        if ", 0% packet loss" not in fabric.node("h0").cmd(f"ping -c1 -W0.3 -q {path.inner}"):
            return None
        while True:
            frame = tap.recv(2048)
            if frame[_INNER_DESTINATION] == IPv6Address(path.inner).packed:
                return frame[_HOP_LIMIT]


def until_back(fabric: Fabric, path: Path) -> int:
    deadline = time.monotonic() + 5
    while (left := hop_limit(fabric, path)) is None:
        assert time.monotonic() < deadline, f"no packet comes over {path.outer}"
    return left


@pytest.mark.nightly
def test_with_a_system_each_a_detour_takes_two_hops_more(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        broken, whole = (path_over(fabric, uplink) for uplink in (BROKEN_UPLINK, 0))
        usual = until_back(fabric, broken)
        assert hop_limit(fabric, whole) == usual
        port = fabric.plan.link_by_name[FAR].far
        fabric.ports_down([port])
        assert until_back(fabric, broken) == usual - 2
        assert hop_limit(fabric, whole) == usual
        fabric.verify()
        fabric.ports_up([port])
        fabric.converge()
        fabric.verify()
        assert hop_limit(fabric, broken) == usual

    with_usids(body, options, t1_as="each")


@pytest.mark.nightly
def test_with_one_system_for_all_t1_the_path_stays_dead(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        broken, whole = (path_over(fabric, uplink) for uplink in (BROKEN_UPLINK, 0))
        usual = until_back(fabric, broken)
        port = fabric.plan.link_by_name[FAR].far
        fabric.ports_down([port])
        fabric.verify()
        assert [hop_limit(fabric, broken) for _ in range(4)] == [None] * 4
        assert hop_limit(fabric, whole) == usual
        fabric.ports_up([port])
        fabric.converge()
        fabric.verify()
        assert hop_limit(fabric, broken) == usual

    with_usids(body, options)


@pytest.mark.nightly
def test_beside_static_usids_plain_addresses_answer(options: FabricOptions) -> None:
    """And a switch that reboots has both again."""

    def body(fabric: Fabric) -> None:
        plain = dict(fabric.plan.host_ports(fabric.plan.host_by_name["h2"]))[0]
        assert until_back(fabric, path_over(fabric, BROKEN_UPLINK))
        assert ", 0% packet loss" in fabric.node("h0").cmd(f"ping -c3 -i0.2 -W1 -q {plain}")
        assert fabric.switch_off("p0-t1-1") == 0
        assert hop_limit(fabric, path_over(fabric, BROKEN_UPLINK)) is None
        fabric.switch_on("p0-t1-1", [own for own, _ in fabric.plan.ports["p0-t1-1"]])
        fabric.converge()
        fabric.verify()
        assert until_back(fabric, path_over(fabric, BROKEN_UPLINK))

    with_usids(body, options, Carries.HOSTS)
