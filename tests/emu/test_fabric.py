"""The fabric on this kernel: it equals the plan, carries packets over every path, heals exactly, and drift is seen."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.batch import IP, run_batch
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.footprint import footprint
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.shape import Shape
from tests.emu.conftest import QUICK, with_fabric

ONE_PING = "ping -c1 -W2 -q"


def ping(fabric: Fabric, host: str, address: str) -> bool:
    return ", 0% packet loss" in fabric.node(host).cmd(f"{ONE_PING} {address}")


@pytest.mark.parametrize(
    "shape",
    [
        QUICK,
        clos2_shape(1, 1, 0, 2, 25_000_000, 0),
        clos2_shape(1, 2, 1, 1, 100_000_000, 20_000_000),
        clos2_shape(3, 3, 2, 2, 12_500_000, 40_000_000),
        clos2_shape(8, 1, 1, 4, 25_000_000, 20_000_000),
    ],
    ids=["2x(2+2)", "1x(1+0)", "1x(2+1)", "3x(3+2)", "8x(1+1)"],
)
def test_every_path_carries_packets_both_ways(shape: Shape, options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.verify()
        first, last = fabric.plan.hosts[0], fabric.plan.hosts[-1]
        for src, dst in ((first, last), (last, first)):
            for path in fabric.plan.paths(src, dst):
                assert ping(fabric, src.name, path.inner), f"{src.name} -> {dst.name} by {path.outer}"

    with_fabric(body, options, shape)


def test_a_footprint_is_what_is_built(options: FabricOptions) -> None:
    """As `run --dry-run` tells it."""

    def body(fabric: Fabric) -> None:
        told = footprint(fabric.plan, options)

        def there(command: str) -> int:
            return sum(int(fabric.node(node).cmd(f"{command} | wc -l")) for node in fabric.plan.node_names)

        assert there("ip -6 route show table all proto boot") == told.ip["route"]
        assert there("ip -6 neigh show nud permanent") == told.ip["neigh"]
        assert there("tc qdisc show | grep -v -e noqueue -e sid0") == told.tc["qdisc"]
        assert there("ip -o link show type veth") == 2 * told.links

    with_fabric(body, options)


def test_a_removed_route_is_drift(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        run_batch(IP, "p1-t1-0", fabric.pids["p1-t1-0"], ["route del fcbb:bb00:1101::/48"])
        with pytest.raises(FabricError, match="p1-t1-0 lacks route via fcbb:bb00:1101::/48 down1"):
            fabric.verify()

    with_fabric(body, options)


def test_an_unplanned_route_is_drift(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        run_batch(IP, "h0", fabric.pids["h0"], ["route add fd99::/64 dev sid0"])
        with pytest.raises(FabricError, match="h0 has unplanned route route fd99::/64 sid0"):
            fabric.verify()

    with_fabric(body, options)


def test_encap_without_red_is_drift(options: FabricOptions) -> None:
    """The mistake a netlink library makes in silence: `encap` for `encap.red`."""

    def body(fabric: Fabric) -> None:
        path = fabric.plan.paths(fabric.plan.hosts[0], fabric.plan.hosts[1])[0]
        change = f"route replace {path.inner}/128 encap seg6 mode encap segs {path.outer} dev sid0"
        run_batch(IP, "h0", fabric.pids["h0"], [change])
        with pytest.raises(FabricError, match="h0 lacks route encap"):
            fabric.verify()

    with_fabric(body, options)


def test_a_wrong_rate_is_drift(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.node("p0-t0-1").cmd("tc class change dev up1 parent 1:1 classid 1:20 htb rate 1mbit ceil 24mbit prio 1")
        with pytest.raises(FabricError, match="p0-t0-1 lacks shaper up1 1:20 25000000"):
            fabric.verify()

    with_fabric(body, options)


def test_a_link_goes_down_and_comes_back_equal_to_the_plan(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.prepare_faults(["p1-t1-0"])
        end = fabric.plan.link_by_name["p1-t0-0:p1-t1-0"].far
        h0, h1 = fabric.plan.hosts
        broken = next(p for p in fabric.plan.paths(h0, h1) if (p.id.plane, p.id.uplink) == (1, 0))
        whole = next(p for p in fabric.plan.paths(h0, h1) if (p.id.plane, p.id.uplink) == (1, 1))
        for _ in range(3):
            fabric.ports_down([end])
            assert not ping(fabric, "h0", broken.inner)
            assert ping(fabric, "h0", whole.inner)
            fabric.verify()
            assert fabric.ports_held_down() == [end]
            fabric.ports_up([end])
            fabric.verify()
            assert ping(fabric, "h0", broken.inner)

    with_fabric(body, options)


def test_a_reboot_loses_the_whole_table_and_writes_it_again(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        assert fabric.switch_off("p0-t1-1") == 0
        assert fabric.node("p0-t1-1").cmd("ip -6 route show proto boot").strip() == ""
        fabric.verify()
        fabric.switch_on("p0-t1-1", [own for own, _ in fabric.plan.ports["p0-t1-1"]])
        fabric.verify()

    with_fabric(body, options)


def test_a_port_that_nobody_was_to_take_down_is_drift(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.prepare_faults(["p1-t1-0"])
        fabric.ports_down([fabric.plan.link_by_name["p1-t0-0:p1-t1-0"].far])
        fabric.node("p1-t1-0").cmd("ip link set down1 down")
        with pytest.raises(FabricError, match=r"p1-t1-0 lacks .*down1"):
            fabric.verify(["p1-t1-0"])

    with_fabric(body, options)


@pytest.mark.timed
def test_a_port_carries_its_rate_and_no_more(options: FabricOptions) -> None:
    """Overload one port for a while; what arrives is the shaped rate."""

    def body(fabric: Fabric) -> None:
        h1 = fabric.plan.hosts[1]
        before = received(fabric, "h1")
        # 500 pings of 4 KiB at once over one path: 2 MB against 25 Mb/s.
        fabric.node("h0").cmd(
            f"timeout 1 ping -q -f -l 200 -s 4096 {fabric.plan.paths(fabric.plan.hosts[0], h1)[0].inner}"
        )
        rate_bps = (received(fabric, "h1") - before) * 8
        assert rate_bps < 25_000_000 * 1.1
        assert rate_bps > 25_000_000 * 0.5

    with_fabric(body, options)


def received(fabric: Fabric, host: str) -> int:
    return sum(row[2] for row in fabric.sample_ports() if row[0] == host)
