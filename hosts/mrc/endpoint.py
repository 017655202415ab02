"""The endpoint: one per host, no sockets and no clock of its own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.base import FIRST_QPN, REGION_SPACING, DataSender, EndpointBase
from mrc_testbed.hosts.common.errors import UnknownPeerError
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.figures import PathReport, QpFlow
from mrc_testbed.hosts.common.memory import Domain, QpTerms
from mrc_testbed.hosts.common.psn import MASK, MODULUS, STRANGE
from mrc_testbed.hosts.common.qpstate import QpState
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import EndpointConfig, QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.path_log import Counts
from mrc_testbed.hosts.mrc.paths import PathId
from mrc_testbed.hosts.mrc.peer import Peer
from mrc_testbed.hosts.mrc.plugins import NO_PLUGINS, Plugins
from mrc_testbed.hosts.mrc.portstate import PortInput
from mrc_testbed.hosts.mrc.qp import Qp, receiving
from mrc_testbed.hosts.mrc.reasons import Ignored
from mrc_testbed.hosts.mrc.receiver import ANY_NUMBER, Receiver

MOST_WIMM = (1 << 15) - 1
"""RQMSNs are compared in half of their 16 bits."""


class Endpoint(EndpointBase[Context, Qp]):
    """MRC endpoint of one host.

    Input: `handle_datagram`, `handle_timeout`. Application: `add_peer`, `open_qp`, `connect_qp`, `post_write`,
    `probe_paths`. Output: after every input or application call poll, in this order, `poll_event` until None,
    `poll_transmit` until None, then re-arm one timer at `next_timeout`. Times are integer nanoseconds of one
    monotonic clock; a `now_ns` smaller than an earlier one is a caller's mistake.
    """

    __slots__ = ("_config", "_peers", "_trimmed")

    def __init__(self, config: EndpointConfig, plugins: Plugins = NO_PLUGINS) -> None:
        """Raises `UnknownChoiceError` for a name that neither the core nor a plugin has."""
        self._config = config
        self._context = Context(config, plugins)
        self._icrc = config.icrc
        self._trimmed = {config.dscp_trimmed_last_hop: True} | {config.dscp_trimmed: False}
        """Was it at the last hop? By DSCP; where both are one, that of the way counts."""
        self._peers: dict[int, Peer] = {}
        self._qps = {}
        self._next_qpn = FIRST_QPN

    # --- application ---

    def add_peer(self, peer: int, paths: Sequence[tuple[int, int, Hashable]], udp_ports: Sequence[int] = ()) -> None:
        """Make host `peer` known. `paths`: (plane, uplink, token); the token comes back from `poll_transmit`.

        `udp_ports`: the source port of each path, EV[15:0]; empty: all have that of the host.
        """
        self._peers[peer] = Peer(peer, paths, self._context, udp_ports)

    def open_qp(self, peer: int, region_bytes: int, initial_psn: int | None = None) -> QpAttributes:
        """RESET -> INIT: register a region of zeros; the result must reach the peer's `connect_qp`."""
        attributes = self._attributes(self.new_qpn(), region_bytes, initial_psn)
        self._qps[attributes.qpn] = Qp(self._context, self._peer(peer), attributes)
        return attributes

    def open_receiver(self, qpn: int, peer: int, terms: QpTerms, domain: Domain) -> None:
        """A program's QP: RESET -> INIT -> RTR, under a number of `new_qpn`. Its peers may write to what is in `domain`
        at that moment; it takes in no immediate before `post_receives`. `enable_send` is the next step."""
        own = self._attributes(qpn, 0, 0)
        nacks = own.trim_nack and terms.trim_nack
        mtu = min(terms.mtu, own.mtu)
        remote = replace(own, qpn=terms.remote_qpn, psn=terms.remote_psn, mtu=mtu, rkey=0, port_mask=0)
        # It is the receives posted that bound the immediates, and the peer may have been told any number.
        qp = Qp(self._context, self._peer(peer), replace(own, max_wimm=MOST_WIMM, trim_nack=nacks), domain)
        qp.learn_peer(receiving(remote, terms))
        qp.post_receives(-ANY_NUMBER)
        self._qps[qpn] = qp
        if not self._context.ports.table.carrier_mask:
            qp.fail(QpFailure.ALL_PORTS_DOWN)

    def _attributes(self, qpn: int, region_bytes: int, initial_psn: int | None) -> QpAttributes:
        config, prng = self._config, self._context.prng
        return QpAttributes(
            qpn=qpn,
            psn=prng.below(MODULUS) if initial_psn is None else initial_psn,
            mtu=config.payload_bytes,
            mpr=config.mpr,
            max_wimm=config.max_wimm,
            region_address=qpn * REGION_SPACING,
            region_bytes=region_bytes,
            rkey=prng.bits(),
            planes=config.planes,
            port_mask=self._context.ports.table.carrier_mask,
            dynamic_mpr=config.dynamic_mpr > 0,
            trim_nack=config.trim_nack,
            timeout=config.timeout,
            linear=config.linear_tries,
            exp=config.exponential_tries,
            tsr_unit_ns=1 << config.stamp_shift,
        )

    def connect_qp(self, qpn: int, remote: QpAttributes) -> None:
        """INIT -> RTR -> RTS; and to ERROR at once on a host that has no port left, as when the last one goes."""
        qp = self._qp(qpn)
        qp.connect(remote)
        if not self._context.ports.table.carrier_mask:
            qp.fail(QpFailure.ALL_PORTS_DOWN)

    def reset_qp(self, qpn: int, initial_psn: int | None = None) -> QpAttributes:
        """Any state -> RESET -> INIT: forget the connection, what was posted, and counts by QP. The region stays, under
        a new rkey. The result must reach the peer, whose end has to be reset too; then `connect_qp` again.

        Both ends should be reset before either is connected. The new PSN, where none is given, is so far from the old
        that what is still under way from before has no effect.
        """
        qp = self._qp(qpn)
        if initial_psn is None:
            initial_psn = qp.next_psn + 2 * STRANGE + self._context.prng.below(STRANGE) & MASK
        attributes = self._attributes(qpn, qp.attributes.region_bytes, initial_psn)
        qp.reset(attributes)
        self._forget_events(qpn)
        return attributes

    def limit_psn_range(self, qpn: int, mpr: int) -> None:
        """Have the peer keep at most `mpr` x 128 PSNs open on a connected QP (dynamic MPR, if both ends have it)."""
        self._qp(qpn).receiver.limit(mpr)

    def deny(self, peer: int, paths: Sequence[PathId]) -> None:
        """Denylist: nothing but `allow` brings these (plane, uplink) paths to `peer` back. Unknown ones raise
        `UnknownPathError` and nothing changes."""
        target = self._peer(peer)
        for path in target.find(paths):
            target.deny(path)

    def allow(self, peer: int, paths: Sequence[PathId], now_ns: int) -> None:
        """Undo `deny`: the paths return at once, or when probes have vouched for them (`allow_to`)."""
        target = self._peer(peer)
        for path in target.find(paths):
            target.allow(path, now_ns)

    def port_down(self, plane: int, now_ns: int) -> None:
        """The NIC port of `plane` lost its carrier: before this returns no QP uses the plane, and what was under way on
        it is queued to go again. Peers are told. Without any port left all QPs fail."""
        if self._context.ports.step(plane, PortInput.LOST, now_ns) and not self._context.ports.table.carrier_mask:
            for qp in self._qps.values():
                if qp.live or qp.state is QpState.RTR:
                    qp.fail(QpFailure.ALL_PORTS_DOWN)

    def port_up(self, plane: int, now_ns: int) -> None:
        """The NIC port of `plane` has carrier again: it returns when one probe over its plane is answered."""
        self._context.ports.step(plane, PortInput.CARRIER, now_ns)

    def probe_paths(self, peer: int, now_ns: int) -> None:
        """Send one EV probe on every path to `peer` that is not denied (warm-up). States do not change by it."""
        target = self._peer(peer)
        for path in target.paths:
            if path.state is not EvState.DENIED:
                target.prober.probe(path, now_ns)

    def ask_path(self, peer: int, path: PathId, now_ns: int) -> int:
        """Send one EV probe for a controller, whatever the state of the EV; returns the id that its `PathAnswered` has.
        Raises `UnknownPathError`."""
        target = self._peer(peer)
        return target.prober.ask(target.find([path])[0], now_ns)

    def ev_states(self, peer: int) -> list[tuple[PathId, EvState]]:
        """Every EV to `peer` and its state."""
        return [((path.plane, path.uplink), path.state) for path in self._peer(peer).paths]

    def agree_on_base_rtt(self, base_ns: int) -> None:
        """What all hosts take for a round trip without queues (`base_rtt` of NSCC, API), ns."""
        for peer in self._peers.values():
            peer.timing.agree(base_ns)

    def path_report(self, peer: int) -> PathReport:
        """Which paths to `peer` ever answered a probe, and the smallest RTT. Denied paths are not reported silent."""
        target = self._peer(peer)
        silent = [path for path in target.paths if not path.answered and path.state is not EvState.DENIED]
        return PathReport(
            answered=[(path.plane, path.uplink) for path in target.paths if path.answered],
            silent=[(path.plane, path.uplink) for path in silent],
            rtt_ns=target.timing.smallest_rtt_ns,
        )

    def _peer(self, number: int) -> Peer:
        peer = self._peers.get(number)
        if peer is None:
            raise UnknownPeerError(number)
        return peer

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
        """Take in one UDP payload from host `peer`.

        `flow_label` and `udp_port` are the packet's EV[31:16] and EV[15:0] (source port). `arrival_ns` is when it
        reached this host, delay line included, and is what RTTs are taken from; `now_ns` >= `arrival_ns` is the time
        of the call. The view is not kept.
        """
        last_hop = self._trimmed.get(traffic_class >> 2)
        refusal = wire.check(view, self._config.icrc) if last_hop is None else wire.check_trimmed(view)
        if refusal is not None:
            self._context.counters.refuse(refusal)
            return
        if peer not in self._peers:
            self._context.counters.refuse(Ignored.UNKNOWN_PEER)
            return
        entropy = (flow_label & 0xFFFF) << 16 | udp_port
        opcode = view[0]
        if opcode == wire.ENDPOINT_REQUEST:
            self._on_request(view, self._peers[peer], entropy, traffic_class, arrival_ns, now_ns)
        elif opcode == wire.ENDPOINT_RESPONSE:
            self._on_response(view, self._peers[peer], arrival_ns, now_ns)
        elif opcode > wire.LAST_DATA_OPCODE:
            self._on_control(view, opcode, peer, entropy, traffic_class, arrival_ns, now_ns)
        else:
            qp = self._receiving_qp(wire.destination_qpn(view), peer)
            if qp is None:
                return
            if last_hop is None:
                ce_seen = traffic_class & bth.ECN_MASK == bth.ECN_CE
                qp.receiver.on_data(view, None, entropy, ce_seen, arrival_ns, now_ns)
            else:
                qp.receiver.on_trimmed(view, entropy, last_hop)

    def handle_parts(
        self,
        headers: bytes,
        payload: memoryview,
        peer: int,
        flow_label: int,
        udp_port: int,
        traffic_class: int,
        arrival_ns: int,
        now_ns: int,
    ) -> None:
        """As of `EndpointBase`. Nothing has to be checked, as another endpoint of this kind wrote them."""
        if peer not in self._peers:
            self._context.counters.refuse(Ignored.UNKNOWN_PEER)
            return
        qp = self._receiving_qp(headers[5] << 16 | headers[6] << 8 | headers[7], peer)
        if qp is not None:
            entropy = (flow_label & 0xFFFF) << 16 | udp_port
            ce_seen = traffic_class & bth.ECN_MASK == bth.ECN_CE
            qp.receiver.on_data(memoryview(headers), payload, entropy, ce_seen, arrival_ns, now_ns)

    def _receiving_qp(self, qpn: int, peer: int) -> Qp | None:
        """The QP a packet is for, if it takes packets in; counts why there is none."""
        qp = self._qps.get(qpn)
        if qp is None:
            self._context.counters.refuse(Ignored.UNKNOWN_QP)
        elif qp.peer.number != peer:
            self._context.counters.refuse(Ignored.WRONG_PEER)
        elif not qp.receives:
            self._context.counters.refuse(Ignored.QP_STATE)
        else:
            return qp
        return None

    def _on_control(
        self,
        view: memoryview,
        opcode: int,
        peer: int,
        entropy: int,
        traffic_class: int,
        arrival_ns: int,
        now_ns: int,
    ) -> None:
        """SACK, NACK, Transport ACK, reliability probe."""
        qp = self._receiving_qp(wire.destination_qpn(view), peer)
        if qp is None:
            return
        named = opcode != wire.TRANSPORT_ACK
        if named and view[wire.SOURCE_CID] << 8 | view[wire.SOURCE_CID + 1] != qp.receiver.remote_cid:
            self._context.counters.refuse(Ignored.WRONG_QP)
        elif opcode == wire.PROBE_REQUEST:
            self._on_probe(view, qp.receiver, entropy, traffic_class, now_ns)
        elif not qp.live:
            self._context.counters.refuse(Ignored.QP_STATE)
        elif opcode == wire.TRANSPORT_ACK:
            _, psn, syndrome, _ = wire.parse_ack(view)
            qp.sender.on_ack(psn, syndrome, now_ns)
        elif opcode == wire.SACK:
            qp.sender.on_sack(view, arrival_ns, now_ns)
        else:
            _, bits, reason, refused_ev, _ = wire.parse_nack(view)
            qp.sender.on_nack(bits, reason, refused_ev, now_ns)

    def _on_probe(self, view: memoryview, receiver: Receiver, entropy: int, traffic_class: int, now_ns: int) -> None:
        self._note_class(traffic_class)
        _, probe_id, timestamp = wire.parse_probe(view)
        receiver.on_probe(probe_id, timestamp, entropy, now_ns)

    def _note_class(self, traffic_class: int) -> None:
        """A probe that came in the class of data is data to the ports on its way."""
        if traffic_class & ~bth.ECN_MASK != self._context.control_class:
            self._context.counters.suspect_probes_received += 1

    def _on_request(
        self, view: memoryview, peer: Peer, entropy: int, traffic_class: int, arrival_ns: int, now_ns: int
    ) -> None:
        operation, request_id, port_mask, timestamp, tsr = wire.parse_request(view)
        mark = int(traffic_class & bth.ECN_MASK == bth.ECN_CE)
        if operation == wire.OP_EV_PROBE:
            self._note_class(traffic_class)
            path = peer.answer_path(entropy >> 16, port_mask)
            peer.one_way.probed(timestamp, arrival_ns, peer.timing.forwarding_ns)
        elif operation == wire.OP_PORT_STATUS:
            self._context.counters.port_updates_received += 1
            peer.ports.on_update(timestamp, tsr, port_mask, now_ns)
            path = peer.reverse.path(entropy >> 16)
        else:
            self._context.counters.refuse(Ignored.UNKNOWN_OPERATION)
            return
        self._context.send_control(path, self._emit_response, (operation, request_id, entropy, mark, timestamp))

    def _emit_response(
        self, buffer: memoryview, now_ns: int, operation: int, request_id: int, entropy: int, mark: int, timestamp: int
    ) -> int:
        self._context.counters.probe_responses_sent += 1
        port_mask = self._context.ports.table.carrier_mask
        return wire.emit_response(buffer, operation, request_id, entropy, port_mask, mark, timestamp)

    def _on_response(self, view: memoryview, peer: Peer, arrival_ns: int, now_ns: int) -> None:
        operation, request_id, entropy, _, mark, _ = wire.parse_response(view)
        if operation == wire.OP_PORT_STATUS:
            if not peer.ports.on_update_answer(request_id):
                self._context.counters.refuse(Ignored.UNKNOWN_PROBE)
        elif operation != wire.OP_EV_PROBE:
            self._context.counters.refuse(Ignored.UNKNOWN_OPERATION)
        elif peer.prober.on_answer(request_id, entropy, mark == 1, arrival_ns, now_ns):
            self._context.counters.probes_answered += 1
        else:
            self._context.counters.refuse(Ignored.UNKNOWN_PROBE)

    # --- reading ---

    def _senders(self) -> Iterable[DataSender]:
        """As of `EndpointBase`."""
        return [cast(DataSender, sender) for peer in self._peers.values() for sender in peer.senders]

    def qp_flows(self) -> dict[int, list[QpFlow]]:
        """None: this host chooses the path of every packet."""
        return {}

    def take_placed(self, qpn: int, mark_ns: int) -> int:
        """Payload bytes placed in the region of a connected QP, as `PlacedBytes.take`."""
        return self._qp(qpn).receiver.placed.take(mark_ns)

    def path_counts(self, peer: int) -> Counts:
        """Of each path to `peer`: data packets sent, and of these those that vanished without explanation."""
        return [((path.plane, path.uplink), path.sent, path.lost) for path in self._peer(peer).paths]

    def path_packets(self, peer: int) -> dict[PathId, int]:
        """Data packets (retransmissions included) sent on each path to `peer`."""
        return {(path.plane, path.uplink): path.sent for path in self._peer(peer).paths}
