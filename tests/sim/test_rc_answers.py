"""The RoCE-like reliable connection: when an ACK is asked for, what a NAK says, and what is counted of both."""

import pytest

from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RECOVERIES
from mrc_testbed.hosts.rc.context import CONTROL_ROOM
from tests.sim.rcnet import PACKET_NS, PORT_RATE, RcNet, stream
from tests.sim.simnet import T, pattern

EACH = pytest.mark.parametrize("recovery", RECOVERIES)


def lossy_transfer(recovery, loss, packets=2_000, seed=1):
    net = RcNet(recovery=recovery, timeout_ns=20 * T, retries=100, seed=seed)
    flow = net.join()
    net.worsen(loss=loss, src=0)
    stream(net, flow, packets)
    net.run(lambda: net.delivered(1) >= packets, within=4_000 * T)
    net.run(within=50 * T, must=False)
    return net, flow


@EACH
@pytest.mark.nightly(keep=1)
def test_no_qp_times_out_where_many_share_a_port(recovery):
    """A QP's turn comes once in 8 T, so that the fourth of its packets, after which the peer sends an ACK unasked,
    would come after the timeout."""
    qps = 8 * T // PACKET_NS
    net = RcNet(recovery=recovery, timeout_ns=20 * T)
    for _ in range(qps):
        stream(net, net.join(region_bytes=64 * 4096), 64)
    net.run(within=100 * T, must=False)
    assert net.delivered(1) > 90 * T // PACKET_NS
    assert (net.counters()["timeouts"], net.counters()["retransmitted"]) == (0, 0)


def test_few_qps_on_a_port_ask_for_no_more_acks_than_they_did():
    net = RcNet()
    for _ in range(4):
        stream(net, net.join(), 640)
    net.run(lambda: net.delivered(1) == 4 * 640)
    net.run(within=2 * T, must=False)
    assert net.counters(1)["acks_sent"] == 4 * 640 // 4


@pytest.mark.parametrize("loss", [0.02, 0.2])
def test_selective_recovery_counts_every_packet_that_it_sends_again_as_lost(loss):
    net, flow = lossy_transfer("selective", loss)
    again, lost = net.counters()["retransmitted"], net.requester(flow).lost_packets
    assert again > loss * 1_500
    assert again <= lost <= 1.02 * again, "one may be acknowledged before it is sent again"


@EACH
def test_acks_and_naks_are_counted_apart_and_when_they_are_sent(recovery):
    net, _ = lossy_transfer(recovery, 0.02)
    sender, receiver = net.counters(), net.counters(1)
    assert sender["nacks_received"] > 5 or recovery == "lossless"
    assert sender["acks_received"] == receiver["acks_sent"]
    assert sender["nacks_received"] == receiver["nacks_sent"]


def test_a_nak_that_found_no_room_was_not_sent():
    net = RcNet(recovery="selective")
    flow = net.join(psn_a=0)
    receiver = net.hosts[1]
    receiver._context.control.extend([receiver._context.control] * CONTROL_ROOM)
    buffer = memoryview(bytearray(100))
    remote = flow.attributes[1]
    reth = remote.region_address, remote.rkey, 4
    size = wire.emit_data(buffer, wire.WRITE_ONLY, remote.qpn, 5, reth, memoryview(b"data"), None)
    receiver.handle_datagram(buffer[:size], 0, 0, 0, wire.CLASS_DATA, net.now, net.now)
    assert net.counters(1)["control_dropped"] == 1
    assert net.counters(1)["nacks_sent"] == 0


@pytest.mark.parametrize(("recovery", "lost", "refused"), [("go-back-n", 0, 1), ("selective", 4, 0)])
def test_a_nak_that_an_ack_overtook_still_names_a_packet_that_came(recovery, lost, refused):
    """What it says is missing has been acknowledged; the one that it names, 9, came before those between them."""
    net = RcNet(recovery=recovery)
    flow = net.join(psn_a=0)
    flow.write(pattern(20 * 4096))
    net.run(within=T // 2, must=False)
    requester = net.requester(flow)
    requester.on_ack(4, wire.SYNDROME_ACK, 0, net.now, net.now)
    requester.on_ack(3, wire.SYNDROME_NAK_SEQUENCE, 9, net.now, net.now)
    assert requester.lost_packets == lost
    assert net.counters()["refused_old_nak"] == refused
    assert net.counters()["nacks_received"] == 1 - refused


def test_a_reset_qp_stays_on_its_port():
    net = RcNet(planes=4)
    flows = [net.join() for _ in range(3)]
    planes = [net.requester(flow).plane for flow in flows]
    flow = flows[0]
    renewed = [net.hosts[host].reset_qp(flow.qpn[host]) for host in (0, 1)]
    for host in (0, 1):
        net.hosts[host].connect_qp(flow.qpn[host], renewed[1 - host])
    assert [net.requester(flow).plane for flow in flows] == planes
    assert net.requester(net.join()).plane == 3, "the next QP has the next port"


# --- PFC ---


def test_what_goes_while_a_port_is_held_costs_nothing():
    pacer = Pacer(1, PORT_RATE, 4096, wire.FRAME_BYTES, True)
    pacer.charge(0, 4096, 0)
    given_ns = pacer.hold(0, 0)
    for _ in range(10):
        pacer.charge(0, 4096, 10)
    assert pacer.ready_at(0) < NEVER
    pacer.release(0, 1_000, given_ns)
    assert pacer.ready_at(0) == 1_000 + given_ns - pacer.burst_ns


def test_a_host_whose_port_is_held_sleeps_after_it_sent_many_acks():
    net = RcNet()
    flow = net.join()
    net.hosts[1].port_paused(0, net.now)
    stream(net, flow, 6_400)
    flow.write(pattern(4096), source=1)
    net.run(lambda: net.counters(1)["acks_sent"] == 1_600, within=200 * T)
    deadline = net.hosts[1].next_timeout()
    assert deadline is None or deadline > net.now
