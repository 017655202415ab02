"""A queue pair: its state, its region, and its two halves."""

from __future__ import annotations

from dataclasses import replace

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import QpError, QpFailure
from mrc_testbed.hosts.common.memory import NO_DOMAIN, Domain, QpTerms, ReadableMemory
from mrc_testbed.hosts.common.qpstate import QpInput, QpState, QueuePair
from mrc_testbed.hosts.mrc.config import QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.peer import Peer
from mrc_testbed.hosts.mrc.receiver import Receiver
from mrc_testbed.hosts.mrc.sender import Sender


class Qp(QueuePair):
    """One QP of this endpoint. `receiver` exists from RTR on, `sender` from RTS on. `domain`: that of its program."""

    __slots__ = ("_context", "_domain", "_remote", "attributes", "peer", "receiver", "sender")

    __deletable__ = ("receiver", "sender")
    """For mypyc, whose classes have no attributes that can be deleted else."""

    receiver: Receiver
    sender: Sender

    def __init__(self, context: Context, peer: Peer, attributes: QpAttributes, domain: Domain = NO_DOMAIN) -> None:
        super().__init__(attributes.region_bytes)
        self._context = context
        self._domain = domain
        self.peer = peer
        self.attributes = attributes
        self._step(QpInput.OPEN)

    def _step(self, event: QpInput) -> None:
        self.advance(self.attributes.qpn, event)

    def connect(self, remote: QpAttributes) -> None:
        """INIT -> RTR -> RTS with the peer's attributes."""
        self.learn_peer(remote)
        self._enable(True)

    def learn_peer(self, remote: QpAttributes) -> None:
        """INIT -> RTR."""
        self._step(QpInput.LEARN_PEER)
        self._remote = remote
        local, region = self.attributes, self.region
        self.receiver = Receiver(self._context, self.peer, local, remote, region, self._domain, self.fail)
        self.peer.ports.on_attributes(remote.port_mask)
        self.peer.timing.trims_tell = self._context.config.switches_trim and remote.trim_nack

    def _enable(self, peer_is_ready: bool) -> None:
        self.sender = Sender(self._context, self.peer, self.attributes, self._remote, peer_is_ready, self.fail)
        self.peer.senders.append(self.sender)
        self._step(QpInput.ENABLE_SEND)

    def enable_send(self, psn: int, terms: QpTerms) -> None:
        """As of `QueuePair`."""
        if self.state is not QpState.RTR:
            raise QpStateError(self.attributes.qpn, self.state.value, "enable sending")
        self.attributes = sending(self.attributes, psn, terms)
        self._remote = receiving(self._remote, terms)
        self._enable(False)

    def post_receives(self, count: int) -> None:
        """As of `QueuePair`."""
        self.receiver.receives += count

    def close(self) -> None:
        """As of `QueuePair`."""
        self._step(QpInput.CLOSE)
        if hasattr(self, "sender"):
            self.sender.stop()
            self.sender.silence.idle()
        self.receiver.close()

    def post(
        self, data: ReadableMemory, address: int, wr_id: int, immediate: int | None, rkey: int | None = None
    ) -> None:
        """As of `QueuePair`."""
        if not self.live:
            raise QpStateError(self.attributes.qpn, self.state.value, "post a write")
        self.sender.post(data, address, wr_id, immediate, rkey)

    def fail(self, reason: QpFailure) -> None:
        """As of `QueuePair`."""
        self._step(QpInput.FAIL)
        if hasattr(self, "sender"):
            self.sender.stop()
        if hasattr(self, "receiver"):
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
            self.peer.senders.remove(self.sender)
            del self.sender
        if hasattr(self, "receiver"):
            self.receiver.stop()
            del self.receiver


def sending(local: QpAttributes, psn: int, terms: QpTerms) -> QpAttributes:
    """This side's attributes as a program has them at RTS."""
    return replace(
        local,
        psn=psn,
        timeout=local.timeout if terms.timeout is None else terms.timeout,
        linear=local.linear if terms.linear is None else terms.linear,
        exp=local.exp if terms.exponential is None else terms.exponential,
    )


def receiving(remote: QpAttributes, terms: QpTerms) -> QpAttributes:
    """The peer's attributes as a program tells them, up to RTR or later."""
    return replace(
        remote,
        mpr=min(terms.mpr or remote.mpr, remote.mpr),
        max_wimm=terms.max_wimm or remote.max_wimm,
    )
