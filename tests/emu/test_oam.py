"""Switches that answer: by addresses and routes of their own, which read-back knows and faults heal."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.batch import IP, run_batch
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos import usid
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape
from tests.emu.conftest import QUICK, isolated

FAMILIES = {
    "clos2": QUICK,
    "clos3": Shape(1, Clos3(2, 2, 2, 2, 1), 25_000_000, 20_000_000),
    "rail": Shape(1, Rail(2, 2, 2), 25_000_000, 20_000_000),
}


def answering(shape: Shape, options: FabricOptions) -> Fabric:
    fabric = Fabric.build(build_plan(shape).answering(), options)
    fabric.verify()
    return fabric


@pytest.mark.parametrize("word", FAMILIES)
def test_switches_have_their_addresses_and_faults_heal_them(word: str, options: FabricOptions) -> None:
    def body() -> None:
        fabric = answering(FAMILIES[word], options)
        plan = fabric.plan
        t0, t1 = plan.switches[0], next(switch for switch in plan.switches if switch.tier == 1)
        asked = f"ping -c1 -W2 -q {usid.switch_address(t0.usid)}"
        assert ", 0% packet loss" in fabric.node(plan.hosts[0].name).cmd(asked)
        link = plan.link_between(t0.name, t1.name)
        fabric.prepare_faults(plan.switch_by_name)
        fabric.ports_down([link.far])
        fabric.verify()
        fabric.ports_up([link.far])
        fabric.verify()
        for switch in (t0, t1):
            assert fabric.switch_off(switch.name) == 0
            fabric.verify()
            fabric.switch_on(switch.name, [own for own, _ in plan.ports[switch.name]])
            fabric.verify()

    isolated(body)


def test_a_missing_address_or_way_back_is_drift(options: FabricOptions) -> None:
    def body() -> None:
        fabric = answering(QUICK, options)
        run_batch(IP, "p0-t1-0", fabric.pids["p0-t1-0"], ["addr del fcbb:bb00:2000::/128 dev lo"])
        with pytest.raises(FabricError, match="p0-t1-0 lacks address fcbb:bb00:2000::"):
            fabric.verify(["p0-t1-0"])
        run_batch(IP, "p1-t0-0", fabric.pids["p1-t0-0"], ["route del fd00::1:0:0:0/80 dev down0"])
        with pytest.raises(FabricError, match="p1-t0-0 lacks route via fd00::1:0:0:0/80 down0"):
            fabric.verify(["p1-t0-0"])

    isolated(body)
