"""RoCE-like endpoints in the simulator: the network hashes each QP to one uplink, and its ports drop or hold packets.

net = RcNet(uplinks=4)                 # paths without queues, as in tests/sim/simnet.py
net = RcNet(hosts=8, queues=LOSSY)     # ports of two groups of hosts, as in tests/sim/switches.py, without trimming
"""

from zlib import crc32

from hosts import wire
from hosts.rc.config import RcConfig
from hosts.rc.endpoint import RcEndpoint
from tests.sim.simnet import RATE, Net, T
from tests.sim.switches import Switches

PORT_RATE = 4 * RATE
"""One folded port: 60 packets of BDP."""
PACKET_NS = (4096 + 16 + 62) * 8_000_000_000 // PORT_RATE
"""A packet in the middle of a message."""
LOSSY = 1.0
"""Backlog, in BDP, above which a port drops."""
DEEP = 64.0
ECN = (0.2, 0.8)
NO_ECN = (100.0, 101.0)


class HashedSwitches(Switches):
    """Ports that mark on a ramp and drop above a level."""

    def __init__(self, hosts, rate_bps, random, level, ramp):
        super().__init__(hosts, rate_bps, T, random)
        self._level, self._ramp = level, ramp
        self.dropped = 0

    def serve(self, name, now, traffic_class, packet):
        """Through one port: (wait, traffic class, packet), None when it is lost."""
        port = self.ports[name]
        if port.dead:
            return None
        if not traffic_class & wire.ECN_MASK:
            return self._control(port, now, traffic_class, packet)
        backlog = (port.busy - now) / self._bdp_ns
        if backlog > self._level:
            self.dropped += 1
            return None
        low, high = self._ramp
        if self._random.random() < (backlog - low) / (high - low):
            port.marked += 1
            traffic_class |= wire.ECN_CE
        port.busy = max(port.busy, now) + port.cost(packet)
        port.deepest_ns = max(port.deepest_ns, port.busy - now)
        return port.busy - now, traffic_class, packet


class RcNet(Net):
    """Hosts 0..n-1 with RoCE-like endpoints. A packet's uplink follows from its addresses and its source port."""

    def __init__(self, hosts=2, planes=1, uplinks=1, seed=1, queues=None, ramp=NO_ECN, **config):
        settings = {"port_rate_bps": PORT_RATE, "congestion_control": "none"} | config
        super().__init__(hosts=hosts, planes=planes, uplinks=uplinks, seed=seed, **settings)
        if queues is not None:
            self.switches = HashedSwitches(hosts, settings["port_rate_bps"], self.random, queues, ramp)

    def _make_host(self, host, settings, plugins):
        return RcEndpoint(RcConfig(host=host, **settings))

    def _ways(self, host, peer):
        return [(plane, (peer, plane)) for plane in range(self.planes)]

    def way_of(self, src, token):
        """(host, plane, uplink) of a packet."""
        source_port, ((peer, plane), *_) = token
        uplinks = 1 if self.switches and self.switches.local(src, peer) else self.uplinks
        return peer, plane, crc32(f"{src} {peer} {plane} {source_port}".encode()) % uplinks

    def _carry(self, src, token, traffic_class, packet, switched=False, wait=0):
        where = token if switched else self.way_of(src, token)
        super()._carry(src, where, traffic_class, packet, switched, wait)

    def requester(self, flow, host=None):
        """The sending half of a flow."""
        host = flow.a if host is None else host
        return self.hosts[host]._qps[flow.qpn[host]].requester

    def delivered(self, host):
        """Data packets that came and counted."""
        return self.counters(host)["data_received"]


def stream(net, flow, packets, size=4096):
    """Post writes of 64 packets until there are `packets` of them."""
    data = bytes(64 * size)
    for number in range(-(-packets // 64)):
        flow.write(data, wr_id=number)
