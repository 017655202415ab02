"""What is late is not lost: stories in which a sender took packets for lost that had arrived."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.sim import simnet
from tests.sim.simnet import MS, Net, T, pattern
from tests.sim.test_loss import is_data
from tests.sim.test_transfer import PACKET, transfer


def stall(net, first, count, late_ns):
    """A CPU that passes packets on is taken away for `late_ns` while it has `count` of host 0's data packets, from
    packet `first` on; the other CPU goes on with what comes after. So a path is not quite first in, first out: a Linux
    switch has a backlog for each CPU."""
    seen = {"n": -1}

    def tap(src, token, traffic_class, packet):
        if src != 0 or not is_data(packet):
            return True
        seen["n"] += 1
        if not first <= seen["n"] < first + count:
            return True
        dst, plane, uplink = token
        net.deliver(net.now + T // 2 + late_ns, src, dst, plane << 8 | uplink, traffic_class, packet)
        return False

    net.taps.append(tap)


@pytest.mark.parametrize("t_ns", [MS, 2 * MS, 5 * MS])
def test_packets_that_wait_for_slow_ports_of_a_near_fabric_are_not_lost(monkeypatch, t_ns):
    """A full packet takes 5.4 ms on its way, whatever T is; R and the timeout followed from T alone."""
    monkeypatch.setattr(simnet, "T", t_ns)
    net = Net(hosts=4, switches=True, uplinks=2, rtt_ns=t_ns)
    for host, endpoint in net.hosts.items():
        for peer in net.hosts:
            if peer != host:
                endpoint.probe_paths(peer, net.now)
    net.run(within=70 * MS, must=False)
    for source, target in ((0, 2), (1, 3), (2, 0), (3, 1)):
        flow = net.join(source, target)
        for number in range(3):
            flow.write(pattern(40 * PACKET), wr_id=number)
    net.run(within=260 * MS, must=False)
    counters = [net.counters(host) for host in net.hosts]
    assert sum(each["data_sent"] for each in counters) > 300
    assert sum(each["retransmitted"] + each["evs_retired"] for each in counters) == 0


@settings(max_examples=30, deadline=None)
@given(
    first=st.integers(0, 150),
    count=st.integers(1, 8),
    late_ns=st.integers(0, 4 * MS - 1),
    uplinks=st.sampled_from([1, 2]),
)
def test_packets_that_a_stalled_cpu_held_for_a_while_are_not_lost(first, count, late_ns, uplinks):
    net = Net(uplinks=uplinks)
    flow = net.join()
    stall(net, first, count, late_ns)
    transfer(net, flow, pattern(200 * PACKET))
    assert net.counters()["retransmitted"] == 0


@settings(max_examples=examples(20), deadline=None)
@given(
    seed=st.integers(0, 1000),
    jitter_ns=st.sampled_from([0, T // 4, T]),
    busy_us=st.sampled_from([1, 100, 200]),
    pauses=st.lists(st.tuples(st.integers(1, 40), st.sampled_from([5, 20, 60])), max_size=3),
)
def test_late_sacks_and_hosts_that_pause_make_no_packet_look_overtaken(seed, jitter_ns, busy_us, pauses):
    net = Net(uplinks=1, seed=seed)
    net.worsen(src=1, jitter_ns=jitter_ns)
    net.busy_ns = {0: busy_us * 1000, 1: busy_us * 1000}
    flows = [net.join() for _ in range(4)]
    for flow in flows:
        flow.write(pattern(100 * PACKET))
    for quarter, pause_ms in sorted(pauses):
        net.run(lambda at=net.start + quarter * T // 4: net.now >= at, within=20 * T, must=False)
        host = seed % 2
        net.free_ns[host] = max(net.free_ns.get(host, 0), net.now + pause_ms * MS)
    net.run(lambda: len(net.completed()) == 4, within=100 * T)
    assert net.counters()["lost_overtaken"] == net.counters()["lost_reordered"] == 0


def test_one_packet_on_each_plane_held_back_at_one_instant_is_none_lost():
    """As it was seen once: 4 retransmissions, 4 duplicates, and the floor held 4 times."""
    net = Net(uplinks=1)
    flow = net.join()
    stall(net, 80, 4, 3 * MS)
    transfer(net, flow, pattern(200 * PACKET))
    counters = net.counters()
    assert counters["retransmitted"] == counters["floor_held"] == net.counters(1)["duplicates"] == 0
