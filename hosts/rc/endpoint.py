"""The RoCE-like endpoint: one per host, no sockets and no clock of its own."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.base import FIRST_QPN, REGION_SPACING, EndpointBase
from mrc_testbed.hosts.common.errors import UnknownPeerError
from mrc_testbed.hosts.common.figures import PathReport, QpFlow
from mrc_testbed.hosts.common.memory import Domain, QpTerms
from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.common.psn import MASK, MODULUS, STRANGE
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcAttributes, RcConfig
from mrc_testbed.hosts.rc.context import RcContext
from mrc_testbed.hosts.rc.peer import RcPeer
from mrc_testbed.hosts.rc.qp import RcQp
from mrc_testbed.hosts.rc.reasons import RcIgnored
from mrc_testbed.hosts.rc.requester import Requester
from mrc_testbed.hosts.rc.responder import ANY_NUMBER


class AsideTaker(Protocol):
    """Who hears what failover says to a QP, whatever the QP's state."""

    def take(self, qpn: int, view: memoryview, now_ns: int) -> None:
        """A packet of `wire.ASIDE`, whole and from the peer of this QP. The view is not kept."""


class RcEndpoint(EndpointBase[RcContext, RcQp]):
    """A host whose QPs are reliable connections, each on one way through the network that it never leaves.

    Driven as `mrc_testbed.hosts.mrc.endpoint.Endpoint` is: input and application calls, then `poll_event` until None,
    `poll_transmit` until None, and one timer at `next_timeout`. Times are integer nanoseconds of one monotonic clock.
    """

    __slots__ = ("_config", "_draws", "_overheads", "_peers", "aside")

    def __init__(self, config: RcConfig) -> None:
        self._config = config
        self._context = RcContext(config)
        self._icrc = config.icrc
        self._overheads = wire.SELECTIVE_OVERHEAD if config.placed else wire.GO_BACK_N_OVERHEAD
        self._peers: dict[int, RcPeer] = {}
        self._qps = {}
        self._next_qpn = FIRST_QPN
        self._draws = Prng(config.seed << 8 ^ config.host)
        self.aside: AsideTaker | None = None

    # --- application ---

    def add_peer(self, peer: int, ports: Sequence[tuple[int, Hashable]]) -> None:
        """Make host `peer` known, with (plane, address) of its ports: its QPs are dealt out to them in turn, or each
        uses them all."""
        self._peers[peer] = RcPeer(peer, ports, self._context)

    def open_qp(self, peer: int, region_bytes: int, initial_psn: int | None = None) -> RcAttributes:
        """RESET -> INIT: register a region of zeros; the result must reach the peer's `connect_qp`."""
        psn = self._draws.below(MODULUS) if initial_psn is None else initial_psn
        attributes = self._attributes(self.new_qpn(), region_bytes, psn)
        self._qps[attributes.qpn] = RcQp(self._context, self._peer(peer), attributes)
        return attributes

    def open_group(
        self, peer: int, region_bytes: int, before: memoryview | None = None
    ) -> tuple[int, memoryview, list[RcAttributes]]:
        """A QP on each port of the peer, RESET -> INIT, which share one region, of zeros or as it was `before`.

        A number for all of them, the region, and their attributes in the order of the ports.
        """
        terms = self._attributes(self.new_qpn(), region_bytes, 0)
        region = memoryview(bytearray(region_bytes)) if before is None else before
        known = self._peer(peer)
        opened = []
        for turn in range(len(known.ports)):
            own = replace(terms, qpn=self.new_qpn(), psn=self._draws.below(MODULUS))
            self._qps[own.qpn] = qp = RcQp(self._context, known, own, turn=turn)
            qp.region = region
            opened.append(own)
        return terms.qpn, region, opened

    def member(self, qpn: int) -> RcQp:
        """A QP of `open_group`. Raises `UnknownQpError`."""
        return self._qp(qpn)

    @property
    def context(self) -> RcContext:
        """What its QPs share."""
        return self._context

    def open_receiver(self, qpn: int, peer: int, terms: QpTerms, domain: Domain) -> None:
        """A program's QP: RESET -> INIT -> RTR, under a number of `new_qpn`. Its peers may write to what is in `domain`
        at that moment; it takes in no immediate before `post_receives`. `enable_send` is the next step."""
        local = self._attributes(qpn, 0, 0)
        remote = replace(local, qpn=terms.remote_qpn, psn=terms.remote_psn, mtu=min(terms.mtu, local.mtu), rkey=0)
        qp = RcQp(self._context, self._peer(peer), local, domain)
        qp.learn_peer(remote)
        qp.post_receives(-ANY_NUMBER)
        self._qps[qpn] = qp

    def _attributes(self, qpn: int, region_bytes: int, psn: int) -> RcAttributes:
        return RcAttributes(
            qpn=qpn,
            psn=psn,
            mtu=self._config.payload_bytes,
            region_address=qpn * REGION_SPACING,
            region_bytes=region_bytes,
            rkey=self._draws.bits(),
            recovery=self._config.recovery,
        )

    def connect_qp(self, qpn: int, remote: RcAttributes) -> None:
        """INIT -> RTR -> RTS. Raises `PeerAttributeError`, and the QP stays in INIT, where the peer's recovery is
        another."""
        self._qp(qpn).connect(remote)

    def reset_qp(self, qpn: int, initial_psn: int | None = None) -> RcAttributes:
        """Any state -> RESET -> INIT: forget the connection, what was posted, and counts by QP. The region stays, under
        a new rkey. The result must reach the peer, whose end has to be reset too; then `connect_qp` again.

        The new PSN, where none is given, is so far from the old that what is still under way has no effect.
        """
        qp = self._qp(qpn)
        if initial_psn is None:
            initial_psn = qp.next_psn + 2 * STRANGE + self._draws.below(STRANGE) & MASK
        attributes = self._attributes(qpn, qp.attributes.region_bytes, initial_psn)
        qp.reset(attributes)
        self._forget_events(qpn)
        return attributes

    def port_down(self, plane: int, now_ns: int) -> None:
        """Nothing, at once, where a QP is bound to its port: NICs keep it, and its retries decide what becomes of it.
        One that uses several leaves this one."""
        self._tell_carrier(plane, False, now_ns)

    def port_up(self, plane: int, now_ns: int) -> None:
        """Nothing either: what is sent again from now on arrives. Or probes find out whether it does."""
        self._tell_carrier(plane, True, now_ns)

    def _tell_carrier(self, plane: int, up: bool, now_ns: int) -> None:
        for peer in self._peers.values():
            peer.planes.carrier(plane, up, now_ns)

    def probe_paths(self, peer: int, now_ns: int) -> None:
        """Warm-up: have one empty write acknowledged on each connected QP to `peer`."""
        for qp in self._qps.values():
            if qp.peer.number == peer:
                qp.probe()

    def path_report(self, peer: int) -> PathReport:
        """Which QPs to `peer` have never had an answer, and the smallest round trip seen."""
        silent = [sender.qpn for sender in self._senders() if sender.peer.number == peer and not sender.answered]
        return PathReport(answered=[], silent=[], rtt_ns=self._peer(peer).rtt_ns, silent_qps=silent)

    def agree_on_base_rtt(self, base_ns: int) -> None:
        """What all hosts take for a round trip without queues: T, if none was configured."""
        if not self._config.rtt_ns:
            self._context.scale(base_ns)
            for peer in self._peers.values():
                peer.planes.scale()
            for requester in self._senders():
                requester.scale(base_ns)

    def _peer(self, number: int) -> RcPeer:
        peer = self._peers.get(number)
        if peer is None:
            raise UnknownPeerError(number)
        return peer

    def _senders(self) -> Iterator[Requester]:
        return (qp.requester for qp in self._qps.values() if qp.requester is not None)

    # --- input ---

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
        """Take in one UDP payload from host `peer`. `arrival_ns` is when it reached this host, which round trips are
        taken from; `now_ns` >= `arrival_ns` is the time of the call. The view is not kept."""
        counters = self._context.counters
        self._context.source_port = udp_port
        refusal = wire.check(view, self._config.icrc, self._overheads)
        if refusal is not None:
            counters.refuse(refusal)
            return
        if peer not in self._peers:
            counters.refuse(RcIgnored.UNKNOWN_PEER)
            return
        # `mrc_testbed.hosts.mrc.wire.destination_qpn`, without the price of a call for every packet.
        qp = self._qps.get(view[5] << 16 | view[6] << 8 | view[7])
        if qp is None:
            counters.refuse(RcIgnored.UNKNOWN_QP)
        elif qp.peer.number != peer:
            counters.refuse(RcIgnored.WRONG_PEER)
        elif not qp.receives or qp.responder is None:
            self._take_aside(qp, view, now_ns)
        elif view[0] <= wire.WRITE_ONLY_IMM:
            qp.responder.on_data(view, traffic_class & bth.ECN_MASK == bth.ECN_CE, arrival_ns, now_ns)
        elif view[0] in wire.ASIDE:
            self._take_aside(qp, view, now_ns)
        elif view[0] == wire.PLANE_PROBE:
            qp.responder.on_probe()
        elif not qp.live or qp.requester is None:
            counters.refuse(RcIgnored.QP_STATE)
        else:
            self._hear(qp.requester, view, arrival_ns, now_ns)

    def _hear(self, requester: Requester, view: memoryview, arrival_ns: int, now_ns: int) -> None:
        """What comes back for what was sent."""
        if view[0] == wire.ACKNOWLEDGE:
            _, psn, syndrome, named = wire.parse_ack(view)
            requester.on_ack(psn, syndrome, named, arrival_ns, now_ns)
        elif view[0] == wire.CNP:
            requester.on_cnp(now_ns)
        else:
            requester.on_probe_answer(now_ns)

    def _take_aside(self, qp: RcQp, view: memoryview, now_ns: int) -> None:
        """What is neither for the requester nor for the responder, because of the QP's state or because failover said
        it."""
        if self.aside is None or view[0] not in wire.ASIDE:
            self._context.counters.refuse(RcIgnored.QP_STATE)
        else:
            self.aside.take(qp.attributes.qpn, view, now_ns)

    # --- reading ---

    def take_placed(self, qpn: int, mark_ns: int) -> int:
        """Payload bytes placed in the region of a connected QP, as `PlacedBytes.take`."""
        responder = self._qp(qpn).responder
        return 0 if responder is None else responder.placed.take(mark_ns)

    def path_packets(self, peer: int) -> dict[tuple[int, int], int]:
        """Nothing: it is the network that chooses paths."""
        return {}

    def qp_flows(self) -> dict[int, list[QpFlow]]:
        """Of each connected QP, by its number."""
        return {each.qpn: each.flows() for each in self._senders()}
