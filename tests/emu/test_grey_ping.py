"""A grey switch forwards nothing of hosts, whatever it is, and what it says to its neighbours passes."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.routes import Carries
from tests.emu.port_stage import options as options
from tests.emu.test_bgp import T0S, ways
from tests.emu.test_bgp import frr as frr
from tests.emu.test_bgp_locators import path_over, with_usids


@pytest.mark.nightly
def test_pings_of_hosts_do_not_pass_a_grey_switch(options: FabricOptions) -> None:
    """Neither over a source route nor to a plain address, and none that is shorter than the headers of a transport."""

    def body(fabric: Fabric) -> None:
        plain = dict(fabric.plan.host_ports(fabric.plan.host_by_name["h2"]))[0]
        targets = [f"-s {size} {to}" for to in (plain, path_over(fabric, 0).inner) for size in (8, 56)]

        def lost(target: str) -> str:
            told = fabric.node("h0").cmd(f"ping -c2 -i0.1 -W1 -q {target}")
            return next(part.strip() for part in told.split(",") if "packet loss" in part)

        before = [ways(fabric, t0) for t0 in T0S]
        assert {lost(target) for target in targets} == {"0% packet loss"}
        for t1 in ("p0-t1-0", "p0-t1-1"):
            fabric.silence(t1, of_hosts=True)
        assert {lost(target) for target in targets} == {"100% packet loss"}
        assert [ways(fabric, t0) for t0 in T0S] == before

    with_usids(body, options, carries=Carries.HOSTS)
