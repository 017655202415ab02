"""The selection that weights planes, and flows over planes, one of them slow.

The first part has no network: planes are buckets with a rate each, and a packet's round trip is T and the time of
what is before it in its bucket.
"""

from collections import deque
from random import Random

import pytest

from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE
from mrc_testbed.hosts.mrc.evselect.weighted import LEAST_WEIGHT
from tests.sim.simnet import RATE, Net, T
from tests.sim.streams import fabric, measure, streams

A_T = 32
"""Packets that a whole plane carries in a T."""


class Buckets:
    """Planes with rates, 1 for a whole one, and a sender with work for `load` of what they carry together, and a window
    of 1.5 BDP."""

    def __init__(self, rates, load=0.97, seed=1, planes=4):
        net = Net(planes=planes, uplinks=2, ev_selection="weighted-planes", seed=seed)
        self.evs = net.hosts[0]._peers[1].evs
        self.selection = net.hosts[0]._peers[1].selection
        self.load = load
        self.now = net.now
        self.random = Random(seed)
        self.queues = [0.0] * planes
        self.answers = [deque() for _ in range(planes)]
        """Of each plane, in order: (when heard, path, sent, round trip)."""
        self.become(rates)

    def become(self, rates):
        """Planes carry this from now on."""
        self.rates = list(rates)

    def go(self, ticks):
        """Parts of the planes in the packets of some T, in rates: all parts together are all rates together."""
        packets = round(ticks * self.load * A_T * sum(self.rates))
        counts = [0] * len(self.rates)
        for _ in range(packets):
            self._wait(int(ticks * T / packets))
            if sum(map(len, self.answers)) < 1.5 * A_T * len(self.rates):
                counts[self._send()] += 1
        return [count * sum(self.rates) / sum(counts) for count in counts]

    def _wait(self, pause_ns):
        self.now += pause_ns
        for plane, rate in enumerate(self.rates):
            self.queues[plane] = max(self.queues[plane] - rate * A_T * pause_ns / T, 0)
            answers = self.answers[plane]
            while answers and answers[0][0] <= self.now:
                _, path, sent_ns, took_ns = answers.popleft()
                self.selection.on_round_trip(path, sent_ns, took_ns, self.now)

    def _send(self):
        turn = self.selection.turn
        path = self.selection.take()
        assert path.plane == turn
        assert self.evs.usable(turn)
        self.queues[path.plane] += 1
        waits_t = self.queues[path.plane] / self.rates[path.plane] / A_T
        took_ns = T + int((waits_t + self.random.random() / 10) * T)
        self.answers[path.plane].append((self.now + took_ns, path, self.now, took_ns))
        return path.plane


@pytest.mark.parametrize("rates", [(1, 0.25, 1, 1), (0.5, 0.5, 1, 1), (0.25, 0.25, 0.25, 1), (1, 1, 1, 0.75)])
@pytest.mark.parametrize("seed", [1, 2])
def test_planes_come_to_carry_what_they_can(rates, seed):
    """Measured, seeds 1 to 4: within 0.04."""
    buckets = Buckets(rates, seed=seed)
    buckets.go(60)
    parts = buckets.go(60)
    assert all(abs(part - rate) < 0.1 for part, rate in zip(parts, rates, strict=True)), parts


@pytest.mark.parametrize("load", [0.5, 0.97])
def test_equal_planes_stay_equal_to_a_packet(load):
    buckets = Buckets((1, 1, 1, 1), load)
    parts = buckets.go(60)
    assert max(parts) - min(parts) < 2 / (60 * load * A_T)
    assert buckets.selection.weights == [1, 1, 1, 1]


def test_a_queue_that_all_planes_have_changes_nothing():
    buckets = Buckets((0.25, 0.25, 0.25, 0.25), load=1.05)
    parts = buckets.go(60)
    assert min(buckets.queues) / 0.25 / A_T > 2
    assert max(parts) - min(parts) < 0.02


@pytest.mark.parametrize(("rate", "ticks"), [(1 / 4, 40), (1 / 16, 80)])
def test_a_plane_that_is_well_again_has_its_whole_part(rate, ticks):
    """Measured, seeds 1 to 3: after 26 to 30 and 50 to 58 T."""
    buckets = Buckets((1, rate, 1, 1))
    buckets.go(80)
    assert buckets.selection.weights[1] < 0.5
    buckets.become((1, 1, 1, 1))
    buckets.go(ticks)
    assert buckets.selection.weights == [1, 1, 1, 1]
    parts = buckets.go(20)
    assert max(parts) - min(parts) < 0.01


def test_a_plane_keeps_some_packets_however_slow_it_is():
    buckets = Buckets((1, 0.001, 1, 1), load=0.9)
    buckets.go(60)
    assert buckets.selection.weights[1] >= LEAST_WEIGHT
    assert buckets.go(40)[1] > 0


def test_a_dead_plane_leaves_at_once_and_the_others_keep_their_parts():
    buckets = Buckets((1, 0.25, 1, 1))
    buckets.go(60)
    buckets.evs.close(2)
    assert 2 not in {buckets.selection.take().plane for _ in range(200)}
    for plane in (0, 1, 3):
        buckets.evs.close(plane)
    assert buckets.selection.turn == NO_PLANE
    buckets.evs.open(1)
    assert {buckets.selection.take().plane for _ in range(20)} == {1}


def test_a_retransmission_does_not_take_the_ev_that_lost_it():
    buckets = Buckets((1, 0.25, 1, 1))
    buckets.go(60)
    for avoid in buckets.evs.paths * 20:
        assert buckets.selection.take(avoid) is not avoid


# --- over the network ---

LINE = [(i, i + 4) for i in range(4)]


def slowed(selection):
    """Goodput of four flows over a plane whose T0 has all uplinks at a quarter, from 45 to 75 T after that."""
    net = fabric(ev_selection=selection)
    flows = streams(net, LINE)
    measure(net, flows, 15)
    for uplink in range(4):
        net.ports.fabric.set_rate(net.ports.uplink(0, 1, uplink).name, RATE // 4)
    measure(net, flows, 45)
    return measure(net, flows, 30)


def test_a_slow_plane_costs_what_it_does_not_carry():
    """There is 0.81 of line rate. Measured, seeds 1 to 3: 0.78 to 0.83."""
    assert min(slowed("weighted-planes")) > 0.72


@pytest.mark.nightly
def test_mrc_as_written_is_held_up_by_a_slow_plane():
    """Strict turns are worth 0.25; losses that were none, and copies of what was only late, make it more or less."""
    shares = slowed("adaptive")
    assert sum(shares) / len(shares) < 0.6
