"""The fault kind of docs/examples/mtu_fault.py on a real fabric: injected, healed, and the kernel read back."""

from __future__ import annotations

import json

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.faults.inject import Injector
from mrc_testbed.testbed.faults.schedule import heal, inject
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.scenario import Occurrence
from mrc_testbed.testbed.scenario.faults import KINDS, FaultParameters
from mrc_testbed.testbed.switching.options import FabricOptions
from tests.emu.conftest import with_fabric
from tests.plugins import mtu_kind

LINK, BESIDE = "p0-t0-0:p0-t1-1", "p0-t0-0:p0-t1-0"


def occurrence(fault: str, kind: str, link: str, **values: int) -> Occurrence:
    model = {**KINDS, "link-mtu": mtu_kind()}[kind]
    return Occurrence(fault, 0, model, (link,), 0, 1, (link,), parameters=FaultParameters(values=values))


def test_a_plugin_lowers_the_mtu_of_a_link_and_heals_it(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        injector = Injector(TargetSystem(fabric, lambda *_: None))
        fabric.prepare_faults(fabric.plan.switch_by_name)
        small, cut = occurrence("small", "link-mtu", LINK, mtu=2000), occurrence("cut", "link-down", BESIDE)
        injector.do(inject(small))
        assert mtus(fabric) == {2000}
        injector.do(inject(cut))
        injector.do(heal(cut))
        injector.read_back(heal(cut))  # of the same T0, whose other port has another MTU meanwhile
        fabric.verify()
        injector.do(heal(small))
        injector.read_back(heal(small))
        injector.verify_healed()
        assert mtus(fabric) == {9000}
        fabric.verify()

    with_fabric(body, options)


def test_read_back_finds_an_mtu_that_was_not_given_back(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        injector = Injector(TargetSystem(fabric, lambda *_: None))
        small = occurrence("small", "link-mtu", LINK, mtu=2000)
        for step in (inject(small), heal(small)):
            injector.do(step)
        end = fabric.plan.link_by_name[LINK].far
        fabric.node(end.node).cmd(f"ip link set dev {end.name} mtu 2000")
        with pytest.raises(FabricError, match=f"{end.node} lacks port {end.name} .* mtu 9000"):
            injector.read_back(heal(small))

    with_fabric(body, options)


def mtus(fabric: Fabric) -> set[int]:
    """As the kernel has them at both ends of the link."""
    ends = fabric.plan.link_by_name[LINK].ends
    shown = (json.loads(fabric.node(end.node).cmd(f"ip -j link show dev {end.name}")) for end in ends)
    return {links[0]["mtu"] for links in shown}
