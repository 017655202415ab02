"""Stories of NIC ports that lose their carrier."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.portstate import PortState
from tests.sim.simnet import EvChanged, Net, PlaneChanged, PortChanged, QpError, T, pattern
from tests.sim.test_loss import is_data
from tests.sim.test_paths import endless, restored, retired
from tests.sim.test_transfer import PACKET, transfer


def states(net, host):
    return [(e.peer, e.plane, e.state) for e in net.events_of(PortChanged, host)]


def sent_on(net, host, plane, seen):
    """Collects what `host` puts on a plane from now on."""

    def tap(src, token, traffic_class, packet):
        if src == host and token[1] == plane:
            seen.append((net.now, packet))

    net.taps.append(tap)


def no_way_to(net, host, plane):
    """Its port is still down, although others came back."""
    net.cut(plane=plane, src=host)
    net.cut(plane=plane, dst=host)


@pytest.mark.parametrize("switches", [None, True], ids=["paths", "ports"])
def test_a_port_that_goes_down_costs_its_share_and_no_qp(switches):
    net = Net(switches=switches)
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.port_down(0, 2)
    net.run(within=2 * T, must=False)
    before = net.counters(1)["data_received"]
    net.run(within=20 * T, must=False)
    received = net.counters(1)["data_received"] - before
    assert received > 0.95 * 3 * 14.5 * 20
    assert net.counters()["lost_port_down"] > 0
    assert not retired(net), "the paths are not to blame"
    net.port_up(0, 2)
    returned = net.run(lambda: states(net, 0)[-1] == (None, 2, PortState.UP), within=5 * T)
    assert returned <= 2 * T
    net.run(lambda: states(net, 1)[-1] == (0, 2, PortState.UP), within=5 * T)
    before = net.plane_packets()
    net.run(within=10 * T, must=False)
    gained = [after - b for after, b in zip(net.plane_packets(), before, strict=True)]
    assert max(gained) - min(gained) <= 1
    stop()
    assert net.counters()["qp_errors"] == net.counters()["data_on_bad_ev"] == 0


def test_no_data_leaves_by_the_port_after_the_call():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    seen = []
    net.port_down(0, 1)
    sent_on(net, 0, 1, seen)
    net.run(within=30 * T, must=False)
    assert not seen
    stop()


def test_the_peers_leave_the_plane_within_a_few_round_trips_inbound_too():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.port_down(1, 3)
    down_at = net.now
    seen = []
    sent_on(net, 0, 3, seen)
    net.run(lambda: states(net, 0), within=10 * T)
    assert states(net, 0) == [(1, 3, PortState.DOWN)]
    assert net.now - down_at <= 2 * T
    last_data = max((at for at, packet in seen if is_data(packet)), default=down_at)
    seen.clear()
    net.run(within=30 * T, must=False)
    assert last_data - down_at <= 2 * T
    assert not seen, "neither data nor SACKs nor probes go where nobody listens"
    stop()


def test_the_mask_in_sacks_tells_it_when_every_update_is_lost():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.taps.append(lambda src, token, tc, packet: not (packet[0] == wire.ENDPOINT_REQUEST and packet[13] & 3 == 0))
    net.run(within=10 * T, must=False)
    net.port_down(1, 0)
    net.run(lambda: states(net, 0), within=4 * T)
    assert states(net, 0) == [(1, 0, PortState.DOWN)]
    net.port_up(1, 0)
    net.run(lambda: (1, 0, PortState.UP) in states(net, 0), within=10 * T)
    stop()


@pytest.mark.parametrize("updates", [True, False], ids=["updates", "no-updates"])
@pytest.mark.parametrize("slow", [1, 2, 3])
def test_sacks_that_left_before_the_newest_word_of_a_port_do_not_call_it_down_again(slow, updates):
    """Host 1's port is back, and SACKs of some QPs that left before are still under way on a slow plane."""
    net = Net()
    if not updates:
        net.taps.append(lambda src, token, tc, packet: not (packet[0] == wire.ENDPOINT_REQUEST and packet[13] & 3 == 0))
    flows = [net.join() for _ in range(16)]
    net.worsen(plane=slow, src=1, delay_ns=3 * T // 2)
    net.port_down(1, 0)
    for number in range(10 * len(flows)):
        if number == 6 * len(flows):
            net.port_up(1, 0)
        flows[number % len(flows)].write(pattern(PACKET), wr_id=number)
        net.run(within=T // 10, must=False)
    net.run(lambda: len(net.completed()) == 10 * len(flows))
    assert [state for _, _, state in states(net, 0)] == [PortState.DOWN, PortState.RISING, PortState.UP]


def test_an_update_is_repeated_until_it_is_answered():
    net = Net()
    net.join()
    lost = []

    def tap(src, token, traffic_class, packet):
        if packet[0] == wire.ENDPOINT_REQUEST and packet[13] & 3 == wire.OP_PORT_STATUS and len(lost) < 9:
            lost.append(net.now)
            return False
        return True

    net.taps.append(tap)
    net.port_down(0, 3)
    net.run(lambda: states(net, 1), within=20 * T)
    assert [at - lost[0] for at in lost[::3]] == [0, 4 * T, 8 * T]
    sent = net.counters()["port_updates_sent"]
    net.run(within=30 * T, must=False)
    assert net.counters()["port_updates_sent"] == sent == 12
    assert net.hosts[0].next_timeout() is None


def test_carrier_alone_does_not_bring_a_port_back():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.port_down(0, 1)
    net.run(within=10 * T, must=False)
    net.hosts[0].port_up(1, net.now)
    net.run(within=40 * T, must=False)
    assert states(net, 0)[-1] == (None, 1, PortState.RISING)
    before = net.plane_packets()[1]
    net.heal(plane=1)
    net.run(lambda: net.plane_packets()[1] > before, within=25 * T)
    stop()


def test_a_probe_sent_before_the_last_flap_proves_nothing():
    net = Net(planes=2, uplinks=1)
    net.join()
    net.port_down(0, 1)
    net.run(within=10 * T, must=False)
    net.port_up(0, 1)
    net.run(within=T // 4, must=False)
    for change in (net.hosts[0].port_down, net.hosts[0].port_up):
        change(1, net.now)
    begun = net.now
    net.run(lambda: states(net, 0)[-1][2] is PortState.UP, within=10 * T)
    assert net.now - begun >= T


def test_a_flapping_port_breaks_nothing():
    net = Net(seed=3)
    flow = net.join()
    stop = endless(net, flow)
    for _ in range(8):
        net.port_down(0, 0)
        net.run(within=3 * T, must=False)
        net.port_up(0, 0)
        net.run(within=3 * T, must=False)
    net.run(within=10 * T, must=False)
    assert states(net, 0)[-1] == (None, 0, PortState.UP)
    assert states(net, 1)[-1] == (0, 0, PortState.UP)
    stop()
    for host in (0, 1):
        assert net.counters(host)["qp_errors"] == net.counters(host)["data_on_bad_ev"] == 0


def test_ports_down_at_both_ends_leave_the_planes_in_between():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.port_down(0, 0)
    net.port_down(1, 1)
    net.run(within=5 * T, must=False)
    before = net.plane_packets()
    net.run(within=10 * T, must=False)
    gained = [after - b for after, b in zip(net.plane_packets(), before, strict=True)]
    assert gained[:2] == [0, 0]
    assert abs(gained[2] - gained[3]) <= 1 < gained[2]
    stop()


def test_ports_that_fall_together_at_both_ends_come_back_together():
    """A T0 that both hosts share reboots."""
    for later in (0, 1, 10 * T):
        net = Net()
        flow = net.join()
        stop = endless(net, flow)
        net.port_down(0, 2)
        net.port_down(1, 2)
        net.run(within=30 * T, must=False)
        net.port_up(0, 2)
        no_way_to(net, 1, plane=2)
        net.run(within=later, must=False)
        net.port_up(1, 2)
        back = [(None, 2, PortState.UP), (1, 2, PortState.UP)]
        took = net.run(lambda net=net, back=back: set(back) <= set(states(net, 0)), within=20 * T)
        assert took <= 6 * T
        before = net.plane_packets()
        net.run(within=10 * T, must=False)
        gained = [after - b for after, b in zip(net.plane_packets(), before, strict=True)]
        assert max(gained) - min(gained) <= 1
        stop()


def test_a_port_alone_in_its_plane_asks_and_stays_out():
    """The peer's port does not come back: nothing is sent there but a probe now and then."""
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.port_down(0, 2)
    net.port_down(1, 2)
    net.run(within=10 * T, must=False)
    seen = []
    net.port_up(0, 2)
    no_way_to(net, 1, plane=2)
    sent_on(net, 0, 2, seen)
    net.run(within=64 * T, must=False)
    assert states(net, 0)[-1] == (None, 2, PortState.RISING)
    assert 0 < len(seen) < 10
    assert not any(is_data(packet) for _, packet in seen)
    stop()


def test_evs_return_in_the_state_they_had():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.hosts[0].deny(1, [(2, 0)])
    net.cut(plane=2, uplink=1)
    net.run(lambda: retired(net), within=10 * T)
    net.port_down(0, 2)
    net.run(within=10 * T, must=False)
    assert not restored(net)
    net.port_up(0, 2)
    net.cut(plane=2, uplink=1)
    net.run(within=10 * T, must=False)
    state = {path.uplink: path.state for path in net.hosts[0]._peers[1].paths if path.plane == 2}
    assert state == {0: EvState.DENIED, 1: EvState.ASSUMED_BAD, 2: EvState.GOOD, 3: EvState.GOOD}
    net.heal(plane=2)
    net.run(lambda: restored(net), within=30 * T)
    stop()


def test_the_loss_of_all_ports_fails_the_qp_with_that_reason():
    net = Net()
    flow = net.join()
    flow.write(pattern(400 * PACKET))
    net.run(within=2 * T, must=False)
    for plane in range(4):
        net.port_down(0, plane)
    net.run(within=T, must=False)
    (event,) = net.events_of(QpError)
    assert event.reason == "all ports down"


def test_a_qp_that_is_set_up_without_any_port_fails_with_that_reason():
    net = Net()
    for plane in range(4):
        net.port_down(0, plane)
    net.join()
    net.run(within=T, must=False)
    (event,) = net.events_of(QpError, 0)
    assert event.reason == "all ports down"
    assert not net.events_of(QpError, 1), "the other end has all its ports"


def test_one_port_left_is_enough():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    for plane in range(3):
        net.port_down(1, plane)
    net.run(within=20 * T, must=False)
    assert [e.plane for e in net.events_of(PlaneChanged)] == [0, 1, 2]
    assert not net.events_of(QpError)
    stop()


def test_a_port_that_was_down_at_set_up_is_known_to_the_peer():
    net = Net()
    net.port_down(1, 2)
    net.taps.append(lambda src, token, tc, packet: packet[0] != wire.ENDPOINT_REQUEST)
    flow = net.join()
    transfer(net, flow, pattern(100 * PACKET))
    assert net.plane_packets()[2] == 0
    assert not net.events_of(EvChanged)


def updated(net, request_id, stamp, mask, tsr=1):
    """Host 1 gets a Port Status Update that host 0 sent at `stamp`."""
    buffer = memoryview(bytearray(100))
    size = wire.emit_request(buffer, wire.OP_PORT_STATUS, request_id, mask, stamp & 0xFFFF)
    buffer[26] = tsr << 7
    net.hosts[1].handle_datagram(buffer[:size], 0, 0, 0xC000, 46 << 2, net.now, net.now)


@settings(deadline=None)
@given(
    ids=st.tuples(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF)),
    first=st.integers(0, 0xFFFF),
    apart=st.integers(1, (1 << 15) - 1),
    wait_ns=st.integers(0, (1 << 14) * 8192 - 1),
)
def test_an_overtaken_update_changes_nothing_whatever_the_request_ids(ids, first, apart, wait_ns):
    net = Net()
    net.join()
    updated(net, ids[0], first + apart, 0b1011)
    net.skip(wait_ns)
    updated(net, ids[1], first, 0b1111)
    assert net.counters(1)["refused_old_update"] == 1
    net.run(within=T, must=False)
    assert states(net, 1) == [(0, 2, PortState.DOWN)]


@settings(deadline=None)
@given(
    ids=st.tuples(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF)),
    first=st.integers(0, 0xFFFF),
    wait_ns=st.integers(0, 1 << 34),
    late_ns=st.integers(-100 * 1_000_000, 100 * 1_000_000),
    tsr=st.sampled_from([1, 1, 0]),
)
def test_a_later_update_counts_whatever_the_request_ids(ids, first, wait_ns, late_ns, tsr):
    """`late_ns`: by how much longer it was under way than the first."""
    unit_ns = 8192 if tsr else 128
    late_ns = max(late_ns, -wait_ns) if tsr else 0
    net = Net()
    net.join()
    updated(net, ids[0], first, 0b1011, tsr)
    net.skip(wait_ns + max(late_ns, 0))
    updated(net, ids[1], first + (wait_ns - min(late_ns, 0)) // unit_ns, 0b1101, tsr)
    assert net.counters(1)["refused_old_update"] == 0
    assert net.hosts[1]._peers[0].ports.remote.carrier_mask == 0b1101


def test_a_peer_that_says_it_has_no_port_is_not_believed():
    net = Net()
    flow = net.join()
    buffer = memoryview(bytearray(100))
    size = wire.emit_request(buffer, wire.OP_PORT_STATUS, 1, 0, 0)
    net.hosts[0].handle_datagram(buffer[:size], 1, 0, 0xC000, 46 << 2, net.now, net.now)
    transfer(net, flow, pattern(50 * PACKET))
    assert net.counters()["refused_no_port_left"] == 1
