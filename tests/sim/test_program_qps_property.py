"""What holds for QPs of programs whatever the network and the programs do: a write that is complete is at the peer,
once; immediates come in the order in which they were posted, after all that was posted before them."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.common.events import ImmediateDelivered, WriteCompleted
from tests.examples import examples
from tests.sim.programs import ADDRESS, MS, PAYLOAD, TRANSPORTS, Pair, Ram, T, is_data, network
from tests.sim.simnet import pattern

REGIONS, REGION_BYTES = 3, 12 * 8 * PAYLOAD
FAILURES = {"retries exceeded", "remote operation error", "the peer's immediate found no posted receive"}


class Story:
    """Messages in both directions, each with a place of its own in one of the peer's regions, and a judge who looks at
    every event when it comes."""

    def __init__(self, transport, seed, loss, delay_ns, messages, receives):
        self.net = network(transport, seed)
        self.pair = Pair(self.net)
        self.receives = receives
        self.rams = [[Ram(REGION_BYTES, ADDRESS + (number << 24)) for number in range(REGIONS)] for _ in (0, 1)]
        for end, rams in zip(self.pair.ends, self.rams, strict=True):
            end.domain.windows = {(number + 1) << 8: ram.window() for number, ram in enumerate(rams)}
        self.wanted = ([], [])
        """Of each sender: (memory at the peer, where in it, data, immediate)."""
        self.delivered, self.complete = [0, 0], [0, 0]
        self.net.listeners.append(self.judge)
        self.lose(Random(seed), *loss)
        self.start(delay_ns, messages)

    def lose(self, random, data, answers):
        def tap(src, token, traffic_class, packet):
            return random.random() >= (data if is_data(packet) else answers)

        self.net.taps.append(tap)

    def start(self, delay_ns, messages):
        first, second = self.pair.ends
        first.receive_from(second, self.receives)
        first.send()
        self.post_all(0, messages[0])
        self.net.run(within=delay_ns, must=False)
        second.receive_from(first, self.receives)
        second.send()
        self.post_all(1, messages[1])

    def post_all(self, host, messages):
        used = [0] * REGIONS
        for number, (region, size, immediate) in enumerate(messages):
            ram, data = self.rams[1 - host][region], pattern(size, number + 1)
            place, used[region] = used[region], used[region] + size
            self.wanted[host].append((ram, place, data, number if immediate else None))
            self.pair.ends[host].post(data, ram.address + place, (region + 1) << 8, number if immediate else None)

    def judge(self, host, event):
        if isinstance(event, WriteCompleted):
            self.complete[host] += 1
            assert event.wr_id == self.complete[host], "in the order of posting"
            self.assert_whole(host, event.wr_id)
            needed = sum(each[3] is not None for each in self.wanted[host][: event.wr_id])
            assert self.delivered[1 - host] >= needed, "complete, and its immediate was not told"
        elif isinstance(event, ImmediateDelivered):
            sent = [(number, each) for number, each in enumerate(self.wanted[1 - host]) if each[3] is not None]
            number, (_, _, data, immediate) = sent[self.delivered[host]]
            assert (event.immediate, event.length) == (immediate, len(data))
            self.assert_whole(1 - host, number + 1)
            self.delivered[host] += 1
            assert self.delivered[host] <= self.receives

    def assert_whole(self, host, count):
        for ram, place, data, _ in self.wanted[host][:count]:
            assert ram.bytes[place : place + len(data)] == data

    def end(self):
        """Until both directions are through, or both have failed."""
        self.net.run(lambda: all(map(self.is_over, (0, 1))), within=50_000 * T)
        self.net.run(within=20 * T, must=False)
        for host in (0, 1):
            for ram in self.rams[1 - host]:
                assert max(ram.times) <= 1, "placed twice"
            posted, needed = len(self.wanted[host]), sum(each[3] is not None for each in self.wanted[host])
            failures = self.pair.ends[host].failures()
            assert set(failures) <= FAILURES
            if not failures:
                assert self.complete[host] == posted
                assert self.delivered[1 - host] == needed

    def is_over(self, host):
        return self.complete[host] == len(self.wanted[host]) or self.pair.ends[host].failures()


MESSAGES = st.lists(
    st.tuples(
        st.integers(0, REGIONS - 1),
        st.sampled_from([0, 1, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 3 * PAYLOAD, 8 * PAYLOAD]),
        st.booleans(),
    ),
    max_size=12,
)
STORIES = given(
    seed=st.integers(0, 1 << 16),
    loss=st.tuples(st.sampled_from([0.0, 0.02, 0.1, 0.2]), st.sampled_from([0.0, 0.05, 0.2])),
    delay_ns=st.sampled_from([0, 60 * MS, 2_500 * MS]),
    messages=st.tuples(MESSAGES, MESSAGES),
    receives=st.sampled_from([0, 1, 5, 12]),
)


@pytest.mark.parametrize("transport", TRANSPORTS)
@settings(max_examples=examples(100), deadline=None)
@STORIES
def test_complete_means_there_once_and_in_order(transport, seed, loss, delay_ns, messages, receives):
    Story(transport, seed, loss, delay_ns, messages, receives).end()


@pytest.mark.nightly
@pytest.mark.parametrize("transport", TRANSPORTS)
@settings(max_examples=examples(1000), deadline=None)
@STORIES
def test_complete_means_there_once_and_in_order_in_many_stories(transport, seed, loss, delay_ns, messages, receives):
    Story(transport, seed, loss, delay_ns, messages, receives).end()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("seed", range(3))
def test_receives_enough_and_little_loss_fail_nothing(transport, seed):
    random = Random(seed)
    sizes = [0, 1, PAYLOAD, 5 * PAYLOAD + 3]
    messages = [[(random.randrange(REGIONS), random.choice(sizes), True) for _ in range(12)] for _ in (0, 1)]
    story = Story(transport, seed, (0.05, 0.05), 60 * MS, messages, 12)
    story.end()
    assert [end.failures() for end in story.pair.ends] == [[], []]
    assert story.delivered == [12, 12]
