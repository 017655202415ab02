"""Stalls: a QP has work outstanding and nothing of it is acknowledged."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common.events import StallEnded
from mrc_testbed.hosts.common.stalls import LEAST_STALL_NS, StallWatch, least_stall_ns, stalled_since
from mrc_testbed.hosts.common.timers import NEVER
from tests.sim.simnet import MS, Net, QpError, T, pattern
from tests.sim.test_transfer import PACKET, transfer

LEAST = 40 * MS
WORDS = st.lists(st.tuples(st.sampled_from(["posted", "progress", "idle"]), st.integers(0, 3 * LEAST)), max_size=30)


def told(words):
    """A watch that has been told these things, each so long after the one before; and what it found, and when."""
    found, now = [], 1000 * MS
    watch = StallWatch(7, 1, LEAST, found)
    for word, later in words:
        now += later
        if word == "idle":
            watch.idle()
        elif word == "posted" or watch.since_ns != NEVER:
            getattr(watch, word)(now)
    return watch, found, now


@given(WORDS)
def test_stalls_are_longer_than_the_least_and_never_overlap(words):
    watch, found, now = told(words)
    assert all(stall.end_ns - stall.begin_ns > LEAST for stall in found)
    assert all(before.end_ns <= after.begin_ns for before, after in pairwise(found))
    assert watch.stalled(now + 2 * LEAST) == (watch.since_ns != NEVER and now + 2 * LEAST - watch.since_ns > LEAST)


@given(WORDS)
def test_the_sum_of_all_silences_is_the_time_in_which_work_was_outstanding(words):
    """With nothing too short to be told, every moment with work outstanding is in exactly one stall."""
    found, now, outstanding, since = [], 0, 0, None
    watch = StallWatch(7, 1, -1, found)
    for word, later in words:
        now += later
        if word == "posted":
            watch.posted(now)
            since = now if since is None else since
        elif since is not None:
            watch.progress(now)
            outstanding += now - since
            since = now
            if word == "idle":
                watch.idle()
                since = None
    assert sum(stall.end_ns - stall.begin_ns for stall in found) == outstanding


def test_a_stall_lasts_longer_than_two_round_trips_or_20_ms():
    assert least_stall_ns(40 * MS) == 80 * MS
    assert least_stall_ns(MS) == LEAST_STALL_NS == 20 * MS


def test_those_that_go_on_are_told_by_qp():
    (first, _, now), (second, _, _) = told([("posted", 0)]), told([])
    assert stalled_since([first, second], now + LEAST) == {}
    assert stalled_since([first, second], now + LEAST + 1) == {7: now}


def stalls(net, host=0):
    return net.events_of(StallEnded, host)


def test_a_clean_transfer_and_a_pause_are_no_stall():
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(300 * PACKET))
    net.run(within=50 * T, must=False)
    transfer(net, flow, pattern(300 * PACKET))
    assert not stalls(net)
    assert not stalls(net, 1)
    assert net.hosts[0].stalled(net.now + 100 * T) == {}


def test_a_silent_network_is_one_stall_from_the_last_acknowledgement_to_the_next():
    net = Net()
    flow = net.join()
    flow.write(pattern(900 * PACKET))
    net.run(within=3 * T, must=False)
    cut_ns = net.now
    net.cut()
    net.run(within=10 * T, must=False)
    assert not stalls(net)
    ((qpn, since_ns),) = net.hosts[0].stalled(net.now).items()
    assert qpn == flow.qpn[0]
    assert cut_ns - T / 4 < since_ns <= cut_ns + T
    net.heal()
    heal_ns = net.now
    net.run(lambda: net.completed(), within=100 * T)
    (stall,) = stalls(net)
    assert (stall.qpn, stall.peer, stall.begin_ns) == (flow.qpn[0], 1, since_ns)
    assert heal_ns < stall.end_ns < net.now
    assert net.hosts[0].stalled(net.now) == {}


def test_what_is_posted_into_a_silent_network_stalls_from_when_it_was_sent():
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(10 * PACKET))
    net.cut()
    net.run(within=20 * T, must=False)
    posted_ns = net.now
    flow.write(pattern(PACKET))
    net.run(within=5 * T, must=False)
    assert net.hosts[0].stalled(net.now) == {flow.qpn[0]: posted_ns}


def test_the_stall_of_a_qp_that_dies_goes_on():
    net = Net()
    flow = net.join()
    net.cut()
    posted_ns = net.now
    flow.write(pattern(PACKET))
    net.run(lambda: net.events_of(QpError), within=1000 * T)
    assert not stalls(net)
    assert net.hosts[0].stalled(net.now + 100 * T) == {flow.qpn[0]: posted_ns}


def test_a_reset_qp_has_no_stall():
    net = Net()
    flow = net.join()
    net.cut()
    flow.write(pattern(PACKET))
    net.run(within=5 * T, must=False)
    net.hosts[0].reset_qp(flow.qpn[0])
    assert net.hosts[0].stalled(net.now) == {}
