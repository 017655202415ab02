"""Fair shares of flows over three tiers, rails and unequal links, beside arithmetic by hand in comments."""

from __future__ import annotations

from typing import Any

import pytest

from mrc_testbed.testbed.workloads.fairness import Demand, line_rate, max_min_shares
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.shape import Shape

# 8 hosts on 4 T0s in two pods. A T0 has two hosts and two uplinks; a T1 has two T0s and one T2: 2:1 between pods.
PODS = Clos3(pods=2, t0=2, t1=2, t2=2, hosts_per_t0=2)
# 8 hosts on two rails of four; one link joins each rail to the spine.
RAILS = Rail(rails=2, nodes=4, spine=1)


def shares(family: Family, *pairs: tuple[int, int], planes: int = 2) -> list[Any]:
    """Of a flow for each pair, in line rates of a host."""
    shape = Shape(planes, family, 25_000_000, 20_000_000)
    found = max_min_shares(shape, {f"{src}->{dst}": Demand(src, dst, 1) for src, dst in pairs})
    return [pytest.approx(share / line_rate(shape), rel=1e-9) for share in found.values()]


def shifted(by: int) -> list[tuple[int, int]]:
    return [(host, (host + by) % 8) for host in range(8)]


def test_a_permutation_across_pods_has_half_at_two_to_one() -> None:
    assert shares(PODS, *shifted(4)) == [0.5] * 8  # four hosts of a pod over two links to T2s


def test_the_same_within_pods_has_all() -> None:
    assert shares(PODS, *[(host, host ^ 2) for host in range(8)]) == [1] * 8
    assert shares(PODS, *[(host, host ^ 1) for host in range(8)]) == [1] * 8


def test_flows_that_stay_in_a_pod_take_what_those_across_leave() -> None:
    # Across, h0 to h3 share two links: 1/2 each. h6 sends to h4, which has half of its port from h0; h5 and h7 talk
    # below one T0 or within the pod, and have a port of their own.
    across = [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert shares(PODS, *across, (6, 4)) == [0.5, 0.5, 0.5, 0.5, 0.5]
    assert shares(PODS, *across[:2], (6, 4)) == [0.5, 1, 0.5]


def test_more_t2_make_up_for_it() -> None:
    whole = Clos3(pods=2, t0=2, t1=2, t2=4, hosts_per_t0=2)
    assert shares(whole, *shifted(4)) == [1] * 8
    assert shares(Clos3(pods=2, t0=2, t1=2, t2=4, hosts_per_t0=2, t2_speed=(0.5,)), *shifted(4)) == [0.5] * 8


def test_rails_share_their_spine_and_nothing_on_one_rail_crosses_it() -> None:
    assert shares(RAILS, *[(host, host ^ 1) for host in range(8)]) == [0.25] * 8  # four NICs over one link
    assert shares(RAILS, *shifted(2)) == [1] * 8  # the same NIC of the next node


def test_the_slowest_way_bounds_what_is_spread_evenly() -> None:
    # Two hosts over T1s of 1 and 1/2: each way has half of both, so the slow one is full at a sum of 1.
    unequal = Clos2(2, 2, 2, (1.0, 0.5))
    assert shares(unequal, (0, 2), (1, 3)) == [0.5, 0.5]
    assert shares(unequal, (0, 2)) == [1]


@pytest.mark.parametrize("planes", [1, 4])
def test_planes_are_alike(planes: int) -> None:
    assert shares(PODS, *shifted(4), planes=planes) == [0.5] * 8


def test_queue_pairs_are_weights_on_every_link() -> None:
    shape = Shape(1, PODS, 25_000_000, 20_000_000)
    demands = {"a": Demand(0, 4, 3), "b": Demand(1, 5, 1), "c": Demand(2, 6, 1), "d": Demand(3, 7, 1)}
    found = max_min_shares(shape, demands)  # six QPs over two links
    assert [share / line_rate(shape) for share in found.values()] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])
