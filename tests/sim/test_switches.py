"""Stories of full queues: switches that mark and trim."""

import pytest

from mrc_testbed.hosts.common import bth
from tests.sim.simnet import RATE, Net, T, pattern
from tests.sim.streams import fabric, measure, streams
from tests.sim.test_paths import endless, retired
from tests.sim.test_transfer import PACKET


def all_done(net, sources, within=200 * T):
    return net.run(lambda: all(net.completed(source) for source in sources), within=within)


def test_one_flow_alone_is_neither_trimmed_nor_cut():
    net = Net(switches=True)
    flow = net.join()
    flow.write(pattern(800 * PACKET))
    taken = all_done(net, [0])
    assert net.ports.total("trimmed", True) == net.ports.total("trimmed", False) == 0
    assert net.counters()["retransmitted"] == 0
    assert taken < 1.12 * 800 * (PACKET + 142) * 8e9 / (4 * RATE) + 2 * T


@pytest.mark.parametrize("algorithm", ["nscc", "fixed"])
def test_a_last_hop_incast_trims_and_blames_no_path(algorithm):
    net = Net(hosts=10, switches=True, congestion_control=algorithm)
    sources = range(5, 10)
    flows = [net.join(source, 0) for source in sources]
    for flow in flows:
        flow.write(pattern(200 * PACKET))
    all_done(net, sources)
    assert net.ports.total("trimmed", True) > 0
    for source in sources:
        counters = net.counters(source)
        assert counters["lost_trimmed_lasthop"] > 0
        assert counters["evs_retired"] == counters["qp_errors"] == counters["data_on_bad_ev"] == 0


@pytest.mark.parametrize("late", [0, T // 25])
def test_two_flows_on_one_path_share_it(late):
    """Also when one of them has never seen a round trip as short as the other's."""
    net = fabric(planes=1, uplinks=1, hosts=4)
    flows = streams(net, [(0, 2), (1, 3)])
    timing = net.hosts[1]._qps[flows[1].flow.qpn[1]].sender.peer.timing
    timing._derive(timing.t_ns + late)
    for endpoint in net.hosts.values():
        endpoint.agree_on_base_rtt(T + T // 50)
    measure(net, flows, 200)
    shares = [4 * share for share in measure(net, flows, 200)]
    assert sum(shares) > 0.97
    assert min(shares) > 0.4


def test_a_slow_uplink_is_left_to_the_others_of_its_plane():
    """A link at an eighth of its rate: marks steer its EV's packets away. The marks come late, because a packet waits
    before that port for up to 8 T: three times 60 T have 0.57, 0.95 and 0.98 of line rate."""
    net = Net(switches=True)
    net.ports.fabric.set_rate(net.ports.uplink(0, 1, 2).name, RATE // 8)
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=180 * T, must=False)
    counts = net.hosts[0].path_packets(1)
    others = [counts[1, uplink] for uplink in (0, 1, 3)]
    assert counts[1, 2] < 0.9 * min(others)
    planes = net.plane_packets()
    assert max(planes) - min(planes) <= 1
    # Its queue is deeper in time than the plan allows, so the slow EV itself may be retired for a while; no other is.
    assert {(e.plane, e.uplink) for e in retired(net)} <= {(1, 2)}
    assert net.counters()["data_sent"] > 0.8 * 180 * 4 * 14.7
    stop()


def test_a_permutation_through_shared_uplinks_stays_near_line_rate():
    net = Net(hosts=8, uplinks=4, switches=True)
    flows = [net.join(source, source + 4) for source in range(4)]
    for flow in flows:
        flow.write(pattern(900 * PACKET))
    taken = all_done(net, range(4))
    ideal = 900 * (PACKET + 142) * 8e9 / (4 * RATE)
    assert taken < 1.1 * ideal + 2 * T
    for source in range(4):
        assert net.counters(source)["evs_retired"] == 0


def test_a_trimmed_immediate_is_asked_for_like_any_other():
    net = Net(hosts=6, switches=True)
    sources = range(3, 6)
    flows = [net.join(source, 0) for source in sources]
    for flow in flows:
        for i in range(30):
            flow.write(pattern(8 * PACKET, i), offset=i * 8 * PACKET, wr_id=i, immediate=i)
    net.run(lambda: all(len(net.completed(source)) == 30 for source in sources), within=200 * T)
    for flow in flows:
        assert flow.region(0)[: 240 * PACKET] == b"".join(pattern(8 * PACKET, i) for i in range(30))
    assert bth.WRITE_LAST_IMM in bth.HAS_IMMEDIATE
