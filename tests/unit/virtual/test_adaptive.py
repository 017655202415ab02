"""Virtual switches that choose packet by packet: how little waits, what they know, and what they leave to the hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.switching.adaptive import BAND_SHARES, LOOKS_PER_T, Looks, looks_of
from mrc_testbed.testbed.virtual import fabric
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from tests.port_cases import rc_packet
from tests.unit.virtual.virtual_stage import FIRST_PORT, OPTIONS, Stage

UPLINKS = 4
SHAPE = clos2_shape(planes=1, t0_groups=2, t1=UPLINKS, hosts_per_t0=4, port_rate_bps=25_000_000, rtt_ns=40_000_000)
"""A BDP is 30 packets, and the queue of a usual port 90."""
PAYLOAD = 4096
FRAME_BYTES = len(rc_packet(rc.WRITE_MIDDLE, 1, PAYLOAD)) + rc.FRAME_BYTES
PACKET_NS = -(-FRAME_BYTES * 8 * 10**9 // SHAPE.port_rate_bps)
EXACT = Looks(tuple(range(0, 1 << 20, 100)), 0)
"""The shortest queue, to 100 bytes, at each packet."""


@contextmanager
def switches_see(looks: Looks) -> Iterator[None]:
    with patch.object(fabric, "looks_of", lambda _shape: looks):
        yield


def stage(looks: Looks | None = None, shape: Shape = SHAPE, seed: int = 1, **changes: object) -> Stage:
    options = replace(OPTIONS, adaptive=True, **changes)  # type: ignore[arg-type]
    with switches_see(looks or looks_of(shape)):
        return Stage(shape, options, seed, Routing.ECMP_STATIC)


def send(one: Stage, sender: int, packets: int) -> None:
    """From a host of the first group to its like of the second, as fast as its port goes."""
    flow = one.flow(f"h{sender}", f"h{sender + len(SHAPE.family.below[0])}", FIRST_PORT + sender)
    for number in range(packets):
        one.give(f"h{sender}", rc_packet(rc.WRITE_MIDDLE, number, PAYLOAD), one.destination(flow), rc.CLASS_DATA)


def most_waiting(one: Stage, for_ns: int) -> float:
    """The most packets that ever waited or were sent at an uplink of the first T0."""
    most, step = 0, PACKET_NS // 5
    for _ in range(for_ns // step):
        one.run(step)
        most = max(most, *(one.fabric.backlog_ns("p0-t0-0", f"up{number}") for number in range(UPLINKS)))
    return most / PACKET_NS


def flood(one: Stage, starts: list[int], packets: int) -> float:
    """This number of packets of each sender, each begun that late. Returns the most that waited; all of them arrive."""
    for sender, start_ns in enumerate(starts):
        one.at(start_ns, send, one, sender, packets)
    most = most_waiting(one, max(starts) + packets * PACKET_NS)
    one.run()
    for sender in range(len(starts)):
        assert len(one.got[f"h{sender + len(SHAPE.family.below[0])}"]) == packets
    assert not one.ledger().unexplained
    return most


STARTS = st.lists(st.integers(0, 3 * PACKET_NS), min_size=1, max_size=UPLINKS)


@given(STARTS, st.integers(0, 99))
def test_with_the_shortest_queue_at_most_a_packet_a_sender_waits(starts: list[int], seed: int) -> None:
    """Each of n uplinks is as fast as a sender. While a packet comes in, each of the others brings at most two ends of
    packets, so there is an uplink at which no more than one waits behind that which is sent."""
    assert flood(stage(EXACT, seed=seed), starts, 40) <= 2


@given(STARTS, st.integers(0, 99))
def test_with_bands_what_waits_stays_in_the_least_of_them(starts: list[int], seed: int) -> None:
    """All of n uplinks above the first band would need what k <= n senders do not bring; and within a band the draw
    decides, so one packet of each sender may come on top."""
    fresh = Looks(looks_of(SHAPE).levels, 0)
    in_band = fresh.levels[0] / FRAME_BYTES
    assert flood(stage(fresh, seed=seed), starts, 60) <= in_band + len(starts) + 1


def test_a_stale_view_makes_a_herd() -> None:
    """All go where it seemed empty, until the next look: k senders bring k packets in each packet's time."""
    waiting = {}
    for looks in (0, PACKET_NS, 20 * PACKET_NS):
        waiting[looks] = flood(stage(EXACT._replace(every_ns=looks)), [0, 1000, 2000, 3000], 80)
    assert waiting[0] <= 2
    assert waiting[PACKET_NS] <= 2 * UPLINKS
    assert waiting[20 * PACKET_NS] >= 20, "three of four packets too many at one uplink, for twenty packets' time"


def test_the_levels_are_shares_of_the_usual_queue_and_a_look_lasts_a_thirteenth_of_t() -> None:
    looks = looks_of(SHAPE)
    assert looks.every_ns == SHAPE.rtt_ns // LOOKS_PER_T
    queue = 3 * SHAPE.port_rate_bps * SHAPE.rtt_ns / 8e9
    assert looks.levels == tuple(int(share * queue) for share in BAND_SHARES)
    assert looks_of(replace(SHAPE, port_rate_bps=100_000_000_000, rtt_ns=13_000)).every_ns == 1000


def used(one: Stage) -> Counter[int]:
    """Data packets that came to each T1 from the first group."""
    counts = one.fabric.port_counts()
    return Counter({t1: counts[f"p0-t1-{t1}", "down0"].in_data for t1 in range(UPLINKS)})


def test_one_flow_uses_all_uplinks_alike_and_control_goes_by_the_hash() -> None:
    one = stage()
    send(one, 0, 400)
    one.run()
    assert min(used(one).values()) >= 0.7 * 100
    destination = one.destination(one.flow("h0", "h4"))
    for number in range(20):
        one.give("h0", rc_packet(rc.ACKNOWLEDGE, number, 8), destination, bth.CLASS_CONTROL)
    one.run()
    counts = one.fabric.port_counts()
    assert [counts[f"p0-t1-{t1}", "down0"].in_control for t1 in range(UPLINKS)].count(0) == UPLINKS - 1


def test_nothing_is_foretold() -> None:
    one = stage()
    with pytest.raises(MissingCapability, match=r"cannot be predicted: .*ecmp\.choose: adaptive"):
        one.fabric.predicted_uplinks([one.flow("h0", "h4")])


def test_a_dead_port_of_its_own_is_out_at_once_and_a_slow_one_gets_its_share() -> None:
    one = stage()
    dead = one.plan.link_by_name["p0-t0-0:p0-t1-1"]
    for sender in range(3):
        send(one, sender, 200)
    one.run(50 * PACKET_NS)
    queued = one.fabric.backlog_ns("p0-t0-0", "up1") / PACKET_NS
    one.fabric.ports_down([dead.far])
    before = used(one)
    one.run()
    arrived = sum(len(one.got[f"h{number}"]) for number in range(4, 7))
    assert 600 - arrived <= queued + 1
    assert (used(one) - before)[1] == 0
    assert not one.ledger((dead.name,)).unexplained
    one.fabric.ports_up([dead.far])
    one.fabric.set_rate(dead.name, SHAPE.port_rate_bps // 4)
    before = used(one)
    for sender in range(3):
        send(one, sender, 400)
    one.run()
    share = (used(one) - before)[1] / 1200
    assert 0.05 <= share <= 0.15, "a quarter of what others carry is 1/13, and what may wait comes on top"


def test_a_far_dead_link_loses_a_share_of_every_flow_unless_switches_know_of_it() -> None:
    for known in (False, True):
        one = stage(far_links=known)
        one.fabric.ports_down([one.plan.link_by_name["p0-t0-1:p0-t1-2"].far])
        for sender in range(3):
            send(one, sender, 100)
        one.run()
        arrived = [len(one.got[f"h{number}"]) for number in range(4, 7)]
        del one.got["h4"][:]
        for number in range(40):
            flow = one.flow("h0", "h4", FIRST_PORT + number)
            one.give("h0", rc_packet(rc.ACKNOWLEDGE, number, 8), one.destination(flow), bth.CLASS_CONTROL)
        one.run()
        assert (len(one.got["h4"]) == 40) == known, "control packets, which are hashed, as well"
        if known:
            assert arrived == [100, 100, 100]
        else:
            assert all(60 <= found <= 90 for found in arrived)


def test_a_t0_without_uplinks_has_no_way() -> None:
    one = stage()
    one.fabric.ports_down([one.plan.link_by_name[f"p0-t0-0:p0-t1-{t1}"].far for t1 in range(UPLINKS)])
    send(one, 0, 3)
    one.run()
    assert one.got["h4"] == []
