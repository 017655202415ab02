"""BGP between the switches, on the real kernel: the daemons of FRR, the routes they find, and what a fault costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.bgp.messages import BgpUpdates
from mrc_testbed.testbed.fabric.capabilities import FRR, Capability
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from tests.emu.conftest import isolated
from tests.emu.port_stage import options as options
from tests.emu.test_sandbox import await_gone, members

SHAPE = clos2_shape(1, 2, 2, 2, 25_000_000, 0)
FAR = "p0-t0-1:p0-t1-1"
T0S = ("p0-t0-0", "p0-t0-1")


@pytest.fixture(autouse=True)
def frr(machine: list[Capability]) -> None:
    if not next(each.present for each in machine if each.name == FRR):
        if os.environ.get("CI"):
            pytest.fail("FRR is missing: tools/setup-tests installs it")
        pytest.skip("needs FRR: apt-get install frr")


def with_bgp(body: Callable[[Fabric], None], options: FabricOptions, **settings: Any) -> None:
    asked = replace(options, bgp=BgpOptions(**settings))

    def main() -> None:
        fabric = Fabric.build(build_plan(SHAPE, Routing.BGP), asked)
        fabric.converge()
        fabric.verify()
        fabric.prepare_faults(fabric.plan.node_names)
        body(fabric)

    isolated(main)


def ways(fabric: Fabric, t0: str = "p0-t0-0") -> int:
    """Next hops of BGP at a T0; of four when nothing is broken."""
    return fabric.node(t0).cmd("ip -6 route show proto bgp").count("via")


def until(fabric: Fabric, wanted: int, limit_s: float) -> float:
    """Seconds until both T0s have `wanted`."""
    since = time.monotonic()
    while any(ways(fabric, t0) != wanted for t0 in T0S):
        assert time.monotonic() - since < limit_s, [ways(fabric, t0) for t0 in T0S]
        time.sleep(0.02)
    return time.monotonic() - since


def test_a_flap_leaves_ecmp_full_again(options: FabricOptions) -> None:
    """FRR 8.4 forgets next hops for good where they are objects of the kernel."""

    def body(fabric: Fabric) -> None:
        port = fabric.plan.link_by_name[FAR].far
        fabric.ports_down([port])
        assert until(fabric, 2, 5) < 5
        fabric.verify()
        fabric.ports_up([port])
        fabric.verify(T0S)
        assert until(fabric, 4, 30) < 30
        fabric.verify()
        fabric.converge()

    with_bgp(body, options)


@pytest.mark.nightly
def test_updates_are_counted_from_the_mark_on_and_a_daemon_that_starts_again_forgets(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        assert fabric.route_updates() == {}, "nothing was marked"
        fabric.count_route_updates()
        assert {counts for one in flat(fabric.route_updates()).values() for counts in one} == {0}
        fabric.ports_down([fabric.plan.link_by_name[FAR].far])
        until(fabric, 2, 5)
        told = fabric.route_updates()
        assert told["p0-t1-1"]["p0-t0-0"] == {"updates_sent": 1, "updates_received": 0}, "it has lost its way there"
        assert told["p0-t0-0"]["p0-t1-1"] == {"updates_sent": 0, "updates_received": 1}
        fabric.switch_off("p0-t1-1")
        fabric.switch_on("p0-t1-1", [own for own, _ in fabric.plan.ports["p0-t1-1"]])
        until(fabric, 4, 30)
        again = flat(fabric.route_updates())
        assert again["p0-t0-0", "p0-t1-1"][1] > again["p0-t1-1", "p0-t0-0"][0] > 0, "its neighbour remembers the first"

    with_bgp(body, options)


def flat(told: BgpUpdates) -> dict[tuple[str, str], tuple[int, int]]:
    """By switch and neighbour: sent and received."""
    return {
        (switch, neighbour): (counts["updates_sent"], counts["updates_received"])
        for switch, one in told.items()
        for neighbour, counts in one.items()
    }


@pytest.mark.nightly
def test_a_switch_that_reboots_comes_back_with_daemons_of_its_own(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        assert fabric.switch_off("p0-t1-1") == 0
        until(fabric, 2, 5)
        fabric.verify()
        fabric.switch_on("p0-t1-1", [own for own, _ in fabric.plan.ports["p0-t1-1"]])
        until(fabric, 4, 30)
        fabric.verify()

    with_bgp(body, options, routes="hosts")


@pytest.mark.nightly
def test_bfd_finds_a_silent_link_and_a_grey_switch_stays_in_use(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        handles = fabric.silence("p0-t1-1", of_hosts=True)
        time.sleep(2.5)
        assert [ways(fabric, t0) for t0 in T0S] == [4, 4], "its control plane lives"
        handles += [fabric.add_rule(FAR, end, PortRule("drop")) for end in ("near", "far")]
        assert until(fabric, 2, 5) < 5
        for handle in handles:
            fabric.remove_rule(handle)
        until(fabric, 4, 30)
        fabric.verify()

    with_bgp(body, options, bfd_interval_ms=300)


@pytest.mark.nightly
def test_without_bfd_a_silent_link_is_believed_until_the_hold_timer_ends(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        for end in ("near", "far"):
            fabric.add_rule(FAR, end, PortRule("drop"))
        assert until(fabric, 1, 10) > 1.5  # one of two racks' routes a T0

    with_bgp(body, options, keepalive_s=1, hold_s=3, routes="racks")


def test_a_daemon_that_dies_is_an_error_with_its_place(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.node("p0-t0-1").cmd("kill -9 $(cat /var/run/frr/bgpd.pid)")
        time.sleep(0.5)
        with pytest.raises(FabricError, match=r"p0-t0-1: run BGP: a daemon has ended: \S"):
            fabric.route_changes()

    with_bgp(body, options)


def test_the_prompt_of_a_switch_has_vtysh(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        assert "p0-t1-1" in fabric.node("p0-t0-0").cmd("vtysh -c 'show bgp summary'")

    with_bgp(body, options)


BUILDER = """
import sys, time
from dataclasses import replace
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.bgp.messages import BgpUpdates
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.families.clos2 import clos2_shape

shape = clos2_shape(1, 2, 2, 1, 25_000_000, 0)
options = capabilities.choose(capabilities.probe(), shape)

def main():
    fabric = Fabric.build(build_plan(shape, Routing.BGP), options)
    fabric.converge()
    print("up", flush=True)
    time.sleep(60)
    return 0

sys.exit(run_isolated(main))
"""


def test_kill_9_leaves_no_daemon() -> None:
    mark = f"MRC_BGP_TEST={os.getpid()}"
    environment = {**os.environ, "MRC_BGP_TEST": str(os.getpid())}
    caller = subprocess.Popen([sys.executable, "-c", BUILDER], stdout=subprocess.PIPE, text=True, env=environment)
    assert caller.stdout is not None
    assert caller.stdout.readline() == "up\n"
    assert len(members(mark)) > 6 + 8, "nodes, and two daemons for each of four switches"
    os.kill(caller.pid, signal.SIGKILL)
    await_gone(mark)
    caller.wait(timeout=10)
