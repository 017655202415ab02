"""Three tiers and rails on this kernel: every path carries packets, switches hash on both tiers, faults heal."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from tests.emu.conftest import isolated
from tests.emu.plain_traffic import FIRST_PORT, flood, flow, ports_ledger, with_ecmp
from tests.emu.port_stage import options as options
from tests.emu.runs import Run
from tests.emu.test_bgp import frr as frr

CLOS3 = Clos3(pods=2, t0=2, t1=2, t2=4, hosts_per_t0=2, t2_speed=(0.5,))
RAIL = Rail(rails=4, nodes=2, spine=2)
FLOWS = 40


def shape_of(family: Family, planes: int = 2) -> Shape:
    return Shape(planes, family, port_rate_bps=25_000_000, rtt_ns=20_000_000)


def answers(fabric: Fabric, host: str, address: str) -> bool:
    return ", 0% packet loss" in fabric.node(host).cmd(f"ping -c1 -W2 -q {address}")


@pytest.mark.parametrize("family", [CLOS3, RAIL], ids=lambda each: each.word)
def test_every_path_of_a_host_carries_packets_and_links_have_their_rates(
    family: Family, options: FabricOptions
) -> None:
    def main() -> None:
        fabric = Fabric.build(build_plan(shape_of(family)), options)
        fabric.verify()
        h0, *others = fabric.plan.hosts
        for other in others:
            for path in fabric.plan.paths(h0, other):
                assert answers(fabric, h0.name, path.inner), f"{other.name} by {path.outer}"
        for link in fabric.plan.links:
            assert fabric.rate_bps(link.name) == (12_500_000 if "t2" in link.name else 25_000_000)

    isolated(main)


@pytest.mark.nightly
def test_a_t2_and_a_link_to_one_go_and_come_back_equal_to_the_plan(options: FabricOptions) -> None:
    def main() -> None:
        fabric = Fabric.build(build_plan(shape_of(CLOS3)), options)
        fabric.prepare_faults(fabric.plan.node_names)
        h0, h7 = fabric.plan.hosts[0], fabric.plan.hosts[-1]
        by_t2 = {path.way[2].number: path.inner for path in fabric.plan.paths(h0, h7) if path.id.plane == 1}
        link = fabric.plan.link_by_name["p1-t1-3:p1-t2-3"]
        fabric.switch_off("p1-t2-1")
        fabric.ports_down([link.far])
        fabric.set_rate("p1-t1-0:p1-t2-0", 5_000_000)
        assert [answers(fabric, "h0", by_t2[t2]) for t2 in range(4)] == [True, False, True, False]
        fabric.verify()
        fabric.switch_on("p1-t2-1", [own for own, _ in fabric.plan.ports["p1-t2-1"]])
        fabric.ports_up([link.far])
        fabric.set_rate("p1-t1-0:p1-t2-0", 12_500_000)
        assert all(answers(fabric, "h0", by_t2[t2]) for t2 in range(4))
        fabric.verify()

    isolated(main)


@pytest.mark.parametrize("ecmp_hash", ["polarised", "independent"])
@pytest.mark.nightly(keep=1)
def test_both_worlds_hash_on_both_tiers_alike(ecmp_hash: str, options: FabricOptions) -> None:
    """What the kernel says that it would do, before and after a cut at a T1; and the ports that packets leave by."""
    asked = replace(options, ecmp_hash=ecmp_hash, hash_seed=11)  # type: ignore[arg-type]

    def main() -> None:
        plan = build_plan(shape_of(CLOS3, planes=1), Routing.ECMP_STATIC)
        fabric, virtual = Fabric.build(plan, asked), VirtualFabric(plan, asked, Scheduler(), seed=1)
        h0, h7 = plan.hosts[0], plan.hosts[-1]
        flows = [PlainFlow(h0, h7, 0, "udp", 0xC000 + number, 4791) for number in range(FLOWS)]
        whole = virtual.predicted_uplinks(flows)
        assert fabric.predicted_uplinks(flows) == whole
        assert len(set(whole)) == (4 if ecmp_hash == "independent" else 2)
        fabric.verify()
        fabric.prepare_faults(["p0-t2-0"])
        end = plan.link_by_name["p0-t1-0:p0-t2-0"].far
        for each in (fabric, virtual):
            each.ports_down([end])
        fabric.verify()
        cut = virtual.predicted_uplinks(flows)
        assert fabric.predicted_uplinks(flows) == cut != whole
        assert 0 not in cut

    isolated(main)


def test_adaptive_switches_of_both_tiers_spread_one_flow_and_leave_a_dead_port(options: FabricOptions) -> None:
    shape = shape_of(replace(CLOS3, t2_speed=(1.0,)), planes=1)

    def body(fabric: Fabric) -> None:
        def used() -> list[float]:
            before = [fabric.port_counts()[f"p0-t2-{t2}", "down0"].in_data for t2 in range(4)]
            flood(fabric, [flow(fabric, "h0", "h7", FIRST_PORT)], 0.5, 0)
            time.sleep(0.3)
            now = [fabric.port_counts()[f"p0-t2-{t2}", "down0"].in_data for t2 in range(4)]
            came = [after - first for after, first in zip(now, before, strict=True)]
            assert sum(came) > 150
            return [one / sum(came) for one in came]

        fabric.verify()
        assert 0.15 <= min(used()) <= max(used()) <= 0.35
        fabric.prepare_faults(fabric.plan.node_names)
        fabric.ports_down([fabric.plan.link_by_name["p0-t1-1:p0-t2-3"].far])
        time.sleep(0.2)
        _, _, kept, dead = used()
        assert dead <= 0.01
        assert 0.4 <= kept <= 0.6, "the T0 does not know of it, and its T1 has one port left"
        assert not ports_ledger(fabric, ["p0-t1-1:p0-t2-3"]).unexplained

    with_ecmp(body, options, shape, adaptive=True)


@pytest.mark.nightly
def test_bgp_finds_all_ways_over_two_tiers_and_leaves_a_lost_link(options: FabricOptions, frr: None) -> None:
    asked = replace(options, bgp=BgpOptions(bfd_interval_ms=100))

    def main() -> None:
        fabric = Fabric.build(build_plan(shape_of(CLOS3, planes=1), Routing.BGP), asked)
        fabric.converge()
        fabric.verify()
        fabric.prepare_faults(fabric.plan.node_names)
        end = fabric.plan.link_by_name["p0-t1-2:p0-t2-1"].near
        fabric.ports_down([end])
        wait_for_routes(fabric)
        assert "via" in fabric.node("p0-t1-0").cmd("ip -6 route show proto bgp")
        fabric.ports_up([end])
        wait_for_routes(fabric)
        fabric.converge()

    isolated(main)


def wait_for_routes(fabric: Fabric) -> None:
    """Until BGP has the routes that are left, and no others."""
    until = time.monotonic() + 20
    while True:
        try:
            fabric.verify()
        except FabricError:
            assert time.monotonic() < until
            time.sleep(0.2)
        else:
            return


HEAD = "name: families\nfabric: {{family: {family}, planes: 2, port_rate: 6mbit, rtt: 40ms}}\n"
THREE_TIERS = HEAD.format(family="{clos3: {pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2}}")
RAILS = HEAD.format(family="{rail: {rails: 4, nodes: 2, spine: 2}}")
WORK = """\
workload: [{train: {hosts: all, steps: 5, compute: 300ms, allreduce: 512KiB}}]
expect: [qp_errors == 0, bytes_wrong == 0]
"""
ABOVE = """\
faults:
  - {at: 500ms, switch-reboot: p0-t2-1, boot: 800ms, name: reboot}
  - {at: 1s, link-down: "p1-t1-3:p1-t2-2", for: 800ms, name: cut}
  - {at: 2s, ev-loss: p1/u1, from: h0, loss: 50%, for: 600ms, name: ev}
  - {at: 2s, deny: [p0-t2-3, p0/u0], for: 600ms, name: denied}
"""
SPINE = """\
faults:
  - {at: 500ms, switch-reboot: p0-t1-1, boot: 800ms, name: reboot}
  - {at: 2s, link-down: any 1 of rail 2, for: 600ms, name: cut}
"""
HASHED = """\
faults:
  - {at: 1s, link-down: "p0-t1-0:p0-t2-1", for: 800ms, name: cut}
transport: roce
roce: {recovery: selective}
ecmp: {hash: independent}
"""
ADAPTIVE = HASHED.replace("hash: independent", "choose: adaptive")


@pytest.mark.parametrize(
    "scenario",
    [
        THREE_TIERS + WORK + ABOVE,
        RAILS + WORK + SPINE,
        THREE_TIERS + WORK + HASHED,
        THREE_TIERS + WORK + ADAPTIVE,
    ],
    ids=["three tiers", "rails", "three tiers, hashed", "three tiers, adaptive"],
)
@pytest.mark.nightly(keep=1)
def test_a_run_bears_its_faults_and_every_packet_is_accounted_for(scenario: str, tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=scenario)
    run.finish(timeout_s=120)
    run.assert_passed_or_machine_was_busy()
