"""QPs that use all planes at once: which plane a packet takes, what a slow plane costs, how a dead one is left."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.common.errors import UnknownChoiceError
from mrc_testbed.hosts.rc import planes, wire
from mrc_testbed.hosts.rc.config import RcConfig
from tests.sim.rcnet import PACKET_NS, PORT_RATE, RcNet, stream
from tests.sim.simnet import ImmediateDelivered, QpError, T, pattern

PLANES = 4
RATE = PORT_RATE // PLANES
PLANE_PACKET_NS = PLANES * PACKET_NS
DATA = range(wire.WRITE_FIRST, wire.WRITE_ONLY_IMM + 1)
SPREADINGS = pytest.mark.parametrize("spreading", ["spread", "balanced"])


class PlaneNet(RcNet):
    """Packets have the source port of their plane. `slow`: planes that serve one packet in this number of times."""

    def __init__(self, spreading="balanced", **config):
        settings = {"recovery": "lossless", "port_rate_bps": RATE, "timeout_ns": 4096 << 17} | config
        super().__init__(planes=PLANES, spreading=spreading, **settings)
        self.slow = {}
        self._served = {}
        self.by_plane = [0] * PLANES

    def _carry(self, src, token, traffic_class, packet):
        _, plane, _ = self.way_of(src, token)
        self.by_plane[plane] += src == 0 and packet[0] in DATA
        if plane in self.slow and packet[0] in DATA:
            begin = max(self.now, self._served.get((src, plane), 0))
            served = self._served[src, plane] = begin + self.slow[plane] * PLANE_PACKET_NS
            self.scheduler.at(served, super()._carry, src, token, traffic_class, packet)
        else:
            super()._carry(src, token, traffic_class, packet)

    def deliver(self, when, src, dst, label, traffic_class, packet):
        self.scheduler.at(when, self._arrive_by, src, dst, label >> 8, traffic_class, packet)

    def _arrive_by(self, src, dst, plane, traffic_class, packet):
        qp = self.hosts[dst]._qps.get(int.from_bytes(packet[5:8], "big"))
        port = wire.source_port(qp._remote.qpn, qp.attributes.qpn, plane)
        now = self.now
        self.hosts[dst].handle_datagram(memoryview(packet), src, 0, port, traffic_class, now, now)
        self._touch(dst)

    def share(self, packets=4_000):
        """What part of the rate of all planes comes."""
        before = self.delivered(1)
        self.run(within=packets * PACKET_NS, must=False)
        return (self.delivered(1) - before) / packets

    def busy(self, packets=40_000, qps=1):
        """A host that sends as much as it may for so long."""
        flows = [self.join() for _ in range(qps)]
        for flow in flows:
            stream(self, flow, packets // qps)
        self.run(within=3 * T, must=False)
        return flows


@SPREADINGS
@pytest.mark.parametrize("qps", [1, 3])
def test_one_qp_fills_all_planes_alike(spreading, qps):
    net = PlaneNet(spreading)
    net.busy(qps=qps)
    assert net.share() == pytest.approx(1, abs=0.01)
    assert max(net.by_plane) - min(net.by_plane) <= 0.02 * max(net.by_plane)
    assert net.counters()["retransmitted"] == 0
    assert (net.counters()["plane_probes_sent"], net.counters()["planes_left"]) == (0, 0)


@pytest.mark.parametrize("factor", [2, 4, 8])
def test_a_slow_plane_costs_what_it_does_not_carry(factor):
    """With an allowance for each plane; with one for all, the slow plane sets the pace of every plane."""
    shares = {}
    for spreading in ("spread", "balanced"):
        net = PlaneNet(spreading)
        net.slow = {1: factor}
        net.busy()
        net.share(8_000)
        shares[spreading] = net.share(8_000)
        assert net.counters()["planes_left"] == 0, "probes pass data by"
    there = (PLANES - 1 + 1 / factor) / PLANES
    assert shares["balanced"] >= 0.95 * there
    assert shares["spread"] == pytest.approx(1 / factor, rel=0.15)


@SPREADINGS
def test_a_dead_plane_is_left_within_ten_t_and_used_again_when_it_answers(spreading):
    net = PlaneNet(spreading)
    flow = net.busy(200_000)[0]
    net.cut(plane=2)
    cut_at = net.now
    net.run(lambda: net.counters()["planes_left"])
    left_after = net.now - cut_at
    # The last answer comes up to T after the cut, then two T of silence, three probes, and a turn of the timer.
    assert 3 * T < left_after <= (1 + planes.SILENT_T + planes.LOST_PROBES + 1.1) * T
    net.run(within=2 * T, must=False)
    before = list(net.by_plane)
    assert net.share() == pytest.approx(0.75, abs=0.01)
    assert net.by_plane[2] == before[2]
    net.heal(plane=2)
    healed_at = net.now
    net.run(lambda: net.counters()["planes_back"])
    assert net.now - healed_at <= (2 * planes.ANSWERED_PROBES + 2.1) * T
    net.run(within=2 * T, must=False)
    assert net.share() == pytest.approx(1, abs=0.01)
    assert net.requester(flow).lost_packets <= net.hosts[0]._context.window
    assert not net.events_of(QpError)


def test_lost_carrier_is_no_silence_to_wait_for():
    net = PlaneNet()
    net.busy(200_000)
    net.port_down(0, 3)
    assert net.counters()["planes_left"] == 1
    net.run(within=2 * T, must=False)
    assert net.counters()["plane_probes_sent"] == 0, "into a port without carrier"
    assert net.share() == pytest.approx(0.75, abs=0.01)
    net.port_up(0, 3)
    net.run(lambda: net.counters()["planes_back"], within=10 * T)
    net.run(within=2 * T, must=False)
    assert net.share() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("plane", range(PLANES))
def test_where_only_answers_are_lost_the_others_do(plane):
    """The first sender may keep the plane; the other, which hears nothing of what it sends there, leaves it."""
    net = PlaneNet()
    net.busy(200_000)
    net.cut(plane=plane, src=1)
    net.run(within=8 * T, must=False)
    assert net.share() == pytest.approx(1, abs=0.02)
    assert net.counters()["retransmitted"] == 0


def test_where_all_planes_are_dead_its_retries_end_a_qp():
    net = PlaneNet(timeout_ns=10 * T, retries=2)
    net.busy(50_000)
    net.cut()
    net.run(lambda: net.events_of(QpError), within=50 * T)
    (event,) = net.events_of(QpError)
    assert event.reason.value == "retries exceeded"
    assert net.counters()["planes_left"] == PLANES
    requester = net.hosts[0]._peers[1].planes
    assert [plane.under_way for plane in requester._planes] == [0] * PLANES
    net.run(within=20 * T, must=False)
    sent = net.counters()["plane_probes_sent"]
    net.run(within=20 * T, must=False)
    assert net.counters()["plane_probes_sent"] == sent, "who sends nothing probes nothing"


def test_each_plane_has_a_rate_of_its_own():
    net = PlaneNet(congestion_control="dcqcn")
    net.busy(200_000)
    net.worsen(plane=1, ce=True)
    net.run(within=60 * T, must=False)
    rates = [plane.allowance.rate.rate for plane in net.hosts[0]._peers[1].planes._planes]
    assert rates[1] < 0.2
    assert (rates[0], rates[2], rates[3]) == (1, 1, 1)
    net.by_plane = [0] * PLANES
    assert net.share() > 0.74
    assert net.by_plane[1] < 0.4 * net.by_plane[0]


def test_a_held_port_keeps_nothing_from_the_others():
    net = PlaneNet()
    net.busy()
    net.heard_pause(0, 1, True)
    net.run(within=2 * T, must=False)
    assert net.share() == pytest.approx(0.75, abs=0.02)
    net.heard_pause(0, 1, False)
    net.run(within=T, must=False)
    assert net.share() == pytest.approx(1, abs=0.02)


@settings(max_examples=25, deadline=None)
@given(
    spreading=st.sampled_from(["spread", "balanced"]),
    seed=st.integers(0, 1 << 16),
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    dead=st.sets(st.integers(0, 3), max_size=3),
    slow=st.dictionaries(st.integers(0, 3), st.sampled_from([2, 5]), max_size=2),
    qps=st.integers(1, 2),
    sizes=st.lists(st.integers(0, 40 * 4096), min_size=1, max_size=4),
)
def test_every_byte_is_right_and_every_window_is_empty_at_the_end(spreading, seed, loss, dead, slow, qps, sizes):
    net = PlaneNet(spreading, seed=seed, timeout_ns=60 * T)
    net.slow = slow
    flows = [net.join() for _ in range(qps)]
    net.worsen(loss=loss)
    for plane in dead:
        net.cut(plane=plane)
    for flow in flows:
        for number, size in enumerate(sizes):
            flow.write(pattern(size, number), offset=number * 40 * 4096, wr_id=number, immediate=number)
    net.run(lambda: len(net.completed()) == qps * len(sizes), within=3_000 * T)
    for flow in flows:
        said = [event.immediate for event in net.events_of(ImmediateDelivered, 1) if event.qpn == flow.qpn[1]]
        assert said == list(range(len(sizes)))
        for number, size in enumerate(sizes):
            at = number * 40 * 4096
            assert bytes(flow.region()[at : at + size]) == pattern(size, number)
    for plane in net.hosts[0]._peers[1].planes._planes:
        assert (plane.under_way, plane.allowance.in_flight) == (0, 0)


def test_what_comes_by_no_plane_is_refused_and_so_is_a_probe_for_one_that_keeps_to_a_plane():
    net = PlaneNet()
    flow = net.join()
    buffer, host = memoryview(bytearray(200)), net.hosts[1]
    remote = flow.attributes[1]
    odd = wire.source_port(flow.qpn[0], flow.qpn[1], PLANES)
    for opcode in (wire.PLANE_PROBE, wire.PLANE_ANSWER):
        size = wire.emit_plane_packet(buffer, opcode, remote.qpn)
        host.handle_datagram(buffer[:size], 0, 0, odd, 0, net.now, net.now)
    reth = remote.region_address, remote.rkey, 4
    size = wire.emit_data(buffer, wire.WRITE_ONLY, remote.qpn, 0, reth, memoryview(b"data"), None)
    host.handle_datagram(buffer[:size], 0, 0, odd, 0, net.now, net.now)
    assert net.counters(1)["refused_unknown_plane"] == 3
    plain = RcNet()
    there = plain.join().attributes[1]
    for opcode in (wire.PLANE_PROBE, wire.PLANE_ANSWER):
        size = wire.emit_plane_packet(buffer, opcode, there.qpn)
        plain.hosts[1].handle_datagram(buffer[:size], 0, 0, odd, 0, plain.now, plain.now)
    assert plain.counters(1)["refused_one_plane"] == 2


def test_only_a_recovery_that_takes_any_order_can_use_several_planes():
    with pytest.raises(UnknownChoiceError):
        RcConfig(host=0, planes=4, rtt_ns=T, port_rate_bps=RATE, recovery="selective", spreading="balanced")
