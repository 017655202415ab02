"""A queue pair: its state, its region, and its two halves."""

from __future__ import annotations

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import QpError, QpFailure
from mrc_testbed.hosts.common.qpstate import QpInput, QueuePair
from mrc_testbed.hosts.mrc.config import QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.peer import Peer
from mrc_testbed.hosts.mrc.receiver import Receiver
from mrc_testbed.hosts.mrc.sender import Sender


class Qp(QueuePair):
    """One QP of this endpoint. `sender` and `receiver` exist from `connect` on; `live` is RTS, for the hot path."""

    __slots__ = ("_context", "attributes", "peer", "receiver", "sender")

    receiver: Receiver
    sender: Sender

    def __init__(self, context: Context, peer: Peer, attributes: QpAttributes) -> None:
        super().__init__(attributes.region_bytes)
        self._context = context
        self.peer = peer
        self.attributes = attributes
        self._step(QpInput.OPEN)

    def _step(self, event: QpInput) -> None:
        self.advance(self.attributes.qpn, event)

    def connect(self, remote: QpAttributes) -> None:
        """INIT -> RTR -> RTS with the peer's attributes."""
        self._step(QpInput.LEARN_PEER)
        self.receiver = Receiver(self._context, self.peer, self.attributes, remote, self.region, self.fail)
        self.sender = Sender(self._context, self.peer, self.attributes, remote, self.fail)
        self.peer.senders.append(self.sender)
        self.peer.ports.on_attributes(remote.port_mask)
        self._step(QpInput.ENABLE_SEND)

    def post(self, data: memoryview, address: int, wr_id: int, immediate: int | None) -> None:
        """As of `QueuePair`."""
        if not self.live:
            raise QpStateError(self.attributes.qpn, self.state.value, "post a write")
        self.sender.post(data, address, wr_id, immediate)

    def fail(self, reason: QpFailure) -> None:
        """Any live state -> ERROR: drop what is queued and tell the application."""
        self._step(QpInput.FAIL)
        self.sender.stop()
        self.receiver.stop()
        self._context.counters.qp_errors += 1
        self._context.events.append(QpError(self.attributes.qpn, self.peer.number, reason))

    @property
    def next_psn(self) -> int:
        """PSN of the next new packet, not wrapped."""
        return self.attributes.psn + (self.sender.flight.next if hasattr(self, "sender") else 0)

    def reset(self, attributes: QpAttributes) -> None:
        """Any state -> RESET -> INIT with new attributes of this side: the same region, and nothing else of before."""
        self._step(QpInput.RESET)
        self._leave()
        self.attributes = attributes
        self._step(QpInput.OPEN)

    def destroy(self) -> None:
        """As of `QueuePair`."""
        self._step(QpInput.RESET)
        self._leave()
        self.region = memoryview(b"")

    def _leave(self) -> None:
        """Drop both halves. They refer to this QP, so that nothing but a garbage collection would free them else."""
        if hasattr(self, "sender"):
            self.sender.stop()
            self.receiver.stop()
            self.peer.senders.remove(self.sender)
            del self.sender, self.receiver
