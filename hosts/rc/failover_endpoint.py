"""The RoCE-like endpoint of a library that bears a dead port: its QPs are groups of one QP a port.

To whom it serves a group is a QP like any other, so programs, sessions and loops know nothing of it. Counts by message
and by packet are those of the parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mrc_testbed.hosts.common.errors import PeerAttributeError, UnknownQpError
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, QpEvent, WriteCompleted
from mrc_testbed.hosts.common.figures import PathReport, QpFlow, QpPackets
from mrc_testbed.hosts.common.stalls import StallWatch, least_stall_ns, stalled_since
from mrc_testbed.hosts.rc.config import RcAttributes, RcConfig
from mrc_testbed.hosts.rc.endpoint import RcEndpoint
from mrc_testbed.hosts.rc.port_events import PortMoved
from mrc_testbed.hosts.rc.port_group import PortGroup


@dataclass(frozen=True, slots=True)
class PortGroupAttributes:
    """One side of a group as its peer must know it: those of its QPs, in the order of the ports."""

    qpn: int
    ports: list[RcAttributes]

    @property
    def region_address(self) -> int:
        """Of the region that they share."""
        return self.ports[0].region_address

    def as_json(self) -> dict[str, Any]:
        """The set-up object."""
        return {"qpn": self.qpn, "ports": [each.as_json() for each in self.ports]}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> PortGroupAttributes:
        """Inverse of `as_json`, checked. Raises as `RcAttributes.from_json`."""
        ports = [RcAttributes.from_json(each) for each in fields["ports"]]
        if not ports:
            raise PeerAttributeError("ports", ports, "a list of one QP a port")
        return cls(fields["qpn"], ports)


class FailoverEndpoint:
    """Driven as `mrc_testbed.hosts.rc.endpoint.RcEndpoint` is, which has the QPs of its groups. Numbers are of groups
    here."""

    __slots__ = ("_config", "_events", "_group_of", "_groups", "_inner", "_now_ns", "_peers")

    def __init__(self, config: RcConfig) -> None:
        self._config = config
        self._inner = RcEndpoint(config)
        self._inner.aside = self
        self._groups: dict[int, PortGroup] = {}
        self._group_of: dict[int, PortGroup] = {}
        """By the number of one of its QPs."""
        self._peers: dict[int, int] = {}
        """That of each group."""
        self._events: deque[QpEvent | PortMoved] = deque()
        self._now_ns = 0
        """The latest that anybody has said."""

    # --- application ---

    def add_peer(self, peer: int, ports: Sequence[tuple[int, Hashable]]) -> None:
        """As of `RcEndpoint`."""
        self._inner.add_peer(peer, ports)

    def open_qp(self, peer: int, region_bytes: int) -> PortGroupAttributes:
        """RESET -> INIT, a QP on each port."""
        return self._adopt(peer, self._inner.open_group(peer, region_bytes))

    def _adopt(self, peer: int, opened: tuple[int, memoryview, list[RcAttributes]]) -> PortGroupAttributes:
        """A group of QPs that have been opened."""
        context = self._inner.context
        least_ns = least_stall_ns(self._config.rtt_ns, self._config.swift)
        silence = StallWatch(opened[0], peer, least_ns, context.events)
        group = PortGroup(self._inner, context, self._config, peer, opened, silence, self._events)
        self._groups[group.qpn] = group
        self._peers[group.qpn] = peer
        for own in group.members:
            self._group_of[own.qpn] = group
        return PortGroupAttributes(group.qpn, group.members)

    def _disown(self, group: PortGroup) -> None:
        """Its QPs are gone."""
        for own in group.members:
            self._inner.destroy_qp(own.qpn)
            del self._group_of[own.qpn]

    def connect_qp(self, qpn: int, remote: PortGroupAttributes) -> None:
        """INIT -> RTS. Raises `PeerAttributeError`, and nothing is connected, where the peer has other ports."""
        group = self._group(qpn)
        if len(remote.ports) != len(group.members):
            raise PeerAttributeError("ports", len(remote.ports), f"{len(group.members)} QPs, one a port")
        for own, other in zip(group.members, remote.ports, strict=True):
            self._inner.connect_qp(own.qpn, other)
        group.connect(remote.ports)

    def reset_qp(self, qpn: int) -> PortGroupAttributes:
        """Any state -> INIT: the same number and region, new QPs on the ports."""
        before = self._group(qpn)
        before.stop()
        self._disown(before)
        opened = self._inner.open_group(self._peers[qpn], len(before.region), before.region)
        self._forget_events(qpn)
        return self._adopt(self._peers[qpn], (qpn, before.region, opened[2]))

    def destroy_qp(self, qpn: int) -> None:
        """As of any endpoint."""
        group = self._group(qpn)
        group.stop()
        self._disown(group)
        del self._groups[qpn], self._peers[qpn]
        self._forget_events(qpn)

    def region(self, qpn: int) -> memoryview:
        """The region that all QPs of the group write to."""
        return self._group(qpn).region

    def post_write(
        self,
        qpn: int,
        data: memoryview | bytes | bytearray,
        remote_address: int,
        wr_id: int,
        immediate: int | None = None,
    ) -> None:
        """As of any endpoint. Raises `QpStateError` once the connection has ended."""
        self._group(qpn).post(memoryview(data).cast("B"), remote_address, wr_id, immediate)

    def port_down(self, plane: int, now_ns: int) -> None:
        """As of `RcEndpoint`: the library only logs it."""
        self._inner.port_down(plane, now_ns)

    def port_up(self, plane: int, now_ns: int) -> None:
        """As of `RcEndpoint`."""
        self._inner.port_up(plane, now_ns)

    def port_paused(self, plane: int, now_ns: int) -> None:
        """As of `RcEndpoint`."""
        self._inner.port_paused(plane, now_ns)

    def port_resumed(self, plane: int, now_ns: int) -> None:
        """As of `RcEndpoint`."""
        self._inner.port_resumed(plane, now_ns)

    def probe_paths(self, peer: int, now_ns: int) -> None:
        """As of `RcEndpoint`."""
        self._inner.probe_paths(peer, now_ns)

    def path_report(self, peer: int) -> PathReport:
        """As of `RcEndpoint`; a group is silent while one of its QPs is."""
        report = self._inner.path_report(peer)
        silent = dict.fromkeys(self._group_of[qpn].qpn for qpn in report.silent_qps)
        return replace(report, silent_qps=list(silent))

    def agree_on_base_rtt(self, base_ns: int) -> None:
        """As of `RcEndpoint`."""
        self._inner.agree_on_base_rtt(base_ns)

    def _group(self, qpn: int) -> PortGroup:
        group = self._groups.get(qpn)
        if group is None:
            raise UnknownQpError(qpn)
        return group

    # --- input, timers and output ---

    def handle_datagram(
        self,
        view: memoryview,
        peer: int,
        flow_label: int,
        udp_port: int,
        traffic_class: int,
        arrival_ns: int,
        now_ns: int,
    ) -> None:
        """As of `RcEndpoint`."""
        self._now_ns = now_ns
        self._inner.handle_datagram(view, peer, flow_label, udp_port, traffic_class, arrival_ns, now_ns)

    def take(self, qpn: int, view: memoryview, now_ns: int) -> None:
        """What failover says to a QP: its group hears all that came before first."""
        self._hand_on()
        self._group_of[qpn].take(qpn, view, now_ns)

    def handle_timeout(self, now_ns: int) -> None:
        """As of `RcEndpoint`."""
        self._now_ns = now_ns
        self._inner.handle_timeout(now_ns)
        self._hand_on()

    def next_timeout(self) -> int | None:
        """As of `RcEndpoint`."""
        return self._inner.next_timeout()

    def poll_transmit(self, now_ns: int, buffer: memoryview) -> tuple[int, Hashable, int] | None:
        """As of `RcEndpoint`."""
        return self._inner.poll_transmit(now_ns, buffer)

    def poll_event(self) -> QpEvent | PortMoved | None:
        """Next event, oldest first; None when there is none."""
        self._hand_on()
        return self._events.popleft() if self._events else None

    def _hand_on(self) -> None:
        """Tell the groups what has happened to their QPs."""
        while (event := self._inner.poll_event()) is not None:
            group = self._group_of.get(event.qpn)
            if group is None:  # of a group already
                self._events.append(event)
            elif isinstance(event, ImmediateDelivered):
                group.arrived(event.immediate)
            elif isinstance(event, WriteCompleted):
                group.completed(event.wr_id)
            elif isinstance(event, QpError):
                group.failed(event.qpn, event.reason, self._now_ns)

    def _forget_events(self, qpn: int) -> None:
        kept = [event for event in self._events if event.qpn != qpn]
        self._events.clear()
        self._events.extend(kept)

    @property
    def burst_ns(self) -> int:
        """As of `RcEndpoint`."""
        return self._inner.burst_ns

    # --- reading ---

    def counters(self) -> dict[str, int]:
        """Those of the parts, but that QPs which failover closed are no errors: `ports_failed` has them."""
        return {**self._inner.counters(), "qp_errors": sum(group.dead for group in self._groups.values())}

    def take_placed(self, qpn: int, mark_ns: int) -> int:
        """As of any endpoint."""
        return self._group(qpn).placed.take(mark_ns)

    def path_packets(self, peer: int) -> dict[tuple[int, int], int]:
        """Nothing: it is the network that chooses paths."""
        return {}

    def qp_flows(self) -> dict[int, list[QpFlow]]:
        """A flow a port of each connected group."""
        flows = self._inner.qp_flows()
        return {
            qpn: [flow for own in group.members for flow in flows.get(own.qpn, ())]
            for qpn, group in self._groups.items()
        }

    def qp_packets(self) -> dict[int, QpPackets]:
        """Of each group, all parts together."""
        return {qpn: group.packets() for qpn, group in self._groups.items()}

    def lost_packets(self) -> dict[int, int]:
        """By group."""
        return {qpn: packets.lost for qpn, packets in self.qp_packets().items() if packets.lost}

    def stalled(self, now_ns: int) -> dict[int, int]:
        """By group."""
        return stalled_since((group.silence for group in self._groups.values()), now_ns)
