"""How many packets a plane must hold for the shares of flows to be judged, and what is told where it holds fewer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.in_flight import few_in_flight, slowest_between, too_few_in_flight
from mrc_testbed.topos.shape import Shape


def holding(packets: float, *speeds: float) -> Shape:
    """A fabric whose ports hold this number of packets in one rtt, with T1s of these speeds."""
    shape = Shape(2, Clos2(2, 2, 2, speeds or (1.0,)), 10_000_000, 0)
    return replace(shape, rtt_ns=round(packets * shape.wire_bytes * 8 * 100))


@pytest.mark.parametrize(
    ("packets", "alone", "slowest", "why"),
    [
        (5.4, True, 1, "a plane holds 5.4 packets in one rtt, under 5.5"),
        (5.6, True, 1, ""),
        (5.6, False, 1, "a plane holds 5.6 packets in one rtt, under 11, where flows compete"),
        (10.9, False, 1, "a plane holds 10.9 packets in one rtt, under 11, where flows compete"),
        (11.1, False, 1, ""),
        (15, True, 0.5, "a plane holds 7.5 packets in one rtt on its slowest links, under 11"),
        (22.1, False, 0.5, ""),
    ],
)
def test_flows_that_compete_and_slow_links_need_more(packets: float, alone: bool, slowest: float, why: str) -> None:
    assert few_in_flight(holding(packets), alone, slowest) == why


def test_the_slowest_link_is_that_of_the_ways_between_two_t0s() -> None:
    family = Clos3(pods=2, t0=2, t1=2, t2=2, hosts_per_t0=1, t2_speed=(1.0, 0.25))
    assert slowest_between(family, 0, 1) == 1
    assert slowest_between(family, 0, 2) == 0.25
    assert slowest_between(family, 3, 3) == 1


@pytest.mark.parametrize(
    ("shape", "parts"),
    [
        (holding(5), ["holds 5.0 packets in one rtt, under 5.5: ports", "worthless and not judged", "rtt 50.9 ms"]),
        (holding(7), ["holds 7.0 packets in one rtt, under 11: fair_share", "of flows that compete", "2.0 times"]),
        (
            holding(15, 1.0, 0.5),
            [
                "holds 7.5 packets in one rtt on its slowest links, under 11: fair_share",
                "flow_goodput of flows that cross them are not judged",
                "rtt 101.8 ms would give 15 on its slowest links",
            ],
        ),
    ],
)
def test_a_warning_says_what_is_not_judged_and_which_rtt_helps(shape: Shape, parts: list[str]) -> None:
    told = too_few_in_flight(shape)
    for part in parts:
        assert part in told


def test_there_is_no_warning_from_eleven_packets_on_the_slowest_links_on() -> None:
    assert too_few_in_flight(holding(11.1)) == ""
    assert too_few_in_flight(holding(22.1, 0.5)) == ""
    assert too_few_in_flight(holding(21.9, 0.5)) != ""
