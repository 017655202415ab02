"""The ports between the hosts of a story: those of a run in virtual time, and where a story touches them."""

from __future__ import annotations

from functools import lru_cache, partial

from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.thresholds import DEFAULT_THRESHOLDS, PauseThresholds, PortThresholds
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.topos import names, usid
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing

UDP_PORT = 4791
BOUNDLESS = PortThresholds(1000, 1000, 1000, 1000, 1000)
"""Ports that hold all that comes, and mark nothing."""

_planned = lru_cache(build_plan)


class TwoGroups:
    """Two groups of hosts, each with a T0 a plane; one T1 an uplink. The hosts of a net are joined to it.

    `levels`: of all ports; True for those that a fabric has if nothing else is said, `PauseThresholds` for lossless
    ones.
    """

    def __init__(self, net, hosts, rate_bps, t_ns, levels, seed):
        shape = clos2_shape(net.planes, 2, net.uplinks, -(-hosts // 2), rate_bps, t_ns)
        self.plan = _planned(shape, net.routing)
        pause = levels if isinstance(levels, PauseThresholds) else None
        thresholds = levels if isinstance(levels, PortThresholds) else DEFAULT_THRESHOLDS
        options = FabricOptions("ifb", "endpoint", "port program", thresholds=thresholds, pause=pause)
        self.fabric = VirtualFabric(self.plan, options, net.scheduler, seed)
        self._net = net
        self._nics = [self._attach(host) for host in self.plan.hosts[:hosts]]
        self._destinations = {}
        self._last_hops = {(peer.node, peer.name) for host in self.plan.hosts for _, peer in self.plan.ports[host.name]}

    def _attach(self, host):
        dst, follow = host.index, self._net.follow

        def deliver(_now_ns, packet):
            follow(packet.way.source, dst, packet.way.flow_label, packet.traffic_class, packet.data)

        hear = partial(self._net.heard_carrier, dst), partial(self._net.heard_pause, dst)
        return self.fabric.attach(host.name, deliver, *hear)

    def send(self, src, token, traffic_class, packet):
        """A host sends by its own port."""
        destination = self._destinations.get(token)
        if destination is None:
            destination = self._destinations[token] = self._destination(*token)
        self._nics[src].send(packet, destination, traffic_class)

    def _destination(self, dst, plane, last):
        """`last`: the uplink; where switches choose it, the source port."""
        if self.plan.routing is Routing.SRV6:
            path = usid.PathId(plane, last)
            return usid.inner_address(dst, path), UDP_PORT, path.flow_label, 0
        address = dict(self.plan.host_ports(self.plan.hosts[dst]))[plane]
        return last, (address, UDP_PORT, 0, 0)

    def local(self, a, b):
        """Are two hosts on the same T0s? Then there is one path a plane."""
        return self.plan.hosts[a].group == self.plan.hosts[b].group

    def total(self, what, last_hop):
        """`marked`, `trimmed` or `dropped` packets over all last hops, or over all other ports."""
        hits = self.fabric.port_hits()
        return sum(getattr(each, what) for port, each in hits if (port in self._last_hops) is last_hop)

    def last_hop_backlog_ns(self, host, plane):
        """How long it takes to send what waits for a host on a plane."""
        link = self.host_link(host, plane)
        return self.fabric.backlog_ns(link.far.node, link.far.name)

    def carrier(self, host, plane, up):
        """Give the port of a host its carrier, or take it."""
        change = self.fabric.ports_up if up else self.fabric.ports_down
        change([self.host_link(host, plane).near])

    def uplink(self, group, plane, uplink):
        """The link between the T0 of a group and a T1."""
        ends = names.switch_name(plane, 0, group), names.switch_name(plane, 1, uplink)
        return self.plan.link_by_name[names.link_name(*ends)]

    def host_link(self, host, plane):
        """The link of a host to its T0."""
        node = self.plan.hosts[host]
        return self.plan.link_by_name[names.link_name(node.name, names.switch_name(plane, 0, node.group))]
