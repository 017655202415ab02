"""A host with one slow port of four may receive more if that port is slower: the cause."""

from __future__ import annotations

import pytest

from tests.sim.simnet import RATE, Net, T
from tests.sim.test_transfer import PACKET

TICKS = 60
FRAME = PACKET + 142
"""Bytes on the wire of a full packet."""


def received(share: float, seed: int, **config: int) -> tuple[float, list[int], dict[str, int]]:
    """Host 2's share of line rate with one port at `share` of its rate while all four hosts send and receive; what its
    sender put on each plane, and that host's counters of the whole run."""
    story = Net(hosts=4, switches=True, seed=seed, **config)
    for host in range(4):
        story.join(host, (host + 2) % 4, region_bytes=1 << 25).write(bytes(1 << 25), source=host)
    story.run(within=20 * T, must=False)
    story.ports.fabric.set_rate(story.ports.host_link(2, 1).name, int(RATE * share))
    story.run(within=20 * T, must=False)
    placed, sent = story.counters(2)["bytes_delivered"], story.plane_packets(0, 2)
    story.run(within=TICKS * T, must=False)
    placed = story.counters(2)["bytes_delivered"] - placed
    planes = [new - old for old, new in zip(sent, story.plane_packets(0, 2), strict=True)]
    return placed / PACKET * FRAME * 8e9 / (4 * RATE * TICKS * T), planes, story.counters()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_port_at_a_quarter_loses_its_evs_and_one_at_a_half_does_not(seed):
    """A packet that waits for a port at a half is trimmed, which costs no EV at the last hop, before R takes it for
    lost. At a quarter it is later than that: the plane loses its EVs, and the others keep their rate."""
    half, planes, counters = received(1 / 2, seed)
    assert counters["evs_retired"] == 0
    assert max(planes) - min(planes) <= 2
    quarter, planes, counters = received(1 / 4, seed)
    assert counters["lost_reordered"] >= counters["evs_retired"] > 0
    assert planes[1] < 0.5 * min(planes[0], *planes[2:])
    assert quarter > 0.6
    assert half < 0.9


@pytest.mark.parametrize("seed", [1, 2])
def test_where_what_is_late_is_not_taken_for_lost_less_rate_is_less_data(seed):
    half, _, _ = received(1 / 2, seed, reorder_ns=20 * T)
    quarter, planes, counters = received(1 / 4, seed, reorder_ns=20 * T)
    assert counters["evs_retired"] == 0
    assert max(planes) - min(planes) <= 2
    assert quarter < 0.75 * half
