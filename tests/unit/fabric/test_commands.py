from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import pytest

from mrc_testbed.testbed.fabric import commands
from mrc_testbed.testbed.switching.options import FabricOptions, bdp_bytes, queue_bytes
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import WIRE_BYTES

Delay = Literal["netem", "endpoint", "nfqueue", "none"]
ENDPOINT = FabricOptions("ifb", "endpoint")
NETEM = FabricOptions("dummy", "netem")
RTT_NS = 20_000_000
ONE = build_plan(clos2_shape(planes=1, t0_groups=1, t1=0, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=RTT_NS))
"""Two hosts on one switch."""
STANDARD = build_plan(clos2_shape(4, 2, 4, 4, 25_000_000, 20_000_000))
ECMP = build_plan(clos2_shape(2, 2, 2, 1, 25_000_000, RTT_NS), Routing.ECMP_STATIC)


def queues(node: str, options: FabricOptions) -> list[str]:
    return list(commands.queue_lines(STANDARD, node, options))


def test_the_cables_of_two_hosts_on_one_switch() -> None:
    pids = {"h0": 10, "h1": 11, "p0-t0-0": 12}
    assert list(commands.link_lines(ONE, pids)) == [
        "link add name port0 index 1000 address 02:00:00:00:03:e8 mtu 9000 netns 10"
        " type veth peer name down0 index 1001 address 02:00:00:00:03:e9 mtu 9000 netns 12",
        "link add name port0 index 1002 address 02:00:00:00:03:ea mtu 9000 netns 11"
        " type veth peer name down1 index 1003 address 02:00:00:00:03:eb mtu 9000 netns 12",
    ]


def test_a_host_of_two_on_one_switch() -> None:
    assert list(commands.node_lines(ONE, "h0", ENDPOINT)) == [
        "link set dev lo up",
        "link add name sid0 type ifb",
        "link set dev sid0 up",
        "addr add fd00::1:0:0:1/128 dev lo",
        "sr tunsrc set fd00::1:0:0:1",
        "link set dev port0 up",
        "neigh replace fe80::3e9 lladdr 02:00:00:00:03:e9 nud permanent dev port0",
        "route add local fd00::/64 dev lo",
        "route add fcbb:bb00:1000::/48 via fe80::3e9 dev port0",
        "route add fcbb:bb00:d000::/48 encap seg6local action End.DT6 table 255 count dev sid0",
        "route add fd00::1:1:0:0:1/128 encap seg6 mode encap.red segs fcbb:bb00:1000:d001:: dev sid0",
        "route add fd00:0:0:1::/128 encap seg6 mode encap.red segs fcbb:bb00:1000:d001:: dev sid0",
    ]


def test_the_switch_between_two_hosts_has_neither_address_nor_encapsulation() -> None:
    assert list(commands.node_lines(ONE, "p0-t0-0", NETEM)) == [
        "link set dev lo up",
        "link add name sid0 type dummy",
        "link set dev sid0 up",
        "link set dev down0 up",
        "neigh replace fe80::3e8 lladdr 02:00:00:00:03:e8 nud permanent dev down0",
        "link set dev down1 up",
        "neigh replace fe80::3ea lladdr 02:00:00:00:03:ea nud permanent dev down1",
        "route add fcbb:bb00:1000::/48 encap seg6local action End count flavors next-csid lblen 32 nflen 16 dev sid0",
        "route add fcbb:bb00:d000::/48 via fe80::3e8 dev down0",
        "route add fcbb:bb00:d001::/48 via fe80::3ea dev down1",
    ]


def test_the_shaper_of_a_port() -> None:
    tail = "ceil 25000000bit burst 8476 cburst 8476 quantum 8476"
    assert list(commands.queue_lines(ONE, "h0", ENDPOINT)) == [
        "qdisc add dev port0 root handle 1: htb default 20",
        f"class add dev port0 parent 1: classid 1:1 htb rate 25000000bit {tail}",
        f"class add dev port0 parent 1:1 classid 1:10 htb rate 23750000bit prio 0 {tail}",
        f"class add dev port0 parent 1:1 classid 1:20 htb rate 1250000bit prio 1 {tail}",
        "filter add dev port0 parent 1: protocol ipv6 prio 1 u32 match u16 0x0b80 0x0fc0 at 0 classid 1:10",
        "qdisc add dev port0 parent 1:10 handle 10: bfifo limit 17358848",
        "qdisc add dev port0 parent 1:20 handle 20: bfifo limit 17358848",
    ]


@pytest.mark.parametrize(
    ("rate_bps", "burst"), [(1_000_000, 2 * WIRE_BYTES), (25_000_000, 2 * WIRE_BYTES), (10**9, 125_000)]
)
def test_a_burst_is_two_packets_or_a_millisecond(rate_bps: int, burst: int) -> None:
    plan = build_plan(clos2_shape(1, 1, 0, 2, rate_bps, RTT_NS))
    classes = [line for line in commands.queue_lines(plan, "p0-t0-0", ENDPOINT) if line.startswith("class")]
    assert len(classes) == 6
    assert all(f" burst {burst} cburst {burst} " in line for line in classes)


def test_the_two_classes_together_have_the_whole_rate() -> None:
    plan = build_plan(clos2_shape(1, 1, 0, 2, 33_333_333, RTT_NS))
    rates = [
        int(line.split(" rate ")[1].split("bit")[0])
        for line in commands.queue_lines(plan, "h0", ENDPOINT)
        if line.startswith("class")
    ]
    assert rates[1] + rates[2] == rates[0] == 33_333_333


def test_netem_is_the_leaf_of_host_ports_only() -> None:
    host = [line for line in queues("h0", NETEM) if "netem" in line]
    assert host == [
        f"qdisc add dev port{plane} parent 1:{major} handle {major}: netem delay 10000us limit 4096"
        for plane in range(4)
        for major in (10, 20)
    ]
    assert not any("bfifo" in line for line in queues("h0", NETEM))
    for switch in ("p0-t0-0", "p3-t1-3"):
        assert not any("netem" in line for line in queues(switch, NETEM))


@pytest.mark.parametrize("delay", ["endpoint", "nfqueue", "none"])
def test_without_netem_no_leaf_delays(delay: Delay) -> None:
    assert not any("netem" in line for line in queues("h0", FabricOptions("dummy", delay)))


def test_switch_queues_are_bounded_by_the_delay_bandwidth_product() -> None:
    shape = STANDARD.shape
    assert bdp_bytes(shape, shape.port_rate_bps) == 62_500
    leaves = [line for line in queues("p0-t1-0", NETEM) if "bfifo" in line]
    assert leaves[:2] == [
        "qdisc add dev down0 parent 1:10 handle 10: bfifo limit 135616",
        "qdisc add dev down0 parent 1:20 handle 20: bfifo limit 187500",
    ]
    assert len(leaves) == 4
    assert queue_bytes(shape, shape.port_rate_bps, 3) == 3 * 62_500
    assert queue_bytes(shape, shape.port_rate_bps, 1) == 32 * WIRE_BYTES


@pytest.mark.parametrize(
    ("delay", "expected"), [("netem", 10_000_000), ("endpoint", 10_000_000), ("nfqueue", 10_000_000), ("none", 0)]
)
def test_a_packet_is_delayed_once_each_way(delay: Delay, expected: int) -> None:
    assert FabricOptions("dummy", delay).one_way_delay_ns(STANDARD.shape) == expected


def test_a_port_of_a_t1_comes_back_with_what_hangs_on_it() -> None:
    link = STANDARD.link_by_name["p0-t0-0:p0-t1-2"]
    assert list(commands.port_lines(STANDARD, link.far.node, [link.far], [])) == [
        "link set dev down0 up",
        f"neigh replace {link.near.link_local} lladdr {link.near.mac} nud permanent dev down0",
        f"route add fcbb:bb00:1000::/48 via {link.near.link_local} dev down0",
    ]


def test_a_port_of_a_t0_towards_a_host_comes_back_with_what_hangs_on_it() -> None:
    link = STANDARD.link_by_name["h5:p1-t0-1"]
    assert link.far.name == "down1"
    assert list(commands.port_lines(STANDARD, "p1-t0-1", [link.far], [])) == [
        "link set dev down1 up",
        f"neigh replace {link.near.link_local} lladdr {link.near.mac} nud permanent dev down1",
        f"route add fcbb:bb00:d101::/48 via {link.near.link_local} dev down1",
    ]


@pytest.mark.parametrize("node", ["h3", "p0-t0-0", "p2-t1-1"])
def test_the_lines_of_all_ports_and_sid0_are_all_lines_of_a_node(node: str) -> None:
    """So a port's lines are exactly what the kernel drops with the port: nothing is written twice or forgotten."""
    whole = list(commands.node_lines(STANDARD, node, NETEM))
    restored = [line for own, _ in STANDARD.ports[node] for line in commands.port_lines(STANDARD, node, [own], [])]
    assert len(restored) == len(set(restored))
    left = set(whole) - set(restored)
    assert set(restored) < set(whole)
    assert all(" dev sid0" in line or " dev lo" in line or "sid0 type" in line or "tunsrc" in line for line in left)


def test_a_switch_is_wiped_to_nothing_and_written_again() -> None:
    assert list(commands.switch_wipe_lines(STANDARD, "p1-t1-3")) == [
        "link set dev down0 down",
        "link set dev down1 down",
        "route del fcbb:bb00:2103::/48 dev sid0",
    ]
    built = list(commands.node_lines(STANDARD, "p1-t1-3", NETEM))
    ports = [own for own, _ in STANDARD.ports["p1-t1-3"]]
    assert list(commands.switch_table_lines(STANDARD, "p1-t1-3", ports)) == built[3:]
    assert built[2] == "link set dev sid0 up"


def test_a_switch_boots_without_the_ports_that_are_held_down() -> None:
    ports = [own for own, _ in STANDARD.ports["p1-t1-3"]]
    lines = list(commands.switch_table_lines(STANDARD, "p1-t1-3", ports[1:]))
    assert len(lines) == 4
    assert not any("down0" in line for line in lines)
    later = list(commands.port_lines(STANDARD, "p1-t1-3", ports[:1], []))
    assert sorted([*lines, *later]) == sorted(commands.switch_table_lines(STANDARD, "p1-t1-3", ports))


def test_some_lines_of_the_standard_fabric() -> None:
    host = list(commands.node_lines(STANDARD, "h0", ENDPOINT))
    assert (
        "route add fd00::7:0:2:0:2/128 encap seg6 mode encap.red segs fcbb:bb00:1200:2202:1201:d203:: dev sid0" in host
    )
    assert sum(line.startswith("link set dev port") for line in host) == 4
    t0 = list(commands.node_lines(STANDARD, "p2-t0-1", ENDPOINT))
    assert any(line.startswith("route add fcbb:bb00:2202::/48 via fe80::") and line.endswith("dev up2") for line in t0)
    assert not any("encap seg6 " in line for line in t0)


def test_a_plain_host_has_an_address_and_a_route_a_plane_and_no_encapsulation() -> None:
    assert list(commands.node_lines(ECMP, "h1", NETEM)) == [
        "link set dev lo up",
        "addr add fd00:1:0:1::1/128 dev lo nodad",
        "addr add fd00:1:1:1::1/128 dev lo nodad",
        "link set dev port0 up",
        "neigh replace fe80::3eb lladdr 02:00:00:00:03:eb nud permanent dev port0",
        "link set dev port1 up",
        "neigh replace fe80::3f7 lladdr 02:00:00:00:03:f7 nud permanent dev port1",
        "route add fd00:1::/48 via fe80::3eb dev port0 src fd00:1:0:1::1",
        "route add fd00:1:1::/48 via fe80::3f7 dev port1 src fd00:1:1:1::1",
    ]


def routes(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line.startswith("route ")]


T0_ROUTES = [
    "route add fd00:1:1:1::1/128 via fe80::3f6 dev down0",
    "route add blackhole fd00:1:1:1::/64 dev lo",
    "route replace fd00:1:1::/48 nexthop via fe80::3fd dev up0 nexthop via fe80::3ff dev up1",
]


def test_a_t0_chooses_among_its_t1s_and_a_t1_has_one_route_a_group() -> None:
    assert routes(commands.node_lines(ECMP, "p1-t0-1", NETEM)) == T0_ROUTES
    assert routes(commands.node_lines(ECMP, "p1-t1-0", NETEM)) == [
        "route add fd00:1:1::/64 via fe80::3f8 dev down0",
        "route add fd00:1:1:1::/64 via fe80::3fc dev down1",
    ]


def test_a_next_hop_comes_back_beside_those_that_are_up_and_without_those_that_stay_down() -> None:
    up = {own.name: own for own, _ in ECMP.ports["p1-t0-1"]}
    assert routes(commands.port_lines(ECMP, "p1-t0-1", [up["up0"]], [])) == T0_ROUTES[2:]
    alone = "route replace fd00:1:1::/48 nexthop via fe80::3fd dev up0"
    assert routes(commands.port_lines(ECMP, "p1-t0-1", [up["up0"]], [up["up1"]])) == [alone]
    assert routes(commands.switch_table_lines(ECMP, "p1-t0-1", [up["up0"]])) == [T0_ROUTES[1], alone]
    assert routes(commands.switch_table_lines(ECMP, "p1-t0-1", up.values())) == T0_ROUTES
    assert list(commands.switch_wipe_lines(ECMP, "p1-t0-1"))[-1] == "route del blackhole fd00:1:1:1::/64 dev lo"


def test_ports_of_plain_hosts_hand_over_single_segments() -> None:
    lines = list(commands.link_lines(ECMP, dict.fromkeys(ECMP.node_names, 1)))
    assert sum("gso_max_segs 1" in line for line in lines) == sum(link.is_host_link for link in ECMP.links)
