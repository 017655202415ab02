"""The retry budget of a QP: a try is an interval, and paths that are good again carry data at once."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.inflight import OUTSTANDING
from tests.sim.simnet import EvChanged, Net, QpError, T
from tests.sim.test_paths import endless

LINEAR, EXPONENTIAL = 2, 2
LAST_T = 16
"""The end of a budget in which a healed path can no longer save a QP: its probes take so long."""
ASKED_T = 16
"""A short cut leaves EVs in use, which the next question, every 5 T, finds guilty; then they have to pass probes."""


def ends(linear=LINEAR, exponential=EXPONENTIAL):
    """When the tries of a QP that hears nothing end, in timeouts."""
    return list(accumulate([1] * (linear + 1) + [2 << n for n in range(exponential)]))


class Dark:
    """One stream, whose paths are cut at 10 T for `dark_t` and then healed, over and over; what became of it."""

    def __init__(self, *dark_t, light_t=40, cut=None, **config):
        self.net = net = Net(**{"planes": 2, "uplinks": 2} | config)
        self.flow = net.join()
        self.sender = net.hosts[0]._qps[self.flow.qpn[0]].sender
        self.rto_ns = self.sender.peer.timing.rto_ns()
        self.good_ns = self.flows_ns = None
        self.acknowledged = 0
        net.listeners.append(self._hear)
        net.taps.append(self._watch)
        endless(net, self.flow)
        net.run(within=10 * T, must=False)
        for dark in dark_t:
            before = net.counters()["timeouts"]
            net.cut(**cut or {})
            net.run(within=round(dark * T), must=False)
            net.heal()
            self.tries = net.counters()["timeouts"] - before
            self.healed_ns = net.now
            self.acknowledged, self.flows_ns = self.sender.flight.una, None
            self.good_ns = net.now if self.sender.peer.evs.paths else None
            net.run(within=light_t * T, must=False)

    def _hear(self, host, event):
        if host == 0 and self.good_ns is None and isinstance(event, EvChanged) and event.new is EvState.GOOD:
            self.good_ns = self.net.now

    def _watch(self, *_):
        """At every packet: nothing fills the window that is older than the timeout and one search for such."""
        flight, now = self.sender.flight, self.net.now
        oldest_ns = now - max(self.rto_ns, self.sender.peer.timing.rto_ns()) * 17 // 16
        for seq in range(flight.una, flight.next):
            sent_ns = flight.at(seq).sent_ns
            old = flight.at(seq).state == OUTSTANDING and sent_ns < oldest_ns
            assert not old, f"{(now - sent_ns) / T:.1f} T under way"
        if self.flows_ns is None and flight.una > self.acknowledged:
            self.flows_ns = now

    @property
    def back_t(self):
        """How long after the first EV was GOOD again something new was acknowledged."""
        assert self.flows_ns is not None
        return (self.flows_ns - self.good_ns) / T


@pytest.mark.parametrize(("dark_t", "fit"), [(25, 3), (50, 7), (125, 10)])
def test_all_paths_are_dark_for_a_while(dark_t, fit):
    """As many tries as intervals fit: packet by packet it was 11, 12, and for 18.6 timeouts the end of the QP."""
    story = Dark(dark_t)
    assert story.tries == fit
    assert story.net.counters()["timeouts"] <= fit + 2, "and those until the first EV is GOOD again"
    assert not story.net.events_of(QpError)
    assert story.back_t < 3
    assert story.sender.flight.una > story.acknowledged + 100


@pytest.mark.parametrize("control", ["nscc", "fixed"])
def test_a_stream_without_paths_ends_with_its_budget(control):
    net = Net(planes=2, uplinks=2, linear_tries=LINEAR, exponential_tries=EXPONENTIAL, congestion_control=control)
    endless(net, net.join())
    net.run(within=10 * T, must=False)
    rto_ns = net.hosts[0]._peers[1].timing.rto_ns()
    net.cut()
    taken = net.run(lambda: net.events_of(QpError), within=100 * T)
    assert net.counters()["timeouts"] == LINEAR + EXPONENTIAL + 1
    assert ends()[-1] * rto_ns - T <= taken <= ends()[-1] * rto_ns + T


@settings(max_examples=6, deadline=None)
@given(
    dark_t=st.lists(st.floats(0.5, ends()[-1] * 6.7 - LAST_T), min_size=1, max_size=2),
    cut=st.sampled_from([{}, {"src": 0}, {"src": 1}]),
    control=st.sampled_from(["nscc", "fixed"]),
    timeout=st.sampled_from([0, 17, 18]),
    uplinks=st.integers(1, 3),
    seed=st.integers(0, 1 << 30),
)
@example(dark_t=[44], cut={}, control="nscc", timeout=0, uplinks=2, seed=1)
def test_no_dark_interval_within_the_budget_kills_a_qp(dark_t, cut, control, timeout, uplinks, seed):
    tries = {"linear_tries": LINEAR, "exponential_tries": EXPONENTIAL, "timeout": timeout}
    story = Dark(*dark_t, cut=cut, congestion_control=control, uplinks=uplinks, seed=seed, **tries)
    assert not story.net.events_of(QpError)
    dark_ns, slack_ns = round(dark_t[-1] * T), story.rto_ns // 8
    fit = [sum(end * story.rto_ns <= ns for end in ends()) for ns in (dark_ns - slack_ns, dark_ns + 2 * T)]
    assert fit[0] <= story.tries <= fit[1], "one for each interval"
    assert story.back_t < (3 if story.good_ns > story.healed_ns else ASKED_T)
