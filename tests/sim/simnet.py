"""Endpoints joined by the network of runs in virtual time, or by paths that only delay, under its clock.

Verbs for stories: `join` two hosts, `write`, `run` until something is so (with a deadline in virtual time), and
`cut`/`heal`/`worsen` paths. Every run is bounded in steps too, so that a livelock fails instead of hanging.

With `switches`, packets pass the ports of testbed/virtual. What no port does, a path does behind them (`SimPath`), or
in their place: it delays, and where a story wants it, loses, repeats or marks.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from random import Random

from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, WriteCompleted
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.endpoint import Endpoint
from mrc_testbed.hosts.mrc.events import EvChanged, PlaneChanged, PortChanged
from mrc_testbed.hosts.mrc.plugins import NO_PLUGINS
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.routes import Routing
from tests.sim.ports import TwoGroups

MS = 1_000_000
T = 20 * MS
RATE = 25_000_000
PORT = 0xC000
MAX_STEPS = 2_000_000
MOST_GARBAGE_BYTES = 1 << 27
"""A net is cyclic garbage with regions of megabytes, and Python's collector counts objects, not bytes."""


class SimPath:
    """One direction of one path: first in, first out, `loss` and `duplicate` are probabilities."""

    def __init__(self, delay_ns):
        self.delay_ns = delay_ns
        self.jitter_ns = 0
        self.loss = 0.0
        self.dead = False
        self.ce = False
        self.duplicate = 0.0
        self.last_arrival = 0


class Flow:
    """One QP pair, both directions."""

    def __init__(self, net, a, b, qpn_a, qpn_b, attributes_a, attributes_b):
        self.net, self.a, self.b = net, a, b
        self.qpn = {a: qpn_a, b: qpn_b}
        self.attributes = {a: attributes_a, b: attributes_b}

    def other(self, host):
        return self.b if host == self.a else self.a

    def write(self, data, offset=0, wr_id=1, immediate=None, source=None):
        """Write `data` to `offset` of the other side's region."""
        source = self.a if source is None else source
        remote = self.attributes[self.other(source)]
        self.net.hosts[source].post_write(self.qpn[source], data, remote.region_address + offset, wr_id, immediate)

    def region(self, host=None):
        host = self.b if host is None else host
        return self.net.hosts[host].region(self.qpn[host])


class Net:
    """Hosts 0..n-1, `planes` x `uplinks` paths between any two.

    `switches`: the levels of the ports between them, which then are those of `TwoGroups`; None for paths without ports.
    """

    routing = Routing.SRV6
    made_bytes = 0
    """Of regions since the last collection."""

    def __init__(self, hosts=2, planes=4, uplinks=4, seed=1, switches=None, plugins=NO_PLUGINS, apart=None, **config):
        """`apart`: host -> settings that are its own."""
        settings = {"planes": planes, "rtt_ns": T, "port_rate_bps": RATE, "seed": seed} | config
        self.scheduler = Scheduler(1_000 * MS)
        self.start = self.now
        self.planes, self.uplinks = planes, uplinks
        self.random = Random(seed)
        self.paths = defaultdict(lambda: SimPath(T // 2))
        self.events = defaultdict(list)
        self.steps = 0
        self.taps = []
        self.listeners = []
        """Called with (host, event) for every event."""
        self.busy_ns = {}
        """Hosts that need so long for each packet, one after the other, as a daemon on a shared core does."""
        self.free_ns = {}
        """When they have done all that has come."""
        self._armed_ns = {}
        self._touched = set()
        self.mark_ce = False
        self.mark_probes = False
        self.buffer = memoryview(bytearray(9000))
        self.ports = switches and TwoGroups(self, hosts, settings["port_rate_bps"], T, switches, seed)
        self.hosts = {h: self._make_host(h, settings | (apart or {}).get(h, {}), plugins) for h in range(hosts)}
        for h, endpoint in self.hosts.items():
            for peer in self.hosts:
                if peer != h:
                    endpoint.add_peer(peer, self._ways(h, peer))

    def _make_host(self, host, settings, plugins):
        trim = {"switches_trim": self.ports is not None}
        return Endpoint(EndpointConfig(host=host, udp_port=PORT, **trim | settings), plugins)

    def _ways(self, host, peer):
        """What `host` is told of the ways to `peer`."""
        local = self.ports and self.ports.local(host, peer)
        ids = [(p, u) for p in range(self.planes) for u in range(1 if local else self.uplinks)]
        return [(p, u, (peer, p, u)) for p, u in ids]

    # --- verbs ---

    def join(self, a=0, b=1, region_bytes=1 << 22, psn_a=None, psn_b=None):
        """A QP between two hosts, ready to send."""
        self._collect_before(2 * region_bytes)
        attributes_a = self.hosts[a].open_qp(b, region_bytes, psn_a)
        attributes_b = self.hosts[b].open_qp(a, region_bytes, psn_b)
        self.hosts[a].connect_qp(attributes_a.qpn, attributes_b)
        self.hosts[b].connect_qp(attributes_b.qpn, attributes_a)
        return Flow(self, a, b, attributes_a.qpn, attributes_b.qpn, attributes_a, attributes_b)

    @staticmethod
    def _collect_before(more_bytes):
        Net.made_bytes += more_bytes
        if Net.made_bytes > MOST_GARBAGE_BYTES:
            gc.collect()
            Net.made_bytes = more_bytes

    def some_paths(self, plane=None, uplink=None, src=None, dst=None):
        """All (directed) paths that match."""
        for s in self.hosts:
            for d in self.hosts:
                if s == d or src not in (None, s) or dst not in (None, d):
                    continue
                for p in range(self.planes):
                    for u in range(self.uplinks):
                        if plane in (None, p) and uplink in (None, u):
                            yield self.paths[s, d, p, u]

    def cut(self, **which):
        """Paths swallow everything from now on (`plane`, `uplink`, `src`, `dst` choose them)."""
        self.worsen(dead=True, **which)

    def heal(self, **which):
        """Undo `cut`."""
        self.worsen(dead=False, **which)

    def worsen(self, plane=None, uplink=None, src=None, dst=None, **what):
        """Set attributes of the matching paths."""
        for path in self.some_paths(plane, uplink, src, dst):
            for name, value in what.items():
                setattr(path, name, value)

    def port_down(self, host, plane):
        """The host loses the carrier of one port."""
        if self.ports:
            self.ports.carrier(host, plane, False)
            return
        self.cut(plane=plane, src=host)
        self.cut(plane=plane, dst=host)
        self.heard_carrier(host, plane, False)

    def port_up(self, host, plane):
        """And gets it back."""
        if self.ports:
            self.ports.carrier(host, plane, True)
            return
        self.heal(plane=plane, src=host)
        self.heal(plane=plane, dst=host)
        self.heard_carrier(host, plane, True)

    def run(self, until=lambda: False, within=100 * T, must=True):
        """Drive until `until()` holds; past the deadline that is a failure if `must`. Returns virtual ns taken."""
        begin = self.now
        self._drain_all()
        if not self.scheduler.run_until(lambda: not self._touched and bool(until()), begin + within):
            assert not must, f"not reached within {within / T:.0f} T (next action: {self.scheduler.next_ns})"
        return self.now - begin

    def skip(self, ns):
        """Let time pass in which nobody does anything. For paths without ports that carry nothing."""
        self.scheduler = Scheduler(self.now + ns)
        self._armed_ns.clear()

    @property
    def now(self):
        return self.scheduler.now_ns

    def completed(self, host=0):
        return self.events_of(WriteCompleted, host)

    def events_of(self, kind, host=0):
        """Events of one type at one host, in order."""
        return [event for event in self.events[host] if isinstance(event, kind)]

    def counters(self, host=0):
        return self.hosts[host].counters()

    def plane_packets(self, host=0, peer=1):
        """Data packets sent per plane."""
        totals = [0] * self.planes
        for (plane, _), count in self.hosts[host].path_packets(peer).items():
            totals[plane] += count
        return totals

    # --- machinery ---

    def deliver(self, when, src, dst, label, traffic_class, packet):
        """Let a packet be at its host at this time."""
        self.scheduler.at(when, self._arrive, src, dst, label, traffic_class, packet)

    def heard_carrier(self, host, plane, up):
        """Tell an endpoint about its port."""
        change = self.hosts[host].port_up if up else self.hosts[host].port_down
        change(plane, self.now)

    def heard_pause(self, host, plane, paused):
        """Tell an endpoint that its port was paused, or may go on."""
        change = self.hosts[host].port_paused if paused else self.hosts[host].port_resumed
        change(plane, self.now)
        self._touch(host)

    def _arrive(self, src, dst, label, traffic_class, packet, arrival=None):
        now = self.scheduler.now_ns
        if arrival is None:
            arrival = now
            if dst in self.busy_ns:
                self.free_ns[dst] = max(now, self.free_ns.get(dst, 0)) + self.busy_ns[dst]
                self.scheduler.at(self.free_ns[dst], self._arrive, src, dst, label, traffic_class, packet, now)
                return
        self.hosts[dst].handle_datagram(memoryview(packet), src, label, PORT, traffic_class, arrival, now)
        self._touch(dst)

    def _arm(self, host, wake):
        if wake is not None and wake != self._armed_ns.get(host):
            self.scheduler.at(wake, self._wake, host, wake)
        self._armed_ns[host] = wake

    def _wake(self, host, wake):
        if self._armed_ns[host] == wake:
            self._armed_ns[host] = None
            self._touch(host)

    def _touch(self, host):
        """All that comes at one time comes before a host does anything about it."""
        first, now = not self._touched, self.scheduler.now_ns
        self._touched.add(host)
        if self.scheduler.next_ns != now:
            self._turn()
        elif first:
            self.scheduler.at(now, self._turn)

    def _turn(self):
        self.steps += 1
        assert self.steps < MAX_STEPS, "no end in sight: livelock"
        touched, now = sorted(self._touched), self.scheduler.now_ns
        self._touched.clear()
        for host in touched:
            self.hosts[host].handle_timeout(now)
        for host in touched:
            self._drain(host)

    def _drain_all(self):
        for host in self.hosts:
            self._drain(host)

    def _drain(self, host):
        endpoint, now = self.hosts[host], self.scheduler.now_ns
        self._hear(host)
        while (out := endpoint.poll_transmit(now, self.buffer)) is not None:
            size, token, traffic_class = out
            self._carry(host, token, traffic_class, bytes(self.buffer[:size]))
        self._hear(host)
        self._arm(host, endpoint.next_timeout())

    def _hear(self, host):
        while (event := self.hosts[host].poll_event()) is not None:
            self.events[host].append(event)
            for listener in self.listeners:
                listener(host, event)

    def _carry(self, src, token, traffic_class, packet):
        for tap in self.taps:
            if tap(src, token, traffic_class, packet) is False:
                return
        if self.ports:
            self.ports.send(src, token, traffic_class, packet)
        else:
            dst, plane, uplink = token
            self.follow(src, dst, plane << 8 | uplink, traffic_class, packet)

    def follow(self, src, dst, label, traffic_class, packet):
        """What becomes of a packet on its path, behind all ports: first in, first out, as a static path is."""
        path = self.paths[src, dst, label >> 8, label & 0xFF]
        if path.dead or self.random.random() < path.loss:
            return
        if (self.mark_ce or path.ce) and traffic_class & 3:
            traffic_class |= 3
        if self.mark_probes and packet[0] == 0xD8:
            traffic_class |= 3
        jitter = int(self.random.random() * path.jitter_ns)
        for _ in range(2 if self.random.random() < path.duplicate else 1):
            arrival = path.last_arrival = max(path.last_arrival + 1, self.scheduler.now_ns + path.delay_ns + jitter)
            self.deliver(arrival, src, dst, label, traffic_class, packet)


def pattern(size, seed=1):
    """Bytes that differ from place to place."""
    return Random(seed).randbytes(size)


__all__ = [
    "MS",
    "PORT",
    "RATE",
    "EvChanged",
    "Flow",
    "ImmediateDelivered",
    "Net",
    "PlaneChanged",
    "PortChanged",
    "QpError",
    "T",
    "WriteCompleted",
    "pattern",
]
