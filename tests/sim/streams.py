"""Flows that never end, on a fabric of 8 hosts with real queues, and what they achieve."""

from __future__ import annotations

from mrc_testbed.hosts.common.events import WriteCompleted
from mrc_testbed.hosts.mrc.events import EvChanged
from mrc_testbed.hosts.mrc.evstate import EvState
from tests.sim.simnet import RATE, Net, T

SIZE = 256 * 4096
LINE_RATE = 4 * RATE * 4096 / (4096 + 142) / 8e9
"""Payload bytes per ns of four ports."""


class Stream:
    """One flow. Two writes are always posted, or, with `every_t`, one at each interval of this length."""

    def __init__(self, net, src, dst, size=SIZE, every_t=None):
        self.net, self.src, self.dst = net, src, dst
        self.flow = net.join(src, dst)
        self.data = bytes(size)
        self.posted = self.completed = 0
        self.on = True
        self.every = every_t and int(every_t * T)
        self.next = net.now
        if self.every:
            net.taps.append(self._clock)
        else:
            self._post()
            self._post()
        net.listeners.append(self._heard)
        self.mark()

    def _post(self):
        self.posted += 1
        self.flow.write(self.data, wr_id=self.posted)

    def _clock(self, *_):
        while self.on and self.net.now >= self.next:
            self.next += self.every
            self._post()

    def _heard(self, host, event):
        if host == self.src and isinstance(event, WriteCompleted) and event.qpn == self.flow.qpn[self.src]:
            self.completed += 1
            if self.on and not self.every:
                self._post()

    def idle(self):
        """Is everything posted complete?"""
        return self.completed == self.posted

    def received(self):
        """Payload bytes placed."""
        return self.net.hosts[self.dst]._qps[self.flow.qpn[self.dst]].receiver._received_bytes

    def mark(self):
        """Measure from here."""
        self._marked = self.received(), self.net.now

    def share(self):
        """Goodput since `mark`, of the line rate of one host."""
        was, begin = self._marked
        return (self.received() - was) / (self.net.now - begin) / LINE_RATE


def fabric(**settings):
    """8 hosts in two groups of 4, 4 planes, 4 T1 a plane unless said otherwise. All paths have been probed, as the
    daemon does before it sends."""
    net = Net(**{"hosts": 8, "switches": True} | settings)
    for host, endpoint in net.hosts.items():
        for peer in net.hosts:
            if peer != host:
                endpoint.probe_paths(peer, net.now)
    net.run(within=4 * T, must=False)
    return net


def streams(net, pairs, **settings):
    """Flows between (source, destination) pairs."""
    return [Stream(net, src, dst, **settings) for src, dst in pairs]


def measure(net, flows, ticks):
    """Goodput of each flow over the next `ticks` T, as share of line rate."""
    for flow in flows:
        flow.mark()
    net.run(within=ticks * T, must=False)
    return [flow.share() for flow in flows]


def sums(net, *names):
    """Counters over all hosts."""
    return {name: sum(net.counters(host)[name] for host in net.hosts) for name in names}


def bad(event):
    """Has an EV been retired?"""
    return isinstance(event, EvChanged) and event.new is EvState.ASSUMED_BAD
