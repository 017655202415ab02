"""Packets that come after one of a higher PSN (RFC 4737, Type-P-Reordered): a count of what arrived, in its order, and
what delays alone say."""

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.rc import wire as rc_wire
from tests.sim.rcnet import PACKET_NS, RcNet
from tests.sim.simnet import MS, Net, pattern
from tests.sim.test_rc_planes import PLANES, PlaneNet

PACKETS = 200
SIZE = PACKETS * 4096
PACKET_MS = 4238 * 8 / 25_000
"""A full packet of MRC on a port of 25 Mb/s: 1.36 ms."""
DATA = {
    *range(bth.WRITE_FIRST, bth.WRITE_ONLY_IMM + 1),
    *range(rc_wire.WRITE_FIRST, rc_wire.WRITE_ONLY_IMM + 1),
}
"""Opcodes of either protocol."""
RECOVERIES = pytest.mark.parametrize("recovery", ["go-back-n", "selective", "lossless"])


def slower_uplink(more_ms):
    """One of two ways takes longer. Its sender takes them in turn, a packet each 1.36 ms."""
    net = Net(planes=1, uplinks=2)
    for path in net.some_paths(uplink=1):
        path.delay_ns += round(more_ms * MS)
    return net


def transfer(net):
    """Packets that came late by the receiver's count, which is the count here."""
    arrived, deliver = [], net.deliver

    def noted(when, src, dst, label, traffic_class, packet):
        if dst == 1 and packet[0] in DATA:
            arrived.append((when, rc_wire.bits_and_psn(memoryview(packet))))
        deliver(when, src, dst, label, traffic_class, packet)

    net.deliver = noted
    flow = net.join(psn_a=0)
    flow.write(pattern(SIZE))
    net.run(net.completed)
    assert net.counters(1)["data_received"] == PACKETS
    assert net.counters(1)["reordered"] == late(bits for _, bits in sorted(arrived, key=lambda each: each[0]))
    return net.counters(1)["reordered"]


def late(arrived):
    """By the definition: the first copy of each PSN, if a higher one came before and nothing says that it is sent
    again."""
    seen, count = set(), 0
    for bits in arrived:
        psn = bits & 0xFFFFFF
        count += psn not in seen and psn < max(seen, default=0) and not bits & wire.RETRANSMISSION
        seen.add(psn)
    return count


@pytest.mark.parametrize("uplinks", [1, 2, 4])
def test_ways_of_one_length_keep_the_order(uplinks):
    assert transfer(Net(planes=1, uplinks=uplinks)) == 0


def test_a_way_that_is_longer_by_less_than_a_packet_keeps_the_order():
    """But for the packets that begin as a burst."""
    assert transfer(slower_uplink(0.9 * PACKET_MS)) <= 2


def test_of_two_ways_all_packets_of_the_longer_one_come_late():
    """But for the last ones, which nothing overtakes."""
    net = slower_uplink(3.5 * PACKET_MS)
    reordered = transfer(net)
    assert net.counters()["retransmitted"] == 0
    assert PACKETS / 2 - 2 <= reordered <= PACKETS / 2


def test_what_mrc_sends_again_after_a_loss_is_not_late():
    net = Net(planes=1, uplinks=1)
    net.worsen(loss=0.05, src=0)
    assert transfer(net) == 0
    assert net.counters()["retransmitted"]


@RECOVERIES
def test_a_roce_packet_that_nothing_overtakes_is_not_late(recovery):
    net = RcNet(recovery=recovery)
    net.worsen(duplicate=1.0, src=0)
    assert transfer(net) == 0


@RECOVERIES
def test_a_roce_packet_that_was_lost_and_sent_again_looks_late(recovery):
    net = RcNet(recovery=recovery)
    net.worsen(loss=0.03, src=0)
    assert 0 < transfer(net) <= net.counters()["retransmitted"]


class HoldingNet(RcNet):
    """Its packet with PSN 50 waits for ten others."""

    def _carry(self, src, token, traffic_class, packet):
        held = src == 0 and packet[0] in DATA and rc_wire.bits_and_psn(memoryview(packet)) & 0xFFFFFF == 50
        self.scheduler.at(self.now + held * 10 * PACKET_NS, super()._carry, src, token, traffic_class, packet)


@RECOVERIES
def test_a_roce_packet_that_waits_is_late_once(recovery):
    """Whatever is sent again because of it."""
    assert transfer(HoldingNet(recovery=recovery)) == 1


def test_over_planes_of_which_one_is_slow_packets_come_late():
    net = PlaneNet("spread")
    net.slow[1] = 2
    assert 0 < transfer(net) <= PACKETS / PLANES + 1
