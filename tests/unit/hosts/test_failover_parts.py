"""What failover is made of, by its laws: the table of ports, the parts of writes, their flags."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.rc.failover import FailoverTimes, PortAsker, PortListener, RcPortInput, RcPortState, RcPortTable
from mrc_testbed.hosts.rc.parts import MOST_OPEN, ArrivedParts, FlagsSeen, cut, label, parts_of

PORTS = st.integers(1, 16)


@given(PORTS, st.lists(st.tuples(st.integers(0, 15), st.sampled_from(RcPortInput)), max_size=40))
def test_one_port_at_the_most_is_not_ok_and_a_good_one_carries(ports, events):
    table = RcPortTable(ports)
    for port, event in events:
        before = list(table.states)
        if not table.move(port % ports, event):
            assert table.states == before
    bad = [port for port in range(ports) if table.states[port] is not RcPortState.OK]
    assert len(bad) <= 1
    for port in range(ports):
        carrier = table.carrier_of(port)
        assert table.states[carrier] is RcPortState.OK or ports == 1
        assert carrier == (port if port not in bad else (port + 1) % ports)


@given(st.integers(0, 1 << 21), PORTS)
def test_parts_cover_a_write_and_differ_by_less_than_their_grain_an_equal_share(size, ports):
    places = list(cut(size, ports))
    assert len(places) == parts_of(ports) >= 2
    assert places[0][0] == 0
    assert max(end for _, end in places) == size
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(places))
    assert all(0 <= end - begin < size / ports + 129 for begin, end in places)


@given(st.data(), PORTS, st.integers(0, 5000))
def test_parts_in_any_order_give_requests_in_theirs_with_their_immediates(data, ports, before):
    arrived = ArrivedParts(ports)
    parts = parts_of(ports)
    for request in range(before % 100):
        for slot in range(parts):
            arrived.take(label(request, slot, None))
    first = arrived.base
    immediates = data.draw(st.lists(st.none() | st.integers(0, (1 << 32) - 1), min_size=1, max_size=MOST_OPEN))
    sent = [(first + at, slot) for at in range(len(immediates)) for slot in range(parts)]
    order = data.draw(st.permutations(sent))
    taken = data.draw(st.integers(0, len(order)))
    whole = []
    for request, slot in order[:taken]:
        whole += arrived.take(label(request, slot, immediates[request - first])) or []
    seen = FlagsSeen(arrived.base & 0xFFFFFF, arrived.flags(), first)
    there = {(request, slot) for request, slot in sent if seen.arrived(request, slot)}
    assert there == set(order[:taken])
    for request, slot in order[:taken]:
        assert arrived.take(label(request, slot, None)) is None
    for request, slot in order[taken:]:
        whole += arrived.take(label(request, slot, immediates[request - first])) or []
    assert whole == immediates


@given(st.integers(0, 10**12))
def test_a_sender_asks_in_five_batches_and_then_gives_up(begin):
    asker = PortAsker(FailoverTimes(), begin)
    seen = []
    while (messages := asker.on_time(asker.wake_ns)) is not None:
        assert not asker.on_time(asker.wake_ns - 1)
        seen.append(list(messages))
    assert seen == [list(range(first, first + 5)) for first in range(0, 25, 5)]


@given(st.lists(st.integers(0, 30), max_size=60))
def test_a_receiver_needs_six_in_sequence(numbers):
    listener = PortListener(FailoverTimes(), 0)
    answered = any([listener.on_message(number, 0) for number in numbers])
    # The first of a sequence counts only where it is the one that was awaited from the start.
    run, best, awaited = 0, 0, 0
    for number in numbers:
        run = run + 1 if number == awaited else 0
        awaited = number + 1
        best = max(best, run)
    assert answered == (best > 5)
