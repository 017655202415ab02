"""RoCE-like endpoints in the simulator: the network hashes each QP to one uplink, and its ports drop or hold packets.

net = RcNet()                             # paths without ports
net = RcNet(hosts=8, switches=LOSSY)      # ports of two groups of hosts (tests/sim/ports.py), which trim nothing
"""

from mrc_testbed.hosts.rc.config import RcConfig
from mrc_testbed.hosts.rc.endpoint import RcEndpoint
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.switching.thresholds import PortThresholds
from mrc_testbed.topos.routes import Routing
from tests.sim.ports import UDP_PORT
from tests.sim.simnet import RATE, Net

PORT_RATE = 4 * RATE
"""One folded port: 60 packets of BDP."""
PACKET_NS = (4096 + 16 + 62) * 8_000_000_000 // PORT_RATE
"""A packet in the middle of a message."""
LOSSY = PortThresholds(1, 1, 1, 1, 1)
"""Ports that drop above 1 BDP, and do not mark before."""
LOSSY_ECN = PortThresholds(0.2, 0.8, 1, 1, 1)
DEEP = PortThresholds(64, 64, 64, 64, 64)


class RcNet(Net):
    """Hosts 0..n-1 with RoCE-like endpoints. The uplink of a packet follows from its addresses and its source port."""

    routing = Routing.ECMP_STATIC

    def __init__(self, hosts=2, planes=1, uplinks=1, seed=1, switches=None, **config):
        settings = {"port_rate_bps": PORT_RATE, "congestion_control": "none"} | config
        super().__init__(hosts=hosts, planes=planes, uplinks=uplinks, seed=seed, switches=switches, **settings)

    def _make_host(self, host, settings, plugins):
        return RcEndpoint(RcConfig(host=host, **settings))

    def _ways(self, host, peer):
        return [(plane, (peer, plane)) for plane in range(self.planes)]

    def way_of(self, src, token):
        """Host and plane of a packet, and what its uplink follows from: the source port, where there are ports."""
        source_port, ((peer, plane), *_) = token
        return peer, plane, source_port if self.ports else 0

    def _carry(self, src, token, traffic_class, packet):
        super()._carry(src, self.way_of(src, token), traffic_class, packet)

    def uplinks_of(self, flows):
        """The uplink of each flow from its first host."""
        hosts = self.ports.plan.hosts
        ways = [(flow, self.way_of(flow.a, self.requester(flow).token)) for flow in flows]
        hashed = [PlainFlow(hosts[flow.a], hosts[to], plane, "udp", port, UDP_PORT) for flow, (to, plane, port) in ways]
        return self.ports.fabric.predicted_uplinks(hashed)

    def requester(self, flow, host=None):
        """The sending half of a flow."""
        host = flow.a if host is None else host
        return self.hosts[host]._qps[flow.qpn[host]].requester

    def dropped(self):
        """Data packets that ports dropped."""
        return sum(self.ports.total("dropped", last_hop) for last_hop in (False, True))

    def delivered(self, host):
        """Data packets that came and counted."""
        return self.counters(host)["data_received"]


def stream(net, flow, packets, size=4096):
    """Post writes of 64 packets until there are `packets` of them."""
    data = bytes(64 * size)
    for number in range(-(-packets // 64)):
        flow.write(data, wr_id=number)
