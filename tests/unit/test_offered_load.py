"""What a workload asks of the machine, and that every shipped scenario lies inside what two cores carry."""

from __future__ import annotations

import pytest

from testbed.scenario import load_scenario, load_scenario_text
from testbed.scenario.load import offered_pps
from testbed.scenario.shipped import Shipped, shipped
from testbed.scenario.transports import WorldKind
from topos.budget import MRC, SLOW_PHASE, USUAL_PPS

FABRIC = "name: x\nfabric: {planes: 2, t0_groups: 2, t1: 1, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}\n"
PORT_PPS = 12_500_000 / 8 / 4238


def offered(workload: str) -> float:
    """In packets a second of one port."""
    return offered_pps(load_scenario_text(f"{FABRIC}workload: [{workload}]\n")) / PORT_PPS


@pytest.mark.parametrize(
    ("workload", "ports"),
    [
        ("{train: {hosts: [h0, h4, h5], steps: 2, compute: 0s, allreduce: 1MiB}}", 6),
        ("{write: {from: h0, to: h4, for: 4s}}", 2),
        ("{permutation: {for: 4s}}", 4),  # both groups have one uplink a plane
        ("{incast: {to: h0, from: [h1, h2, h3], for: 4s}}", 2),
        ("{write: {from: h0, to: h1, for: 4s}}, {write: {from: h2, to: h3, for: 4s, start: 4s}}", 2),
        ("{write: {from: h0, to: h1, for: 6s}}, {write: {from: h2, to: h3, for: 4s, start: 4s}}", 4),
        ("{latency: {from: h0, to: h4, iterations: 10}}", 0),
    ],
)
def test_a_workload_asks_for_what_its_hosts_can_send_together(workload: str, ports: int) -> None:
    assert offered(workload) == pytest.approx(ports, rel=1e-3)


@pytest.mark.parametrize("one", shipped(), ids=lambda one: one.name)
def test_a_shipped_scenario_is_carried_in_a_slow_phase_too(one: Shipped) -> None:
    scenario = load_scenario(one.path)
    if scenario.world is WorldKind.KERNEL:
        assert offered_pps(scenario) <= SLOW_PHASE * USUAL_PPS[scenario.transport]


def test_the_usual_fabric_is_carried_in_a_slow_phase_too() -> None:
    fabric = "name: x\nfabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4}\n"
    work = "workload: [{train: {hosts: all, steps: 2, compute: 0s, allreduce: 1MiB}}]\n"
    assert offered_pps(load_scenario_text(fabric + work)) <= SLOW_PHASE * USUAL_PPS[MRC]
