"""The tables of port cases (tests/port_cases.py), which the kernel's port program passes, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.topos.routes import Routing
from tests.port_cases import BURSTS, LAST_LINK, PLAIN_BURSTS, RULE_CASES, STREAMS, Arrived, Burst, RuleCase, mrc_packet
from tests.unit.virtual.virtual_stage import OPTIONS, Stage


@pytest.mark.parametrize("burst", [*BURSTS, *PLAIN_BURSTS], ids=lambda burst: f"{'plain: ' * burst.plain}{burst.name}")
def test_a_port_marks_trims_and_drops_what_the_table_says(burst: Burst) -> None:
    options = replace(OPTIONS, thresholds=burst.thresholds, trimming=burst.trimming, marks=burst.dscps)
    stage = Stage(options=options, routing=Routing.ECMP_STATIC if burst.plain else Routing.SRV6)
    stage.fabric.set_rate(burst.link, burst.rate_bps)
    destination = stage.plain_to("h0", "h2", uplink=0) if burst.plain else stage.to("h0", "h2")
    for data in burst.sent():
        stage.give("h0", data, destination, burst.traffic_class)
    stage.run()
    got = [Arrived(one.data, one.traffic_class) for one in stage.got["h2"]]
    burst.check(got, stage.fabric.port_counts()[burst.port])
    assert not stage.ledger().unexplained


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: case.name)
def test_a_rule_takes_the_packets_that_it_is_about(case: RuleCase) -> None:
    stage = Stage()
    handle = stage.fabric.add_rule(LAST_LINK, "near", case.rule)
    for number, one in enumerate(STREAMS):
        data = mrc_packet(number, payload=256)
        stage.send(data, one.source, "h2", one.uplink, wire.CLASS_TRIMMABLE if one.data else bth.CLASS_CONTROL)
    stage.run()
    left = {Arrived(one.data, one.traffic_class).number for one in stage.got["h2"]}
    assert left == {number for number, one in enumerate(STREAMS) if one not in case.taken}
    assert stage.fabric.remove_rule(handle) == len(case.taken)
    assert not stage.ledger().unexplained
    stage.send(mrc_packet(99))
    stage.run()
    assert len(stage.got["h2"]) == len(left) + 1, "the rule is gone"


def test_loss_by_chance_takes_its_share() -> None:
    stage = Stage()
    handle = stage.fabric.add_rule(LAST_LINK, "near", PortRule("drop", 0.2))
    for _ in range(4000):
        stage.send(mrc_packet(1, payload=16))
    stage.run()
    lost = stage.fabric.remove_rule(handle)
    assert 4000 - len(stage.got["h2"]) == lost == stage.fabric.port_counts()["h2", "port0"].in_data_dropped
    assert abs(lost - 800) < 5 * (4000 * 0.2 * 0.8) ** 0.5
