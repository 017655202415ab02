"""Sender, receiver and links under any sequence of troubles, as long as one path lives."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.examples import examples
from tests.sim.simnet import MS, ImmediateDelivered, Net, T, pattern

pytestmark = pytest.mark.slow

PLANES, UPLINKS = 3, 2
SAFE = (0, 0)
"""The path that nothing happens to."""
PATHS = [(p, u) for p in range(PLANES) for u in range(UPLINKS) if (p, u) != SAFE]
paths = st.sampled_from(PATHS)
planes = st.integers(1, PLANES - 1)
hosts = st.integers(0, 1)


class Troubles(RuleBasedStateMachine):
    """Two hosts write to each other; at the end all is mended and everything must have arrived."""

    @initialize(
        seed=st.integers(0, 1 << 20), psn=st.sampled_from([0, (1 << 24) - 30]), cc=st.sampled_from(["nscc", "fixed"])
    )
    def begin(self, seed, psn, cc):
        self.net = Net(
            planes=PLANES, uplinks=UPLINKS, seed=seed, ev_active=PLANES * UPLINKS // 2, congestion_control=cc
        )
        self.flow = self.net.join(region_bytes=4 << 20, psn_a=psn)
        self.expected = {0: bytearray(4 << 20), 1: bytearray(4 << 20)}
        self.posted = {0: 0, 1: 0}
        self.at = {0: 0, 1: 0}
        self.down = set()
        self.denied = set()
        self.troubled = False

    @rule(host=hosts, size=st.sampled_from([0, 1, 5000, 60_000, 300_000]))
    def write(self, host, size):
        at = self.at[host]
        if at + size > 4 << 20:
            return
        data = pattern(size, self.posted[host])
        wr = self.posted[host]
        self.flow.write(data, offset=at, wr_id=wr, immediate=wr, source=host)
        self.expected[1 - host][at : at + size] = data
        self.at[host] += size
        self.posted[host] += 1

    @rule(ticks=st.integers(1, 12))
    def wait(self, ticks):
        self.net.run(within=ticks * T // 2, must=False)

    @rule(path=paths, source=st.sampled_from([None, 0, 1]))
    def cut(self, path, source):
        self.troubled = True
        self.net.cut(plane=path[0], uplink=path[1], src=source)

    @rule(path=paths, loss=st.sampled_from([0.01, 0.2]))
    def lose(self, path, loss):
        self.troubled = True
        self.net.worsen(plane=path[0], uplink=path[1], loss=loss)

    @rule(path=paths, mark=st.booleans())
    def congest(self, path, mark):
        self.net.worsen(plane=path[0], uplink=path[1], ce=mark)

    @rule(jitter=st.integers(0, 6), copies=st.sampled_from([0.0, 0.05]))
    def disturb(self, jitter, copies):
        self.net.worsen(jitter_ns=jitter * MS, duplicate=copies)

    @rule(path=paths, host=hosts)
    def deny(self, path, host):
        self.troubled = True
        self.net.hosts[host].deny(1 - host, [path])
        self.denied.add((host, path))

    @rule(path=paths, host=hosts)
    def allow(self, path, host):
        self.net.hosts[host].allow(1 - host, [path], self.net.now)
        self.denied.discard((host, path))

    @rule(plane=planes, host=hosts)
    def port_down(self, plane, host):
        self.troubled = True
        self.net.port_down(host, plane)
        self.down.add((host, plane))

    @rule(plane=planes, host=hosts)
    def port_up(self, plane, host):
        if (host, plane) in self.down:
            self.down.discard((host, plane))
            self.net.port_up(host, plane)

    @rule()
    def heal(self):
        """Links only: ports stay as they are."""
        for plane, uplink in PATHS:
            if not any((host, plane) in self.down for host in (0, 1)):
                self.net.heal(plane=plane, uplink=uplink)
        self.net.worsen(loss=0.0)

    @invariant()
    def nothing_forbidden_happens(self):
        if not hasattr(self, "net"):
            return
        for host in (0, 1):
            counters = self.net.counters(host)
            assert counters["data_on_bad_ev"] == 0
            assert counters["qp_errors"] == 0
            sender = self.net.hosts[host]._qps[self.flow.qpn[host]].sender
            timing = sender.peer.timing
            assert sender.flight.bytes <= timing.window_bytes + timing.packet_bytes
            assert sender.flight.next - sender.flight.una <= 1024
            used = self.net.plane_packets(host, 1 - host)
            assert self.troubled or max(used) - min(used) <= 1

    def teardown(self):
        if not hasattr(self, "net"):
            return
        for host, plane in self.down:
            self.net.port_up(host, plane)
        self.net.heal()
        self.net.worsen(loss=0.0, ce=False)
        net = self.net
        net.run(lambda: all(len(net.completed(host)) == self.posted[host] for host in (0, 1)), within=600 * T)
        for host in (0, 1):
            assert self.flow.region(host) == self.expected[host]
            assert [e.wr_id for e in net.completed(host)] == list(range(self.posted[host]))
            seen = [e.immediate for e in net.events_of(ImmediateDelivered, 1 - host)]
            assert seen == list(range(self.posted[host]))
        self.nothing_forbidden_happens()


Troubles.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestTroubles = Troubles.TestCase
