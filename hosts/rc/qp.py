"""A queue pair of the RoCE-like transport: its state, its region, and its two halves."""

from __future__ import annotations

from dataclasses import replace

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import QpError, QpFailure
from mrc_testbed.hosts.common.memory import NO_DOMAIN, Domain, QpTerms, ReadableMemory
from mrc_testbed.hosts.common.psn import MASK
from mrc_testbed.hosts.common.qpstate import QpInput, QpState, QueuePair
from mrc_testbed.hosts.rc.balanced import BalancedRequester, BalancedResponder
from mrc_testbed.hosts.rc.config import GO_BACK_N, LOSSLESS, SELECTIVE, RcAttributes, RcConfig, check_recovery
from mrc_testbed.hosts.rc.context import RcContext, Way
from mrc_testbed.hosts.rc.lossless import LosslessRequester, LosslessResponder
from mrc_testbed.hosts.rc.peer import RcPeer
from mrc_testbed.hosts.rc.requester import Requester
from mrc_testbed.hosts.rc.responder import Responder
from mrc_testbed.hosts.rc.selective import SelectiveRequester
from mrc_testbed.hosts.rc.selective_responder import SelectiveResponder

HALVES: dict[str, tuple[type[Requester], type[Responder]]] = {
    GO_BACK_N: (Requester, Responder),
    SELECTIVE: (SelectiveRequester, SelectiveResponder),
    LOSSLESS: (LosslessRequester, LosslessResponder),
}
"""What a QP is made of that keeps to one plane, by recovery."""


def halves_of(config: RcConfig) -> tuple[type[Requester], type[Responder]]:
    """What a QP is made of."""
    return (BalancedRequester, BalancedResponder) if config.spreads else HALVES[config.recovery]


class RcQp(QueuePair):
    """One QP of this endpoint. `responder` is there from RTR on, `requester` from RTS on. `domain`: that of its
    program."""

    __slots__ = ("_context", "_domain", "_remote", "_turn", "_ways", "attributes", "peer", "requester", "responder")

    def __init__(
        self,
        context: RcContext,
        peer: RcPeer,
        attributes: RcAttributes,
        domain: Domain = NO_DOMAIN,
        turn: int | None = None,
    ) -> None:
        super().__init__(0 if turn is not None else attributes.region_bytes)
        self._context = context
        self._domain = domain
        self._turn = turn
        """Which of the peer's ports it was dealt; it keeps that when it is reset. One that is told it from the start is
        one of several with one region, which is given to it."""
        self.peer = peer
        self.attributes = attributes
        self.requester: Requester | None = None
        self.responder: Responder | None = None
        self.advance(attributes.qpn, QpInput.OPEN)

    def connect(self, remote: RcAttributes) -> None:
        """INIT -> RTR -> RTS with the peer's attributes. Raises `PeerAttributeError` where its recovery is another."""
        self.learn_peer(remote)
        self._enable()

    def learn_peer(self, remote: RcAttributes) -> None:
        """INIT -> RTR. Raises as `connect`."""
        context, local = self._context, self.attributes
        check_recovery(remote.recovery, (context.config.recovery,))
        self.advance(local.qpn, QpInput.LEARN_PEER)
        if self._turn is None:
            self._turn = self.peer.next_turn()
        self._ways: list[Way] = self.peer.ways(local.qpn, remote.qpn, self._turn)
        self._remote = remote
        _, make_responder = halves_of(context.config)
        self.responder = make_responder(context, local, remote, self.region, self._domain, self._ways, self.fail)

    def _enable(self) -> Requester:
        context = self._context
        make_requester, _ = halves_of(context.config)
        self.requester = made = make_requester(context, self.peer, self.attributes, self._remote, self._ways, self.fail)
        self.advance(self.attributes.qpn, QpInput.ENABLE_SEND)
        return made

    def enable_send(self, psn: int, terms: QpTerms) -> None:
        """As of `QueuePair`. Timeout and tries stay those of the endpoint."""
        if self.state is not QpState.RTR:
            raise QpStateError(self.attributes.qpn, self.state.value, "enable sending")
        self.attributes = replace(self.attributes, psn=psn)
        self._enable().wait_for_peer()

    def post_receives(self, count: int) -> None:
        """As of `QueuePair`."""
        if self.responder is not None:
            self.responder.receives += count

    def close(self) -> None:
        """As of `QueuePair`."""
        self.advance(self.attributes.qpn, QpInput.CLOSE)
        if self.requester is not None:
            self.requester.stop()
            self.requester.silence.idle()
        if self.responder is not None:
            self.responder.close()

    def post(
        self, data: ReadableMemory, address: int, wr_id: int, immediate: int | None, rkey: int | None = None
    ) -> None:
        """As of `QueuePair`."""
        if self.requester is None or not self.live:
            raise QpStateError(self.attributes.qpn, self.state.value, "post a write")
        self._context.counters.messages_posted += 1
        self.requester.post(data, address, wr_id, immediate, rkey)

    def probe(self) -> None:
        """Have the peer acknowledge an empty write, which is not shown to the application."""
        if self.requester is not None and self.live:
            self.requester.probe()

    def fail(self, reason: QpFailure) -> None:
        """As of `QueuePair`."""
        qpn = self.attributes.qpn
        self.advance(qpn, QpInput.FAIL)
        if self.requester is not None:
            self.requester.stop()
        self._context.counters.qp_errors += 1
        self._context.events.append(QpError(qpn, self.peer.number, reason))

    @property
    def next_psn(self) -> int:
        """PSN of the next new packet, not wrapped."""
        return self.attributes.psn + (0 if self.requester is None else self.requester.sent_packets)

    def reset(self, attributes: RcAttributes) -> None:
        """Any state -> RESET -> INIT with new attributes of this side: the same region, and nothing else of before."""
        self._leave()
        self.attributes = attributes
        self.advance(attributes.qpn, QpInput.OPEN)

    def restore(self, psns: int) -> None:
        """Any state -> RTS, with the attributes of both sides as they were, but that both count on `psns` further. What
        was posted is forgotten, the region stays."""
        self._leave()
        remote = replace(self._remote, psn=self._remote.psn + psns & MASK)
        self.attributes = replace(self.attributes, psn=self.attributes.psn + psns & MASK)
        self.advance(self.attributes.qpn, QpInput.OPEN)
        self.connect(remote)

    @property
    def way(self) -> Way:
        """That of its packets, once it knows its peer."""
        return self._ways[0]

    def destroy(self) -> None:
        """As of `QueuePair`."""
        self._leave()
        self.region = memoryview(b"")

    def _leave(self) -> None:
        """Drop both halves. They refer to this QP, so that nothing but a garbage collection would free them else."""
        self.advance(self.attributes.qpn, QpInput.RESET)
        if self.requester is not None:
            self.requester.stop()
        self.requester = self.responder = None
