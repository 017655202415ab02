"""What a workload asks of the machine, and that every shipped scenario lies inside what two cores carry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc_testbed.testbed.scenario import load_cells, load_scenario_text
from mrc_testbed.testbed.scenario.load.shipped import Shipped, shipped
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.topos.budget import usual_capacity
from mrc_testbed.topos.cost import SWITCH_S, SWITCHES, Load, cpus

FABRIC = "name: x\nfabric: {planes: 2, t0_groups: 2, t1: 1, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}\n"
PORT_PPS = 12_500_000 / 8 / 4238
MOST = 0.76
"""Of what two cores carry; a slow phase takes the rest."""
MORE = {"stories/tail-by-hosts": 0.9, "stories/three-tiers": 0.8}
"""Of 16 and 24 hosts, which were made before hosts cost caches."""


def load_of(workload: str, fabric: str = FABRIC) -> Load:
    """In packets a second of one port."""
    load = offered_load(load_scenario_text(f"{fabric}workload: [{workload}]\n"))
    return Load(load.pps / PORT_PPS, load.hosts, load.congested_pps / PORT_PPS)


@pytest.mark.parametrize(
    ("workload", "ports", "hosts", "congested"),
    [
        ("{write: {from: h0, to: h4, for: 4s}}", 2, 2, 0),
        ("{permutation: {for: 4s}}", 4, 8, 4),  # both groups have one uplink a plane
        ("{incast: {to: h0, from: [h1, h2, h3], for: 4s}}", 2, 4, 2),
        ("{incast: {to: h0, from: [h1], for: 4s, victims: [h2->h3]}}", 4, 4, 0),
        ("{write: {from: h0, to: h1, for: 4s}}, {write: {from: h2, to: h3, for: 4s, start: 4s}}", 2, 2, 0),
        ("{write: {from: h0, to: h1, for: 6s}}, {write: {from: h2, to: h3, for: 4s, start: 4s}}", 4, 4, 0),
        ("{write: {pairs: [h0->h1, h0->h2], for: 4s}}", 2, 3, 0),  # its own ports decide
        ("{latency: {from: h0, to: h4, iterations: 10}}", 0, 0, 0),
    ],
)
def test_flows_ask_for_what_is_fair_and_wait_where_others_take_it(
    workload: str, ports: int, hosts: int, congested: int
) -> None:
    found = load_of(workload)
    assert (found.pps, found.hosts, found.congested_pps) == pytest.approx((ports, hosts, congested), rel=1e-3)


def test_ranks_ask_for_what_they_send_while_they_communicate() -> None:
    """A ring of 3 with 8 MiB sends a third of it four times, each time for T/2 and three packets longer than the ports
    need."""
    found = load_of("{train: {hosts: [h0, h4, h5], steps: 2, compute: 1s, allreduce: 8MiB}}")
    busy_s = (2**23 / 3 / 4084) / (2 * PORT_PPS)
    assert found.pps == pytest.approx(6 * busy_s / (busy_s + 0.02 + 3 / PORT_PPS), rel=0.01)
    assert (found.hosts, found.congested_pps) == (3, 0)


PODS = FABRIC.replace(
    "t0_groups: 2, t1: 1, hosts_per_t0: 4", "family: {clos3: {pods: 2, t0: 2, t1: 1, t2: 1, hosts_per_t0: 2}}"
)


@pytest.mark.parametrize(
    ("workload", "switches"),
    [
        ("{write: {from: h0, to: h1, for: 4s}}", 3),  # one switch: counts as three
        ("{write: {from: h0, to: h2, for: 4s}}", 3),
        ("{write: {from: h0, to: h4, for: 4s}}", 5),
        ("{write: {pairs: [h0->h4, h1->h3], for: 4s}}", 4),
        ("{train: {hosts: all, steps: 2, compute: 1s, allreduce: 8MiB}}", 3.5),  # two of its eight hops are far
    ],
)
def test_packets_that_cross_more_switches_cost_more(workload: str, switches: float) -> None:
    scenario = load_scenario_text(f"{PODS}workload: [{workload}]\n")
    found, cost = offered_load(scenario), scenario.transport.cost
    assert found.switches == switches
    more = cpus(scenario.shape(), found, cost) - cpus(scenario.shape(), replace(found, switches=SWITCHES), cost)
    assert more == pytest.approx((found.pps + 0.7 * found.congested_pps) * (switches - 3) * SWITCH_S)


def test_all_together_never_ask_for_more_than_their_hosts_can() -> None:
    train = "{train: {hosts: [h0, h4], steps: 2, compute: 0s, allreduce: 64MiB}}"
    assert load_of(f"{train}, {{write: {{from: h0, to: h4, for: 4s}}}}").pps == pytest.approx(4)


@pytest.mark.parametrize("one", shipped(), ids=lambda one: one.name)
def test_two_cores_carry_a_shipped_scenario(one: Shipped) -> None:
    for cell in load_cells(one.path):
        scenario = cell.scenario
        if scenario.world is WorldKind.KERNEL:
            takes = cpus(scenario.shape(), offered_load(scenario), scenario.transport.cost)
            assert takes <= MORE.get(one.name, MOST) * usual_capacity(scenario.transport.cost).cpus, cell.settings
