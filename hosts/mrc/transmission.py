"""What a sender sends: the packets of its messages, again those that are lost, each on the path whose turn it is."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.base import Packet
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.memory import ReadableMemory
from mrc_testbed.hosts.common.messages import Message
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import PASS, QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE
from mrc_testbed.hosts.mrc.evselect.rotation import Rotation
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.loss_recovery import LossRecovery
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.peer import Peer

GOOD = EvState.GOOD


class Transmission(LossRecovery):
    """Writes one QP's messages over its peer's paths, as packets."""

    __slots__ = (
        "_initial_psn", "_passing", "_remote_qpn", "_rkey", "_rotation", "_stamp_shift", "_ts_field", "selection"
    )  # fmt: skip

    def __init__(
        self,
        context: Context,
        peer: Peer,
        local: QpAttributes,
        remote: QpAttributes,
        peer_is_ready: bool,
        fail: Callable[[QpFailure], None],
    ) -> None:
        """As of `LossRecovery`."""
        super().__init__(context, peer, local, remote, peer_is_ready, fail)
        self.selection = peer.selection
        self._rotation: Rotation | None = peer.selection if isinstance(peer.selection, Rotation) else None
        """As `_nscc` of `LossRecovery`."""
        self._passing = self._rotation if context.config.busy_port == PASS else None
        """The rotation, if it passes over full ports."""
        self._initial_psn = local.psn
        self._remote_qpn = remote.qpn
        self._rkey = remote.rkey
        self._stamp_shift, self._ts_field = context.config.stamp_shift, context.config.ts_field

    def post(self, data: ReadableMemory, address: int, wr_id: int, immediate: int | None, rkey: int | None) -> None:
        """Queue one write; without `rkey` into the peer's own region."""
        key = self._rkey if rkey is None else rkey
        self._outbox.post(Message(data, address, key, wr_id, immediate, self._payload_bytes))
        self._context.counters.messages_posted += 1
        self._cc.begin()
        self.wake()

    def may_send_at(self, now_ns: int) -> int:
        """When the plane whose turn it is has tokens, or any that may be passed on to; NEVER where none can be used."""
        plane = self.selection.turn if self._rotation is None else self._rotation.turn
        if plane == NO_PLANE:
            self.stalled(now_ns)
            return NEVER
        ready_at = self._context.pacer.ready_at(plane)
        if self._passing is None or ready_at <= now_ns:
            return ready_at
        return self._pass_over(self._passing, now_ns)

    def _pass_over(self, rotation: Rotation, now_ns: int) -> int:
        """The port whose turn it is is full: turn to one with room, or say when the first has."""
        pacer, usable = self._context.pacer, self.peer.evs.usable
        rotation.pass_over(lambda plane: pacer.ready_at(plane) <= now_ns)
        return min(pacer.ready_at(plane) for plane in range(self._context.config.planes) if usable(plane))

    def stalled(self, now_ns: int) -> None:
        """No plane is usable: time, and with it the retry counter, goes on all the same."""
        self.ready = False
        self._begin_work(now_ns)
        self._start_timers(now_ns)

    @property
    def sent_packets(self) -> int:
        """As of `DataSender`."""
        return self.flight.next

    def transmit(self, now_ns: int, buffer: memoryview) -> Packet | None:
        """Write the next packet on the path whose turn it is: (size, token, traffic class). None: nothing to send.

        Leaves `ready` saying whether another may follow at once; the last one that may asks for a SACK (A bit).
        """
        if not self._can_send():
            self.ready = False
            return None
        flight = self.flight
        if flight.lost:
            seq = self._resend(now_ns)
            bits, traffic_class = wire.TIMESTAMP | wire.RETRANSMISSION, self._context.retransmission_class
        else:
            seq = self._send_new(now_ns)
            bits, traffic_class = wire.TIMESTAMP, self._context.data_class
        self.ready = self._can_send()
        if not self.ready:
            bits |= bth.ACK_REQUEST
        sent = flight.at(seq)
        path = sent.path
        size = self._emit(buffer, sent.message, seq, bits, now_ns)
        if not size:
            self._fail(QpFailure.LOCAL_PROTECTION)
            self.ready = False
            return None
        self._account(path, size, now_ns)
        return size, path.token, traffic_class

    def _send_new(self, now_ns: int) -> int:
        flight = self.flight
        seq = flight.next
        message = self._outbox.next_packet(seq)
        missing = (seq - message.first + 1) * self._payload_bytes - len(message.data)
        size = self._packet_bytes - missing if missing > 0 else self._packet_bytes
        flight.send(message, size, self._take(), now_ns)
        self._begin_work(now_ns)
        return seq

    def _resend(self, now_ns: int) -> int:
        """Oldest gap first, on another EV than the attempt that was lost."""
        flight = self.flight
        seq = self._oldest_lost()
        heappop(self._lost)
        sent = flight.at(seq)
        flight.send_again(seq, self._take(sent.path), now_ns)
        counters = self._context.counters
        counters.retransmitted += 1
        counters.retransmitted_for[sent.reason] += 1
        return seq

    def _take(self, avoid: Path | None = None) -> Path:
        """The path whose turn it is."""
        return self.selection.take(avoid) if self._rotation is None else self._rotation.take(avoid)

    def _emit(self, buffer: memoryview, message: Message, seq: int, bits: int, now_ns: int) -> int:
        """The packet's size; 0 if its payload cannot be read, for then nothing must be sent."""
        index = seq - message.first
        offset = index * self._payload_bytes
        payload = message.data[offset : offset + self._payload_bytes]
        if len(payload) != self._payload_bytes and offset + len(payload) != len(message.data):
            return 0
        context = self._context
        context.counters.bytes_sent += len(payload)
        if context.lends:
            context.lent = payload if message.fixed else memoryview(bytes(payload))
        return wire.emit_data(
            buffer,
            message.opcode(index),
            self._remote_qpn,
            bits | self._initial_psn + seq & bth.PSN_MASK,
            message.rqmsn,
            message.msn,
            now_ns >> self._stamp_shift & 0xFFFF,
            message.address + offset,
            message.rkey,
            len(message.data),
            payload,
            message.immediate if index == message.last_index else None,
            self._ts_field,
            context.lends,
        )

    def _account(self, path: Path, size: int, now_ns: int) -> None:
        path.sent += 1
        path.last_tx_ns = now_ns
        counters = self._context.counters
        counters.data_sent += 1
        if path.state is not GOOD:
            if path.state is EvState.SKIP:
                counters.data_on_skip_ev += 1
            else:
                counters.data_on_bad_ev += 1
        self._context.pacer.charge(path.plane, size, now_ns)
        self._quiet_since = now_ns
        if self.wake_ns == NEVER or self._timeout_at == NEVER:
            self._start_timers(now_ns)
