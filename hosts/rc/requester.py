"""The requester half of a QP: sends writes, goes back N, counts retries, completes.

InfiniBand Architecture Specification 1.4, section 9.7.5 (acknowledgements) and 9.9.2 (retries). There is no window: as
in the NICs that are modelled, the rate alone decides what is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.base import DataSender, Packet
from mrc_testbed.hosts.common.events import QpFailure, WriteCompleted
from mrc_testbed.hosts.common.figures import QpFlow
from mrc_testbed.hosts.common.memory import ReadableMemory
from mrc_testbed.hosts.common.messages import NO_MESSAGE, Message, Outbox
from mrc_testbed.hosts.common.psn import STRANGE, unwrap
from mrc_testbed.hosts.common.stalls import StallWatch, least_stall_ns
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcAttributes
from mrc_testbed.hosts.rc.context import RcContext, Way
from mrc_testbed.hosts.rc.dcqcn import PROFILES, ReactionPoint
from mrc_testbed.hosts.rc.peer import RcPeer
from mrc_testbed.hosts.rc.reasons import NAK_FAILURES, RcIgnored

ACK_EVERY = 4
"""Packets in order for which the responder sends one ACK."""
MOST_OUTSTANDING = STRANGE >> 2
"""PSNs that may be outstanding: so that an old packet is told from a new one."""
PROBE = -1
"""`wr_id` of the empty write of a warm-up, whose completion nobody waits for."""
_NO_LIMIT = 1 << 62
PATIENCE_NS = 60 * 10**9
"""How long a QP waits for a first answer of a peer that may not be ready, before it counts tries."""


class Requester(DataSender):
    """Sends one QP's messages over its one way. Sequence numbers as in `mrc_testbed.hosts.common.psn`.

    Packets below `_una` are acknowledged, those below `_next` are sent, those below `_high` have been sent before.
    """

    __slots__ = (
        "_asked_ns",
        "_context",
        "_fail",
        "_free_at",
        "_high",
        "_initial_psn",
        "_message",
        "_next",
        "_only_probes",
        "_outbox",
        "_owed",
        "_patient_until_ns",
        "_payload_bytes",
        "_rate",
        "_remote_address",
        "_remote_qpn",
        "_rkey",
        "_since_ns",
        "_timed_ns",
        "_timed_seq",
        "_tries",
        "_una",
        "_unasked",
        "answered",
        "peer",
        "plane",
        "token",
        "wake_ns",
    )

    def __init__(
        self,
        context: RcContext,
        peer: RcPeer,
        local: RcAttributes,
        remote: RcAttributes,
        ways: Sequence[Way],
        fail: Callable[[QpFailure], None],
    ) -> None:
        config = context.config
        self._context = context
        self._fail = fail
        self.peer = peer
        self.qpn = local.qpn
        self.plane, self.token = ways[0]
        self._initial_psn = local.psn
        self._remote_qpn = remote.qpn
        self._rkey = remote.rkey
        self._remote_address = remote.region_address
        self._payload_bytes = min(local.mtu, remote.mtu)
        self._outbox = Outbox(_NO_LIMIT)
        self._owed = 0
        """Writes of the application that are not completed."""
        self._only_probes = True
        """Is nothing of the application among what was sent and is not acknowledged?"""
        self._una = self._next = self._high = 0
        self._message = NO_MESSAGE
        """That of the packet sent last."""
        self._unasked = 0
        """Packets since the last one that asked for an ACK, or that the peer acknowledges anyway."""
        self._asked_ns = 0
        """When that one was sent."""
        self._tries = 0
        self._since_ns = 0
        """When something new was last acknowledged, or sent with nothing (of the application) outstanding."""
        self._timed_seq, self._timed_ns = NEVER, 0
        """The packet that times a round trip, and when it was sent."""
        profile = PROFILES.get(config.congestion_control)
        self._rate = None if profile is None else ReactionPoint(profile, config.port_rate_bps, context.t_ns)
        self._free_at = 0
        """When its own rate will have sent what was handed over so far."""
        self.silence = StallWatch(local.qpn, peer.number, least_stall_ns(config.rtt_ns, config.swift), context.events)
        self.answered = False
        self._patient_until_ns = 0
        self.lost_packets = 0
        self.ready = False
        self.wake_ns = NEVER

    def flows(self) -> list[QpFlow]:
        """What switches hash of its packets."""
        return [self._flow(self.plane)]

    def _flow(self, plane: int, offset: int = 0) -> QpFlow:
        return QpFlow(plane, "udp", wire.source_port(self.qpn, self._remote_qpn, offset), wire.UDP_PORT)

    @property
    def sent_packets(self) -> int:
        """Packets sent, each once."""
        return self._high

    # --- application ---

    def wait_for_peer(self) -> None:
        """The peer may not be ready: count no try until it has answered once, for PATIENCE_NS at most."""
        self._patient_until_ns = NEVER

    def post(
        self, data: ReadableMemory, address: int, wr_id: int, immediate: int | None, rkey: int | None = None
    ) -> None:
        """Queue one write; without `rkey` into the peer's own region."""
        if wr_id != PROBE:
            self._owed += 1
        key = self._rkey if rkey is None else rkey
        self._outbox.post(Message(data, address, key, wr_id, immediate, self._payload_bytes))
        self.wake()

    def probe(self) -> None:
        """Queue an empty write, for its ACK. It is sent again until that comes, and uses up no retry."""
        self.post(memoryview(b""), self._remote_address, PROBE, None)

    def stop(self) -> None:
        """The QP has ended: send nothing more."""
        self._outbox.clear()
        self._owed = 0
        self._una = self._next = self._high

    def scale(self, t_ns: int) -> None:
        """T is `t_ns`."""
        if self._rate is not None:
            self._rate.scale(t_ns)

    # --- sending ---

    def wake(self) -> None:
        """Enter the endpoint's queue if there is something to send."""
        if not self.ready and self.can_send():
            self._context.make_ready(self)

    def can_send(self) -> bool:
        """Is there a packet to send, again or for the first time?"""
        return self._next < self._high or (self._outbox.has_packet() and self._high - self._una < MOST_OUTSTANDING)

    def may_send_at(self, now_ns: int) -> int:
        """When its port has tokens and the rate of DCQCN lets the next packet go. Work that has to wait waits from now
        on, if it does not already."""
        if not self.can_send():
            self.ready = False
            return NEVER
        pacer = self._context.pacer
        free_at = pacer.ready_at(self.plane)
        if self._free_at:
            free_at = max(free_at, self._free_at - pacer.burst_ns)
        if free_at > now_ns and self._owed:
            self.silence.posted(now_ns)
        return free_at

    def transmit(self, now_ns: int, buffer: memoryview) -> Packet | None:
        """Write the next packet. Only when `can_send`; leaves `ready` saying whether it still can.

        The last packet of a message, and the last that may be sent for now, ask for an ACK.
        """
        seq = self._take()
        counters = self._context.counters
        new = seq == self._high
        if new:
            message = self._message = self._outbox.next_packet(seq)
            if seq == self._una:
                self._begin_waiting(now_ns)
            if self._only_probes and message.wr_id != PROBE:
                self._begin_work(now_ns)
            self._high = seq + 1
        else:
            message = self._message
            if not message.first <= seq <= message.last:
                message = self._message = self._outbox.holding(seq)
            counters.retransmitted += 1
        index = seq - message.first
        self.ready = self.can_send()
        bits = self._initial_psn + seq & bth.PSN_MASK
        self._unasked += 1
        if index == message.last_index or not self.ready or self._ack_comes_late(now_ns):
            bits |= bth.ACK_REQUEST
            self._asked(now_ns)
            if new and self._timed_seq == NEVER:
                self._timed_seq, self._timed_ns = seq, now_ns
        elif self._unasked == ACK_EVERY:
            self._asked(now_ns)
        size = self._emit(buffer, message, index, bits)
        if not size:
            self._fail(QpFailure.LOCAL_PROTECTION)
            self.ready = False
            return None
        counters.data_sent += 1
        self._context.pacer.charge(self.plane, size, now_ns)
        if self._rate is not None and self._rate.limited:
            self._hold_back(self._rate, size, now_ns)
        return size, self.token, wire.CLASS_DATA

    def _take(self) -> int:
        """The sequence number whose turn it is."""
        seq = self._next
        self._next = seq + 1
        return seq

    def _begin_waiting(self, now_ns: int) -> None:
        """The first packet goes out after everything was acknowledged."""
        self._since_ns = now_ns
        self._only_probes = True
        self._asked(now_ns)
        self._context.timers.arm(self, now_ns + self._context.config.timeout_ns)

    def _begin_work(self, now_ns: int) -> None:
        """The application's first packet goes out, maybe behind probes: how long those had waited does not count."""
        self._since_ns = now_ns
        self._only_probes = False
        self.silence.posted(now_ns)

    def _emit(self, buffer: memoryview, message: Message, index: int, bits: int) -> int:
        """The packet's size; 0 if its payload cannot be read, for then nothing must be sent."""
        offset = index * self._payload_bytes
        payload = message.data[offset : offset + self._payload_bytes]
        if len(payload) != self._payload_bytes and offset + len(payload) != len(message.data):
            return 0
        self._context.counters.bytes_sent += len(payload)
        return wire.emit_data(
            buffer,
            message.opcode(index) & wire.OPERATION_MASK,
            self._remote_qpn,
            bits,
            self._reth(message, offset),
            payload,
            message.immediate if index == message.last_index else None,
        )

    def _reth(self, message: Message, offset: int) -> tuple[int, int, int] | None:
        """Where the packet at `offset` of its message belongs, if it is one that says so."""
        return None if offset else (message.address, message.rkey, len(message.data))

    def _hold_back(self, rate: ReactionPoint, size: int, now_ns: int) -> None:
        """Let the QP's own rate decide when the next packet may go."""
        rate.catch_up(now_ns)
        rate.sent(size)
        cost = int(self._context.pacer.cost_ns(size) / rate.rate)
        self._free_at = max(self._free_at, now_ns) + cost if rate.limited else 0

    def _asked(self, now_ns: int) -> None:
        """An ACK comes for the packet that is sent now."""
        self._unasked = 0
        self._asked_ns = now_ns

    def _ack_comes_late(self, now_ns: int) -> bool:
        """Would it take longer than T until the peer has the packets after which it sends an ACK, so that it has to be
        asked now? So it is at a low rate, and where many QPs share a port."""
        context, rate = self._context, self._rate
        if now_ns - self._asked_ns >= context.t_ns:
            return True
        share = min(context.config.planes / (len(context.ready) + 1), 1.0)
        if rate is not None and rate.limited:
            share = min(share, rate.rate)
        packets_a_t = share * context.t_ns / context.packet_ns
        return packets_a_t < ACK_EVERY and self._unasked + 1 > packets_a_t

    # --- hearing ---

    def on_ack(self, psn: int, syndrome: int, named: int, arrival_ns: int, now_ns: int) -> None:
        """ACK or NAK for `psn`; `named` is the MSN field of its AETH."""
        counters = self._context.counters
        seq = unwrap(psn, self._initial_psn, self._una)
        if not syndrome & wire.SYNDROME_KIND:
            counters.acks_received += 1
            if seq >= self._high:
                counters.refuse(RcIgnored.ACKS_UNSENT)
            elif seq >= self._una:
                self._acknowledge(seq, arrival_ns, now_ns)
        elif seq >= self._high:
            counters.refuse(RcIgnored.ACKS_UNSENT)
        elif seq < self._una and not self._tells_news(syndrome, named):
            counters.refuse(RcIgnored.OLD_NAK)
        elif syndrome == wire.SYNDROME_NAK_SEQUENCE:
            counters.nacks_received += 1
            if seq > self._una:
                self._acknowledge(seq - 1, arrival_ns, now_ns)
            self._on_gap(named, now_ns)
        elif syndrome in NAK_FAILURES:
            counters.naks_received += 1
            if seq > self._una:
                self._acknowledge(seq - 1, arrival_ns, now_ns)
            self._fail(NAK_FAILURES[syndrome])
        else:
            counters.refuse(RcIgnored.UNKNOWN_SYNDROME)

    def _acknowledge(self, seq: int, arrival_ns: int, now_ns: int) -> None:
        """Everything up to `seq` has arrived: that is progress."""
        self._una = seq + 1
        if self._next <= seq:
            self._next = seq + 1
        self._progress(now_ns)
        self.answered = True
        if self._timed_seq <= seq:
            self.peer.take_rtt(arrival_ns - self._timed_ns)
            self._timed_seq = NEVER
        counters, events = self._context.counters, self._context.events
        for message in self._outbox.complete(seq):
            if message.wr_id != PROBE:
                self._owed -= 1
                counters.messages_completed += 1
                events.append(WriteCompleted(self.qpn, message.wr_id))
        if self._outbox.idle():
            self.silence.idle()
        self.wake()

    def _progress(self, now_ns: int) -> None:
        self._tries = 0
        self._since_ns = now_ns
        if self._patient_until_ns and not self.answered:
            self.silence.since_ns = now_ns
        if not self._only_probes:
            self.silence.progress(now_ns)

    def _tells_news(self, syndrome: int, named: int) -> bool:
        """Does a NAK say something although its missing packet was acknowledged since? Not where it names no other."""
        return False

    def _on_gap(self, named: int, now_ns: int) -> None:
        """The oldest packet is missing at the peer."""
        self._go_back()

    def _go_back(self) -> None:
        """Begin again with the oldest packet, if it is not about to be sent anyway."""
        if self._next > self._una:
            self._context.counters.go_backs += 1
            self.lost_packets += self._next - self._una
            self._next = self._una
            self._timed_seq = NEVER
            self.wake()

    def on_cnp(self, now_ns: int) -> None:
        """The peer saw CE marks: cut the rate."""
        counters = self._context.counters
        counters.cnps_received += 1
        if self._rate is not None and self._rate.notified(now_ns):
            counters.rate_cuts += 1

    def on_probe_answer(self, now_ns: int) -> None:
        """A QP that keeps to one plane has asked for none."""
        self._context.counters.refuse(RcIgnored.ONE_PLANE)

    # --- time ---

    def on_timer(self, now_ns: int) -> int:
        """Acknowledgement timeout; returns when to look again."""
        if self._una == self._high:
            return NEVER
        timeout_ns = self._context.config.timeout_ns
        if now_ns < self._since_ns + timeout_ns:
            return self._since_ns + timeout_ns
        self._context.counters.timeouts += 1
        if not self._only_probes and not self._waits_for_peer(now_ns):
            self._tries += 1
        if self._tries > self._context.config.retries:
            self._fail(QpFailure.RETRY_EXCEEDED)
            return NEVER
        self._since_ns = now_ns
        self._resend_all(now_ns)
        return now_ns + timeout_ns

    def _waits_for_peer(self, now_ns: int) -> bool:
        if self.answered or not self._patient_until_ns:
            return False
        if self._patient_until_ns == NEVER:
            self._patient_until_ns = now_ns + PATIENCE_NS
        return now_ns < self._patient_until_ns

    def _resend_all(self, now_ns: int) -> None:
        """Nothing was acknowledged for too long."""
        self._go_back()
