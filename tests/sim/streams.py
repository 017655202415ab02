"""Flows that never end, on a fabric of 8 hosts with real queues, and what they achieved."""

from __future__ import annotations

from hosts.core.events import WriteCompleted
from tests.sim.simnet import RATE, EvChanged, Net, T
from hosts.core.evstate import EvState

SIZE = 256 * 4096
LINE_RATE = 4 * RATE * 4096 / (4096 + 142) / 8e9
"""Payload bytes per ns of four ports."""


class Stream:
    """One flow that always has two writes posted."""

    def __init__(self, net, src, dst):
        self.net, self.src, self.dst = net, src, dst
        self.flow = net.join(src, dst)
        self.data = bytes(SIZE)
        self.posted = 0
        self.on = True
        net.listeners.append(self._more)
        for _ in range(2):
            self._post()
        self._marked = 0, net.now

    def _post(self):
        self.posted += 1
        self.flow.write(self.data, wr_id=self.posted)

    def _more(self, host, event):
        if self.on and host == self.src and isinstance(event, WriteCompleted) and event.qpn == self.flow.qpn[self.src]:
            self._post()

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

    def window(self):
        """Congestion window, bytes."""
        return self.net.hosts[self.src]._qps[self.flow.qpn[self.src]].sender._cc.window


def fabric(warm=True, **settings):
    """8 hosts in two groups of 4, 4 planes, 4 T1 a plane. `warm`: all paths have been probed, as the daemon does."""
    net = Net(**{"hosts": 8, "switches": True} | settings)
    if warm:
        for host, endpoint in net.hosts.items():
            for peer in net.hosts:
                if peer != host:
                    endpoint.probe_paths(peer, net.now)
        net.run(within=4 * T, must=False)
    return net


def streams(net, pairs):
    """Flows between (source, destination) pairs."""
    return [Stream(net, src, dst) for src, dst in pairs]


def measure(net, flows, ticks):
    """Goodput of each flow over the next `ticks` T, as share of line rate."""
    for flow in flows:
        flow.mark()
    net.run(within=ticks * T, must=False)
    return [flow.share() for flow in flows]


def sums(net, *names):
    """Counters over all hosts."""
    return {name: sum(net.counters(host)[name] for host in net.hosts) for name in names}
