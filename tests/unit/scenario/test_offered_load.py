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
MOST = 0.82
"""Of what two cores carry in a slow phase."""
MORE = {"stories/tail-by-hosts": 0.99}
"""Of 24 hosts, which was made before hosts cost caches."""


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


TEN_FABRICS = (  # planes, T0s, their hosts, port rate, T in ms, workload, carried: 2026-11-28 of machine-load.md
    *((4, 2, 4, mbit, ms, "train", ok) for mbit, ms, ok in ((28.46, 17.6, True), (33.71, 14.9, False))),
    *((4, 2, 8, mbit, ms, "train", True) for mbit, ms in ((13.03, 38.4), (15.24, 32.9), (17.63, 28.4))),
    *((1, 2, 4, mbit, ms, "permutation", ok) for mbit, ms, ok in ((58.11, 8.7, True), (69.65, 7.2, False))),
    *((8, 2, 4, mbit, ms, "permutation", False) for mbit, ms in ((14.76, 33.9), (17.73, 28.2))),
    *((2, 4, 4, mbit, ms, "permutation", ok) for mbit, ms, ok in ((15.19, 33, True), (18.6, 26.9, False))),
    *((8, 4, 4, mbit, ms, "permutation", ok) for mbit, ms, ok in ((4.7, 106.4, True), (5.754, 86.9, False))),
    *((1, 4, 8, mbit, ms, "permutation", ok) for mbit, ms, ok in ((9.221, 54.3, True), (11.31, 44.3, False))),
    *((4, 4, 8, mbit, ms, "permutation", ok) for mbit, ms, ok in ((3.012, 166, True), (3.694, 135.4, False))),
    *((2, 8, 8, mbit, ms, "permutation", ok) for mbit, ms, ok in ((2.106, 237.5, True), (2.591, 193, False))),
    *((4, 8, 8, mbit, ms, "permutation", ok) for mbit, ms, ok in ((1.136, 440.4, True), (1.397, 357.9, False))),
)
CARRIED_THEN = 2.3
"""CPUs, of that hour, with a `crowd` of 0.55: what all ten agree with."""


@pytest.mark.parametrize(("planes", "t0", "below", "mbit", "ms", "kind", "carried"), TEN_FABRICS)
def test_what_ten_fabrics_took_is_reckoned_to_a_tenth(
    planes: int, t0: int, below: int, mbit: float, ms: float, kind: str, carried: bool
) -> None:
    size = f"planes: {planes}, t0_groups: {t0}, t1: {below}, hosts_per_t0: {below}"
    kib = round(4096 * mbit / 12.5)
    kinds = {
        "train": f"train: {{hosts: all, steps: 5, compute: 100ms, allreduce: {kib}KiB}}",
        "permutation": "permutation: {for: 20s}",
    }
    scenario = load_scenario_text(
        f"name: x\nfabric: {{{size}, port_rate: {mbit * 1e6:.0f}bit, rtt: {ms * 1e3:.0f}us}}\n"
        f"workload: [{{{kinds[kind]}}}]\n"
    )
    takes = cpus(scenario.shape(), offered_load(scenario), replace(scenario.transport.cost, crowd=0.55))
    assert (takes <= CARRIED_THEN * 1.1) if carried else (takes >= CARRIED_THEN / 1.1)


def test_ranks_that_wait_for_each_other_pause_and_hosts_of_flows_do_not() -> None:
    def pausing(workload: str) -> float:
        return offered_load(load_scenario_text(f"{FABRIC}workload: [{workload}]\n")).pausing

    short, long = (f"{{train: {{hosts: all, steps: 2, compute: 1s, allreduce: {size}}}}}" for size in ("1MiB", "64MiB"))
    assert pausing("{permutation: {for: 4s}}") == 0
    assert 0 < pausing(long) < 0.1 * 8 < 0.35 * 8 < pausing(short) < 8


PODS = FABRIC.replace(
    "t0_groups: 2, t1: 1, hosts_per_t0: 4", "family: {clos3: {pods: 2, t0: 2, t1: 1, t2: 1, hosts_per_t0: 2}}"
)


@pytest.mark.parametrize(
    ("workload", "switches"),
    [
        ("{write: {from: h0, to: h1, for: 4s}}", 1),
        ("{write: {from: h0, to: h2, for: 4s}}", 3),
        ("{write: {from: h0, to: h4, for: 4s}}", 5),
        ("{write: {pairs: [h0->h4, h1->h3], for: 4s}}", 4),
        ("{train: {hosts: all, steps: 2, compute: 1s, allreduce: 8MiB}}", 2.5),  # two of its eight hops are far
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
