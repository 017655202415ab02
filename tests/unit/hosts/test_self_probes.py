"""The probes of a host to itself: spread evenly, each target once a round, and every one of them is heard or lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.self_probes import DueProbe, ProbePart, SelfProbes

PERIOD_NS = 200_000_000
TIMEOUT_NS = 80_000_000
RTT_NS = 11_000_000


class World:
    """Drives the probes as a daemon does: it looks when they want it, and answers come after RTT_NS."""

    def __init__(self, targets: int, dead: frozenset[int] = frozenset(), seed: int = 1, late_ns: int = 0) -> None:
        self.probes = SelfProbes(targets, PERIOD_NS, TIMEOUT_NS, seed, 0)
        self.sent: list[tuple[int, DueProbe]] = []
        self.parts: list[ProbePart] = []
        self.now_ns = 0
        self._dead, self._late_ns, self._dice = dead, late_ns, Prng(seed)
        self._back: list[tuple[int, int]] = []

    def run(self, until_ns: int, sending: bool = True) -> None:
        while True:
            wanted_ns = min(self.probes.next_timeout(), self.probes.next_probe() if sending else NEVER)
            at_ns = max(self.now_ns, wanted_ns) + (self._dice.below(self._late_ns) if self._late_ns else 0)
            if at_ns > until_ns:
                return
            self.turn(at_ns, sending)

    def turn(self, at_ns: int, sending: bool = True) -> None:
        self.now_ns = at_ns
        while self._back and self._back[0][0] <= at_ns:
            arrival_ns, sequence = self._back.pop(0)
            self.probes.heard(sequence, arrival_ns)
        self.probes.give_up(at_ns)
        while sending and (probe := self.probes.poll_probe(at_ns)) is not None:
            self.sent.append((at_ns, probe))
            if probe.target not in self._dead:
                self._back.append((at_ns + RTT_NS, probe.sequence))
        while (over := self.probes.poll_part()) is not None:
            self.parts.append(over)


@given(st.integers(1, 40), st.integers(0, 1 << 32))
def test_each_target_is_probed_once_a_round_and_probes_are_even(targets: int, seed: int) -> None:
    world = World(targets, seed=seed)
    world.run(5 * PERIOD_NS)
    rounds = [world.sent[n : n + targets] for n in range(0, len(world.sent), targets)]
    assert all(Counter(probe.target for _, probe in one) == Counter(range(targets)) for one in rounds[:-1])
    gaps = {later - sooner for (sooner, _), (later, _) in zip(world.sent, world.sent[1:], strict=False)}
    assert all(abs(gap - PERIOD_NS / targets) <= 1 for gap in gaps)
    assert [probe.sequence for _, probe in world.sent] == list(range(len(world.sent)))


def test_the_order_is_drawn_again_for_each_round() -> None:
    world = World(12)
    world.run(20 * PERIOD_NS)
    both = list(zip(world.parts[::2], world.parts[1::2], strict=False))
    orders = {(*one.order, *other.order) for one, other in both}
    assert len(orders) == len(both) >= 18
    assert all(sorted(order) == list(range(12)) for order in orders)
    first = Counter(order[0] for order in orders)
    assert len(first) > 5, "no target is always the first"


@given(st.integers(1, 20), st.data())
def test_every_probe_of_a_part_that_is_over_was_heard_or_is_lost(targets: int, data: st.DataObject) -> None:
    dead = data.draw(st.frozensets(st.integers(0, targets - 1)))
    world = World(targets, dead, data.draw(st.integers(0, 999)), data.draw(st.sampled_from((0, 30_000_000, PERIOD_NS))))
    world.run(30 * PERIOD_NS)
    assert world.parts
    for before, after in zip(world.parts, world.parts[1:], strict=False):
        assert before.end_ns <= after.begin_ns
    left = {probe.sequence: (at_ns, probe.target) for at_ns, probe in world.sent}
    sequence = 0
    for over in world.parts:
        own = [left[number] for number in range(sequence, sequence + len(over.order))]
        sequence += len(own)
        assert [target for _, target in own] == over.order
        assert sorted(over.lost) == sorted((target, at_ns) for at_ns, target in own if target in dead)
        assert over.begin_ns <= own[0][0]
        assert over.rtt_ns == (() if dead.issuperset(over.order) else (RTT_NS, RTT_NS))


def test_an_answer_that_waits_in_the_socket_of_a_late_host_is_no_loss() -> None:
    world = World(4)
    world.run(PERIOD_NS)
    world.turn(PERIOD_NS * 3)
    world.run(5 * PERIOD_NS)
    assert [over.lost for over in world.parts] == [[]] * len(world.parts)
    assert max(over.late_ns for over in world.parts) > TIMEOUT_NS


def test_who_was_late_by_more_than_a_timeout_sends_no_burst() -> None:
    world = World(10)
    world.run(PERIOD_NS)
    before = len(world.sent)
    world.turn(PERIOD_NS * 10)
    assert len(world.sent) == before + 1
    world.run(PERIOD_NS * 10 + PERIOD_NS // 2)
    assert len(world.sent) - before == pytest.approx(6, abs=1)


def test_what_is_late_by_less_is_caught_up() -> None:
    world = World(10)
    world.run(PERIOD_NS)
    before, due_ns = len(world.sent), world.probes.next_probe()
    world.turn(due_ns + 3 * PERIOD_NS // 10)
    assert len(world.sent) == before + 4


def test_hosts_that_begin_together_are_not_in_step() -> None:
    first = {SelfProbes(4, PERIOD_NS, TIMEOUT_NS, seed, 0).next_probe() for seed in range(8)}
    assert len(first) > 4
    assert all(0 <= at_ns < PERIOD_NS // 4 for at_ns in first)


def test_an_answer_counts_once_and_in_time() -> None:
    probes = SelfProbes(1, PERIOD_NS, TIMEOUT_NS, 1, 0)
    at_ns = probes.next_probe()
    probe = probes.poll_probe(at_ns)
    assert probe == (0, 0)
    assert probes.heard(0, at_ns + RTT_NS)
    assert not probes.heard(0, at_ns + RTT_NS)
    assert not probes.heard(7, at_ns + RTT_NS)
    at_ns += PERIOD_NS
    assert probes.poll_probe(at_ns) == (1, 0)
    assert probes.next_timeout() == at_ns + TIMEOUT_NS
    probes.give_up(at_ns + TIMEOUT_NS)
    assert not probes.heard(1, at_ns + TIMEOUT_NS)
    assert [over.lost for over in iter(probes.poll_part, None)] == [[], [(0, at_ns)]]


@pytest.mark.parametrize("numbers", [(0, 10, 10), (4, 3, 10), (1, 10, 0)])
def test_times_that_are_none_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="probes need a target, a time-out, and a period"):
        SelfProbes(*numbers, 1, 0)
