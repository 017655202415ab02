"""Endpoints joined by simulated paths under a virtual clock.

Verbs for stories: `join` two hosts, `write`, `run` until something is so (with a deadline in virtual time), and
`cut`/`heal`/`worsen` paths. Every run is bounded in steps too, so that a livelock fails instead of hanging.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from hosts.common.events import ImmediateDelivered, QpError, WriteCompleted
from hosts.core.config import EndpointConfig
from hosts.core.endpoint import Endpoint
from hosts.core.events import EvChanged, PlaneChanged, PortChanged
from hosts.core.plugins import NO_PLUGINS
from tests.sim.switches import Switches

MS = 1_000_000
T = 20 * MS
RATE = 25_000_000
PORT = 0xC000
MAX_STEPS = 2_000_000


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


class Taken(NamedTuple):
    """A packet that its host has read from the socket, in the state `busy_ns` leaves it."""

    label: int
    arrival_ns: int


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

    `switches`: queues that mark and trim, see tests/sim/switches.py.
    `downlinks`: packets to one host queue, without bound, at its port of the plane, which has the port rate.
    """

    def __init__(
        self, hosts=2, planes=4, uplinks=4, seed=1, downlinks=False, switches=False, plugins=NO_PLUGINS, **config
    ):
        self.downlinks = defaultdict(int) if downlinks else None
        self.now = 1_000 * MS
        self.start = self.now
        self.planes, self.uplinks = planes, uplinks
        self.random = Random(seed)
        self.switches = Switches(hosts, RATE, T, self.random) if switches else None
        self.paths = defaultdict(lambda: SimPath(T // 2))
        self.events = defaultdict(list)
        self.arrivals = []
        self.serial = 0
        self.steps = 0
        self.taps = []
        self.listeners = []
        """Called with (host, event) for every event."""
        self.wakes = {}
        self.busy_ns = {}
        """Hosts that need so long for each packet, one after the other, as a daemon on a shared core does."""
        self._free_ns = {}
        self.mark_ce = False
        self.mark_probes = False
        self.buffer = memoryview(bytearray(9000))
        settings = {"planes": planes, "rtt_ns": T, "port_rate_bps": RATE, "seed": seed} | config
        self.hosts = {h: self._make_host(h, settings, plugins) for h in range(hosts)}
        for h, endpoint in self.hosts.items():
            for peer in self.hosts:
                if peer != h:
                    endpoint.add_peer(peer, self._ways(h, peer))

    def _make_host(self, host, settings, plugins):
        trim = {"switches_trim": self.switches is not None}
        return Endpoint(EndpointConfig(host=host, udp_port=PORT, **trim | settings), plugins)

    def _ways(self, host, peer):
        """What `host` is told of the ways to `peer`."""
        local = self.switches and self.switches.local(host, peer)
        ids = [(p, u) for p in range(self.planes) for u in range(1 if local else self.uplinks)]
        return [(p, u, (peer, p, u)) for p, u in ids]

    # --- verbs ---

    def join(self, a=0, b=1, region_bytes=1 << 22, psn_a=None, psn_b=None):
        """A QP between two hosts, ready to send."""
        attributes_a = self.hosts[a].open_qp(b, region_bytes, psn_a)
        attributes_b = self.hosts[b].open_qp(a, region_bytes, psn_b)
        self.hosts[a].connect_qp(attributes_a.qpn, attributes_b)
        self.hosts[b].connect_qp(attributes_b.qpn, attributes_a)
        return Flow(self, a, b, attributes_a.qpn, attributes_b.qpn, attributes_a, attributes_b)

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
        self.cut(plane=plane, src=host)
        self.cut(plane=plane, dst=host)
        self.hosts[host].port_down(plane, self.now)

    def port_up(self, host, plane):
        """And gets it back."""
        self.heal(plane=plane, src=host)
        self.heal(plane=plane, dst=host)
        self.hosts[host].port_up(plane, self.now)

    def run(self, until=lambda: False, within=100 * T, must=True):
        """Drive until `until()` holds; past the deadline that is a failure if `must`. Returns virtual ns taken."""
        begin = self.now
        deadline = self.now + within
        self._drain_all()
        while not until():
            when = self._next_time()
            if when is None or when > deadline:
                assert not must, f"not reached within {within / T:.0f} T (next wake-up: {when})"
                self.now = deadline
                break
            self.steps += 1
            assert self.steps < MAX_STEPS, "no end in sight: livelock"
            self._step(max(when, self.now))
        return self.now - begin

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

    def _next_time(self):
        times = [t for t in self.wakes.values() if t is not None]
        if self.arrivals:
            times.append(self.arrivals[0][0])
        return min(times, default=None)

    def _step(self, when):
        self.now = when
        touched = set()
        while self.arrivals and self.arrivals[0][0] <= when:
            _, _, src, dst, label, traffic_class, packet = heappop(self.arrivals)
            arrival_ns = when
            if isinstance(label, Taken):
                label, arrival_ns = label
            elif isinstance(label, tuple):
                self._hop(src, dst, label, traffic_class, packet)
                continue
            elif dst in self.busy_ns:
                self._free_ns[dst] = max(when, self._free_ns.get(dst, 0)) + self.busy_ns[dst]
                self.serial += 1
                taken = (self._free_ns[dst], self.serial, src, dst, Taken(label, when), traffic_class, packet)
                heappush(self.arrivals, taken)
                continue
            self.hosts[dst].handle_datagram(memoryview(packet), src, label, PORT, traffic_class, arrival_ns, when)
            touched.add(dst)
        for host, wake in self.wakes.items():
            if wake is not None and wake <= when:
                touched.add(host)
        for host in touched:
            self.hosts[host].handle_timeout(when)
        for host in touched:
            self._drain(host)

    def _drain_all(self):
        for host in self.hosts:
            self._drain(host)

    def _drain(self, host):
        endpoint = self.hosts[host]
        self._hear(host)
        while (out := endpoint.poll_transmit(self.now, self.buffer)) is not None:
            size, token, traffic_class = out
            self._carry(host, token, traffic_class, bytes(self.buffer[:size]))
        self._hear(host)
        self.wakes[host] = endpoint.next_timeout()

    def _hear(self, host):
        while (event := self.hosts[host].poll_event()) is not None:
            self.events[host].append(event)
            for listener in self.listeners:
                listener(host, event)

    def _hop(self, src, token, ways, traffic_class, packet):
        """A packet stands before the first of the ports it has still to pass."""
        served = self.switches.serve(ways[0], self.now, traffic_class, packet)
        if served is None:
            return
        wait, traffic_class, packet = served
        if len(ways) == 1:
            self._carry(src, token, traffic_class, packet, switched=True, wait=wait)
            return
        self.serial += 1
        heappush(self.arrivals, (self.now + wait, self.serial, src, token, ways[1:], traffic_class, packet))

    def _carry(self, src, token, traffic_class, packet, switched=False, wait=0):
        dst, plane, uplink = token
        path = self.paths[src, dst, plane, uplink]
        for tap in () if switched else self.taps:
            if tap(src, token, traffic_class, packet) is False:
                return
        if self.switches and not switched:
            self._hop(src, token, self.switches.way(src, dst, plane, uplink), traffic_class, packet)
            return
        if path.dead or self.random.random() < path.loss:
            return
        if (self.mark_ce or path.ce) and traffic_class & 3:
            traffic_class |= 3
        if self.mark_probes and packet[0] == 0xD8:
            traffic_class |= 3
        jitter = int(self.random.random() * path.jitter_ns)
        copies = 2 if self.random.random() < path.duplicate else 1
        for _ in range(copies):
            # First in, first out, as a static path is.
            arrival = self.now + path.delay_ns + jitter + wait
            if not self.switches or traffic_class & 3:
                arrival = path.last_arrival = max(path.last_arrival + 1, arrival)
            if self.downlinks is not None:
                cost = (len(packet) + 102) * 8_000_000_000 // RATE
                arrival = self.downlinks[dst, plane] = max(self.downlinks[dst, plane], arrival) + cost
            self.serial += 1
            entry = (arrival, self.serial, src, dst, plane << 8 | uplink, traffic_class, packet)
            heappush(self.arrivals, entry)


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
