"""QPs that end: destroyed, or reset and set up again."""

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.errors import QpStateError, UnknownQpError
from mrc_testbed.hosts.common.qpstate import QpState
from mrc_testbed.hosts.mrc import wire
from tests.sim.simnet import Flow, Net, QpError, T, pattern
from tests.sim.test_responder import give, nack, sent_by
from tests.sim.test_transfer import PACKET, transfer


@pytest.fixture
def no_collector():
    """As in a daemon: what is in a cycle stays for ever."""
    gc.disable()
    yield
    gc.enable()


def test_a_destroyed_qp_sends_nothing_more_and_the_others_go_on():
    net = Net()
    flow, other = net.join(), net.join()
    for source in (0, 1):
        flow.write(pattern(100 * PACKET), source=source)
    net.run(within=T, must=False)
    net.hosts[0].destroy_qp(flow.qpn[0])
    assert [sender.qpn for sender in net.hosts[0]._peers[1].senders] == [other.qpn[0]]
    assert list(net.hosts[0].qp_packets()) == [other.qpn[0]]
    sent = net.counters()["data_sent"]
    net.run(within=20 * T, must=False)
    assert net.counters()["data_sent"] == sent
    assert not net.events[0], "neither completions nor errors of what is gone"
    assert net.counters()["refused_unknown_qp"] > 0
    transfer(net, other, pattern(50 * PACKET))
    net.run(lambda: net.events_of(QpError, 1), within=600 * T)
    assert net.events_of(QpError, 1)[0].reason == "retries exceeded"


def test_nothing_of_a_destroyed_qp_stays(no_collector):
    net = Net()
    flow = net.join()
    flow.write(pattern(100 * PACKET))
    flow.write(pattern(100 * PACKET), source=1)
    net.run(within=2 * T, must=False)
    region = weakref.ref(flow.region(0))
    assert region() is not None
    net.hosts[0].destroy_qp(flow.qpn[0])
    net.run(within=20 * T, must=False)
    assert region() is None
    assert not net.hosts[0]._context.incast._flows


def test_a_destroyed_qp_is_unknown():
    net = Net()
    mine = net.hosts[0].open_qp(1, 4096)
    net.hosts[0].destroy_qp(mine.qpn)
    with pytest.raises(UnknownQpError):
        net.hosts[0].destroy_qp(mine.qpn)
    with pytest.raises(UnknownQpError):
        net.hosts[0].region(mine.qpn)
    assert net.hosts[0].open_qp(1, 4096).qpn != mine.qpn, "its number is not given again"


def test_events_of_a_destroyed_qp_are_not_told():
    net = Net()
    flow, other = net.join(), net.join()
    packets = [packet for each in (flow, other) for packet in sent_by(net, each, (PACKET, 11))]
    for packet in packets:
        net.hosts[1].handle_datagram(memoryview(packet), 0, 0x0102, 0xC000, 4 << 2, net.now, net.now)
    net.hosts[1].destroy_qp(flow.qpn[1])
    net._drain(1)
    assert [event.qpn for event in net.events[1]] == [other.qpn[1]]


def failed_in_flight():
    """A QP whose paths were all cut until it gave up, and are whole again; its last packets are still unanswered."""
    net = Net(linear_tries=2, exponential_tries=0)
    flow, data = net.join(), bytearray(b"A" * 60 * PACKET)
    flow.write(data)
    net.cut(src=0)
    net.run(lambda: net.events_of(QpError), within=300 * T)
    net.heal(src=0)
    return net, flow, data


def test_a_failed_qp_sends_nothing_more_when_a_port_falls():
    """The application has its buffer back: what goes out of it now is not what was written."""
    net, flow, data = failed_in_flight()
    assert net.events_of(QpError)[0].reason == "retries exceeded"
    sent = net.counters()["data_sent"]
    data[:] = b"B" * len(data)
    net.run(within=3 * T, must=False)
    net.port_down(0, 2)
    net.run(within=5 * T, must=False)
    assert (net.counters()["data_sent"], net.counters()["lost_port_down"]) == (sent, 0)
    assert not bytes(flow.region()).count(b"B")


def test_beside_a_failed_qp_a_host_that_only_receives_looks_after_the_way_back():
    net, _, _ = failed_in_flight()
    other = net.join()
    probes = net.counters()["reverse_probes_sent"]
    for number in range(20):
        other.write(pattern(8 * PACKET), wr_id=number, source=1)
    net.run(within=10 * T, must=False)
    assert net.counters()["reverse_probes_sent"] > probes


def rejoin(net, flow):
    """Reset both ends and connect them again."""
    attributes = {host: net.hosts[host].reset_qp(flow.qpn[host]) for host in (flow.a, flow.b)}
    for host in attributes:
        net.hosts[host].connect_qp(flow.qpn[host], attributes[flow.other(host)])
    return Flow(net, flow.a, flow.b, flow.qpn[flow.a], flow.qpn[flow.b], attributes[flow.a], attributes[flow.b])


def test_a_qp_that_failed_works_again_after_a_reset():
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(100 * PACKET))
    flow.write(pattern(PACKET), offset=1 << 22)
    net.run(lambda: net.events_of(QpError, 0) and net.events_of(QpError, 1), within=3 * T)
    again = rejoin(net, flow)
    assert again.attributes[0].qpn == flow.attributes[0].qpn
    assert again.attributes[1].rkey != flow.attributes[1].rkey
    assert again.attributes[1].region_address == flow.attributes[1].region_address
    transfer(net, again, pattern(100 * PACKET), wr_id=7)
    assert net.completed()[-1].wr_id == 7


def test_a_nack_from_before_a_reset_does_not_end_the_new_connection():
    net = Net()
    flow = net.join()
    late = nack(net, flow, sent_by(net, flow, (PACKET, None))[0], wire.NACK_UNEXP_EVENT, 0)
    again = rejoin(net, flow)
    give(net, late, host=0)
    assert (net.counters()["refused_not_outstanding"], net.counters()["qp_errors"]) == (1, 0)
    transfer(net, again, pattern(10 * PACKET), wr_id=7)


def test_a_reset_in_full_flight_leaves_what_is_under_way_without_effect():
    net = Net(seed=3)
    flow = net.join()
    for seed in range(20):
        flow.write(pattern(200 * PACKET, seed), source=seed % 2)
        net.run(within=T // 2 + seed * T // 10, must=False)
        flow = rejoin(net, flow)
        data = pattern(30 * PACKET, 99 + seed)
        transfer(net, flow, data, offset=1 << 20, wr_id=seed)
    assert not net.events_of(QpError, 0)
    assert not net.events_of(QpError, 1)
    assert net.counters()["data_on_bad_ev"] == 0


@given(seed=st.integers(0, 1 << 20), psn=st.integers(0, (1 << 24) - 1), size=st.integers(1, 60))
def test_nothing_from_before_a_reset_has_an_effect_after_it(seed, psn, size):
    """Every packet of the old connection, and its NAK, comes once more."""
    net = Net(seed=seed)
    flow = net.join(psn_a=psn)
    old = []
    net.taps.append(lambda src, token, tc, packet: old.append((src, tc, packet)) or True)
    flow.write(pattern(size * PACKET))
    net.run(within=2 * T, must=False)
    net.taps.clear()
    buffer = memoryview(bytearray(100))
    size = wire.emit_ack(buffer, flow.qpn[0], flow.attributes[0].psn + 3, bth.AETH_NAK_REMOTE_ACCESS, 0)
    old.append((1, bth.CLASS_CONTROL, bytes(buffer[:size])))
    again = rejoin(net, flow)
    again.write(pattern(5 * PACKET, 9), offset=1 << 20, wr_id=7)
    net.run(within=0, must=False)
    for src, traffic_class, packet in old:
        net.hosts[1 - src].handle_datagram(memoryview(packet), src, 0x0102, 0xC000, traffic_class, net.now, net.now)
    before = bytes(again.region()[: 1 << 20])
    net.run(lambda: net.completed() and net.completed()[-1].wr_id == 7, within=20 * T)
    assert again.region()[: 1 << 20] == before
    assert again.region()[1 << 20 :][: 5 * PACKET] == pattern(5 * PACKET, 9)
    for host in (0, 1):
        assert not net.events_of(QpError, host)
    assert net.counters()["retransmitted"] == 0


def test_a_reset_qp_waits_in_init_and_keeps_its_bytes():
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(PACKET))
    net.hosts[1].reset_qp(flow.qpn[1])
    assert net.hosts[1]._qps[flow.qpn[1]].state is QpState.INIT
    assert flow.region()[:PACKET] == pattern(PACKET)
    with pytest.raises(QpStateError):
        flow.write(b"x", source=1)
    packet = sent_by(net, flow, (PACKET, None))[0]
    assert give(net, packet) == []
    assert net.counters(1)["refused_qp_state"] == 1
