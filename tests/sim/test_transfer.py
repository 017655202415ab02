"""Stories of transfers over a sound network."""

import pytest

from mrc_testbed.hosts.common.psn import MASK
from mrc_testbed.hosts.mrc import wire
from tests.sim.ports import BOUNDLESS
from tests.sim.simnet import MS, RATE, Net, T, pattern

PACKET = 4096


def transfer(net, flow, data, within=60 * T, **write):
    """Write, wait for completion, compare."""
    already = len(net.completed(flow.a))
    flow.write(data, **write)
    taken = net.run(lambda: len(net.completed(flow.a)) > already, within=within)
    offset = write.get("offset", 0)
    assert flow.region()[offset : offset + len(data)] == data
    return taken


def test_a_clean_transfer_arrives_whole_and_completes_once():
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(300 * PACKET + 77), offset=11, wr_id=42, within=20 * T)
    net.run(within=20 * T, must=False)
    assert [event.wr_id for event in net.completed()] == [42]
    counters = net.counters()
    assert counters["data_sent"] == 301
    assert counters["retransmitted"] == 0
    assert counters["evs_retired"] == 0
    assert net.counters(1)["data_received"] == 301
    other = net.counters(1)
    assert 301 // 4 <= other["sacks_sent"] <= 301 // 4 + 12
    assert counters["sacks_received"] == other["sacks_sent"]
    assert counters["acks_received"] == other["acks_sent"] >= 301 // 64
    assert counters["bytes_sent"] == 300 * 4096 + 77
    assert counters["messages_posted"] == counters["messages_completed"] == 1
    assert not any(count for name, count in (counters | other).items() if name.startswith("refused"))


def test_ce_marks_come_back_to_the_sender():
    net = Net()
    flow = net.join()
    net.mark_ce = True
    transfer(net, flow, pattern(50 * PACKET))
    net.run(within=5 * T, must=False)
    assert net.counters()["sacks_with_ce"] == 50
    assert net.counters()["retransmitted"] == 0


def test_nothing_is_written_outside_the_target():
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(10_001), offset=4097)
    region = bytes(flow.region())
    assert not any(region[:4097])
    assert not any(region[4097 + 10_001 :])


@pytest.mark.parametrize("size", [0, 1, 3, 4095, 4096, 4097, 8192])
def test_odd_sizes(size):
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(size), offset=5)


def test_planes_are_exactly_equal_and_every_uplink_is_used():
    net = Net()
    flow = net.join()
    skew = []

    def watch(*_):
        planes = net.plane_packets()
        skew.append(max(planes) - min(planes))

    net.taps.append(watch)
    transfer(net, flow, pattern(403 * PACKET))
    assert max(skew) <= 1
    counts = net.hosts[0].path_packets(1)
    assert len(counts) == 16
    assert min(counts.values()) >= 403 // 16 - 1
    assert max(counts.values()) <= 403 // 16 + 2


def test_the_sender_keeps_to_the_port_rate():
    net = Net()
    flow = net.join()
    data = pattern(800 * PACKET)
    taken = transfer(net, flow, data)
    wire_bits = 800 * (PACKET + 40 + 102) * 8
    assert taken > wire_bits * 1_000_000_000 // (4 * RATE)
    assert taken < 1.1 * wire_bits * 1_000_000_000 // (4 * RATE) + 2 * T


def test_two_qps_share_the_pacer_evenly():
    net = Net(hosts=3)
    first, second = net.join(0, 1), net.join(0, 2)
    data = pattern(400 * PACKET)
    first.write(data)
    second.write(data)
    taken = net.run(lambda: len(net.completed()) == 2)
    wire_bits = 800 * (PACKET + 40 + 102) * 8
    assert taken > wire_bits * 1_000_000_000 // (4 * RATE)
    net.run(within=10 * T, must=False)
    assert sum(net.plane_packets(0, 1)) == sum(net.plane_packets(0, 2)) == 400
    assert first.region()[: len(data)] == second.region()[: len(data)] == data


def test_two_qps_to_one_peer_take_turns():
    net = Net()
    flows = [net.join(), net.join()]
    for flow in flows:
        flow.write(pattern(300 * PACKET))
    net.run(lambda: net.completed())
    begun = net.now
    net.run(lambda: len(net.completed()) == 2)
    assert net.now - begun < T
    planes = net.plane_packets()
    assert max(planes) - min(planes) <= 1


def test_the_window_is_bounded():
    net = Net(pace=False)
    flow = net.join()
    net.cut(src=1)
    flow.write(pattern(900 * PACKET))
    net.run(within=T, must=False)
    bdp_packets = 4 * RATE * T / 8e9 / (PACKET + 142)
    assert 1.4 * bdp_packets < net.counters()["data_sent"] <= 1.5 * bdp_packets + 1


def test_the_psn_range_is_bounded():
    net = Net(pace=False, mpr=1, port_rate_bps=100 * RATE)
    flow = net.join()
    net.cut(src=1)
    flow.write(pattern(900 * PACKET))
    net.run(within=T, must=False)
    assert net.counters()["data_sent"] == 128
    assert net.counters(1)["nacks_sent"] == 0


def test_the_peer_can_narrow_the_psn_range_if_both_ends_are_dynamic():
    for dynamic in (False, True):
        net = Net(pace=False, port_rate_bps=100 * RATE, dynamic_mpr=8 if dynamic else 0)
        flow = net.join()
        net.hosts[1].limit_psn_range(flow.qpn[1], 1)
        transfer(net, flow, pattern(20 * PACKET))
        net.cut(src=1)
        before = net.counters()["data_sent"]
        flow.write(pattern(900 * PACKET))
        net.run(within=T, must=False)
        assert net.counters()["data_sent"] - before == (128 if dynamic else 900)


def test_resends_stay_in_a_range_that_shrank():
    """Every second of the first 700 of 900 packets is lost, and then the peer takes only 128 at once."""
    net = Net(pace=False, port_rate_bps=100 * RATE, dynamic_mpr=8)
    flow = net.join()
    sender = net.hosts[0]._qps[flow.qpn[0]].sender
    transfer(net, flow, pattern(20 * PACKET))
    first, resent_beyond = sender.flight.next, []

    def tap(host, token, traffic_class, packet):
        if host or packet[0] > wire.LAST_DATA_OPCODE:
            return True
        seq = int.from_bytes(packet[9:12], "big") - flow.attributes[0].psn & MASK
        if sender._psn_range == 128 and seq >= sender.flight.una + 128:
            resent_beyond.append(seq)
        return seq - first >= 700 or bool(seq & 1) or packet[8] & 0x20 != 0

    net.taps.append(tap)
    net.hosts[1].limit_psn_range(flow.qpn[1], 1)
    done = len(net.completed())
    flow.write(pattern(900 * PACKET))
    net.run(lambda: len(net.completed()) > done, within=200 * T)
    assert net.counters()["retransmitted"] >= 350
    assert resent_beyond == []


def test_a_configured_timeout_is_kept():
    net = Net(timeout=20)
    flow = net.join()
    net.cut()
    flow.write(pattern(100))
    taken = net.run(lambda: net.counters()["timeouts"], within=100 * T)
    assert taken == pytest.approx(1024 << 20, rel=0.01)


def test_psns_wrap_in_the_middle_of_a_transfer():
    net = Net()
    flow = net.join(psn_a=(1 << 24) - 100)
    net.worsen(loss=0.01)
    transfer(net, flow, pattern(400 * PACKET))
    assert net.counters()["data_on_bad_ev"] == 0


def test_reordering_between_planes_is_not_loss():
    net = Net()
    for plane in range(4):
        net.worsen(plane=plane, delay_ns=T // 2 + plane * 4 * MS)
    flow = net.join()
    transfer(net, flow, pattern(400 * PACKET))
    assert net.counters()["retransmitted"] == 0
    assert net.counters()["evs_retired"] == 0


def test_reordering_over_more_than_64_packets_is_not_loss():
    net = Net()
    net.worsen(plane=2, delay_ns=T // 2 + 38 * MS // 2)
    flow = net.join()
    transfer(net, flow, pattern(800 * PACKET))
    assert net.counters()["retransmitted"] == 0


def test_jitter_on_every_path_is_not_loss():
    net = Net()
    net.worsen(jitter_ns=8 * MS)
    flow = net.join()
    transfer(net, flow, pattern(400 * PACKET))
    assert net.counters()["retransmitted"] == 0


def test_duplicated_packets_are_placed_once_and_reported():
    net = Net()
    net.worsen(duplicate=0.2)
    flow = net.join()
    transfer(net, flow, pattern(300 * PACKET), immediate=7)
    assert net.counters(1)["data_received"] == 300
    assert net.counters(1)["duplicates"] > 20
    assert net.counters(1)["immediates"] == 1
    assert len(net.completed()) == 1


def test_both_directions_at_once():
    net = Net()
    flow = net.join()
    there, back = pattern(200 * PACKET, 1), pattern(200 * PACKET, 2)
    flow.write(there)
    flow.write(back, source=1)
    net.run(lambda: net.completed(0) and net.completed(1))
    assert flow.region(1)[: len(there)] == there
    assert flow.region(0)[: len(back)] == back


def test_an_incast_queues_but_looks_like_no_loss():
    net = Net(hosts=5, switches=BOUNDLESS)
    flows = [net.join(source, 0) for source in range(1, 5)]
    for flow in flows:
        flow.write(pattern(300 * PACKET))
    net.run(lambda: all(net.completed(source) for source in range(1, 5)), within=60 * T)
    for source in range(1, 5):
        assert net.counters(source)["retransmitted"] == 0
        assert net.counters(source)["timeouts"] == 0
        assert net.counters(source)["evs_retired"] == 0


def test_the_icrc_is_checked():
    net = Net(icrc=True)
    flow = net.join()
    damaged = []

    def damage(src, token, traffic_class, packet):
        if len(packet) > 4000 and len(damaged) < 3:
            damaged.append(packet)
            net.hosts[1].handle_datagram(
                memoryview(packet[:100] + b"?" + packet[101:]), 0, 0, 0xC000, 0, net.now, net.now
            )
            return False
        return True

    net.taps.append(damage)
    transfer(net, flow, pattern(100 * PACKET))
    assert net.counters(1)["refused_bad_icrc"] == 3
    assert net.counters()["retransmitted"] == 3


def test_the_same_seed_gives_the_same_run():
    def story():
        net = Net(seed=5)
        net.worsen(loss=0.01)
        flow = net.join()
        taken = transfer(net, flow, pattern(200 * PACKET))
        return taken, net.counters(), net.hosts[0].path_packets(1)

    assert story() == story()


def test_an_idle_endpoint_asks_for_no_wakeups():
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(20 * PACKET))
    net.run(within=50 * T, must=False)
    assert net.hosts[0].next_timeout() is None
    assert net.hosts[1].next_timeout() is None
