"""Stories of messages, immediates, and what one side may not do to the other."""

import dataclasses

import pytest

from mrc_testbed.hosts.common.errors import QpStateError, UnknownPeerError, UnknownQpError
from tests.sim.simnet import ImmediateDelivered, Net, QpError, T, WriteCompleted, pattern
from tests.sim.test_transfer import PACKET, transfer


def test_immediates_come_in_order_though_messages_do_not():
    net = Net()
    for plane in range(4):
        net.worsen(plane=plane, delay_ns=T // 2 + plane * T // 8)
    net.worsen(loss=0.01)
    flow = net.join()
    order = []
    for i in range(30):
        size = (7 * i % 5) * PACKET + i
        immediate = None if i % 4 == 3 else 1000 + i
        flow.write(pattern(size, i), offset=i * 5 * PACKET, wr_id=i, immediate=immediate)
        if immediate is not None:
            order.append(immediate)
    net.run(lambda: len(net.completed()) == 30)
    assert [e.immediate for e in net.events_of(ImmediateDelivered, 1)] == order
    assert [e.wr_id for e in net.completed()] == list(range(30))


def test_an_immediate_waits_for_every_earlier_message_to_be_whole():
    net = Net()
    flow = net.join()
    first, second = pattern(10 * PACKET, 1), pattern(PACKET, 2)
    whole = []
    net.taps.append(lambda host, token, tc, packet: not (host == 0 and packet[0] == 0xC7 and not dropped(packet)))
    seen = []

    def dropped(packet):
        seen.append(packet)
        return len(seen) != 3

    flow.write(first, wr_id=1)
    flow.write(second, offset=10 * PACKET, wr_id=2, immediate=5)
    while not net.events_of(ImmediateDelivered, 1):
        net.run(lambda: net.events_of(ImmediateDelivered, 1) or net.steps > len(whole) * 10, within=20 * T)
        whole.append(net.steps)
    assert flow.region()[: len(first)] == first
    assert net.counters()["retransmitted"] == 1


def test_the_sender_keeps_max_wimm():
    net = Net(max_wimm=4)
    flow = net.join()
    open_now = []

    def watch(host, token, traffic_class, packet):
        begun = int.from_bytes(packet[12:14], "big") + 1 if host == 0 and packet[0] <= 0xCB else 0
        if begun:
            open_now.append(begun - len(net.completed()))

    net.taps.append(watch)
    for i in range(40):
        flow.write(pattern(100), wr_id=i, immediate=i)
    net.run(lambda: len(net.completed()) == 40)
    assert max(open_now) == 4
    assert net.counters(1)["wimm_delivered"] == 40


def test_the_receiver_enforces_max_wimm():
    net = Net(max_wimm=4)
    flow = net.join()
    # The first host is made to believe in a larger bound than the second has.
    lie = dataclasses.replace(flow.attributes[1], max_wimm=100)
    other = net.hosts[0].open_qp(1, 4096)
    target = net.hosts[1].open_qp(0, 1 << 20)
    net.hosts[1].connect_qp(target.qpn, other)
    net.hosts[0].connect_qp(other.qpn, dataclasses.replace(target, max_wimm=lie.max_wimm))
    held = []
    net.taps.append(lambda host, token, tc, packet: not (host == 0 and not held and not held.append(1)))
    for i in range(30):
        net.hosts[0].post_write(other.qpn, pattern(100), target.region_address, i, i)
    net.run(lambda: net.events_of(QpError), within=20 * T)
    assert net.events_of(QpError)[0].reason == "invalid request"
    assert net.counters(1)["refused_too_many_wimm"] >= 1


@pytest.mark.parametrize("change", [{"rkey": 1}, {"region_address": 0}, {"region_address": (1 << 64) - 4096}], ids=str)
def test_a_write_that_is_not_allowed_ends_the_qp_and_touches_nothing(change):
    net = Net()
    mine, theirs = net.hosts[0].open_qp(1, 4096), net.hosts[1].open_qp(0, 8192)
    net.hosts[1].connect_qp(theirs.qpn, mine)
    told = dataclasses.replace(theirs, **change)
    net.hosts[0].connect_qp(mine.qpn, told)
    net.hosts[0].post_write(mine.qpn, pattern(4096), told.region_address, 1)
    net.run(lambda: net.events_of(QpError), within=5 * T)
    assert net.events_of(QpError)[0].reason == "remote access error"
    assert not any(net.hosts[1].region(theirs.qpn))
    assert net.counters(1)["refused_remote_access"] == 1


def test_a_write_over_the_end_of_the_region_places_no_byte_beyond():
    net = Net()
    flow = net.join(region_bytes=10_000)
    flow.write(pattern(12_000))
    net.run(lambda: net.events_of(QpError), within=5 * T)
    assert net.events_of(QpError)[0].reason == "remote access error"
    assert not net.completed()
    assert bytes(flow.region()[8192:]) == bytes(1808)


def test_packets_for_an_unknown_qp_are_counted_and_ignored():
    net = Net()
    mine, theirs = net.hosts[0].open_qp(1, 4096), net.hosts[1].open_qp(0, 8192)
    net.hosts[0].connect_qp(mine.qpn, dataclasses.replace(theirs, qpn=999))
    net.hosts[0].post_write(mine.qpn, pattern(100), theirs.region_address, 1)
    net.run(within=2 * T, must=False)
    assert net.counters(1)["refused_unknown_qp"] == 1


def test_packets_from_the_wrong_host_are_refused():
    net = Net(hosts=3)
    flow = net.join(0, 1)
    captured = []
    net.taps.append(lambda host, token, tc, packet: captured.append(packet))
    transfer(net, flow, pattern(100))
    net.hosts[1].handle_datagram(memoryview(captured[0]), 2, 0, 0xC000, 0, net.now, net.now)
    net.hosts[1].handle_datagram(memoryview(captured[0]), 7, 0, 0xC000, 0, net.now, net.now)
    assert net.counters(1)["refused_wrong_peer"] == 1
    assert net.counters(1)["refused_unknown_peer"] == 1


def test_misuse_is_told_to_the_caller():
    net = Net()
    endpoint = net.hosts[0]
    with pytest.raises(UnknownPeerError):
        endpoint.open_qp(77, 4096)
    with pytest.raises(UnknownQpError):
        endpoint.region(5)
    attributes = endpoint.open_qp(1, 4096)
    with pytest.raises(QpStateError) as caught:
        endpoint.post_write(attributes.qpn, b"x", 0, 1)
    assert caught.value.state == "INIT"
    endpoint.connect_qp(attributes.qpn, attributes)
    with pytest.raises(QpStateError):
        endpoint.connect_qp(attributes.qpn, attributes)


def test_attributes_survive_json():
    attributes = Net().hosts[0].open_qp(1, 4096)
    assert type(attributes).from_json(attributes.as_json()) == attributes


def test_many_small_writes_complete_in_order():
    net = Net()
    flow = net.join()
    for i in range(300):
        flow.write(bytes([i & 255]) * 16, offset=i * 16, wr_id=i)
    net.run(lambda: len(net.completed()) == 300)
    assert [e.wr_id for e in net.events_of(WriteCompleted)] == list(range(300))
