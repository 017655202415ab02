"""The QPs of programs on one host: from the numbers they are given to the last duplicate they answer."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Protocol

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.memory import Domain, QpTerms, ReadableMemory
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.verbs.messages import To
from mrc_testbed.hosts.verbs.refusal import RequestRefused, refusals

LINGER_NS = 2 * 10**9
LINGER_RTTS = 20
"""So long, the longer of both, a destroyed QP answers duplicates: a program leaves with its last immediate, and
the peer may still wait for an acknowledgement that was lost."""


class ProgramEndpoint(Protocol):
    """What programs need of an endpoint, beside `EndpointLike`."""

    def new_qpn(self) -> int:
        """A number for a QP that a program connects later."""

    def open_receiver(self, qpn: int, peer: int, terms: QpTerms, domain: Domain) -> None:
        """RESET -> INIT -> RTR."""

    def enable_send(self, qpn: int, psn: int, terms: QpTerms) -> None:
        """RTR -> RTS."""

    def post_receives(self, qpn: int, count: int) -> None:
        """Let `count` more writes with immediate in."""

    def post_of_program(
        self, qpn: int, data: ReadableMemory, remote_address: int, rkey: int, wr_id: int, immediate: int | None
    ) -> None:
        """Queue one write."""

    def fail_qp(self, qpn: int, reason: QpFailure) -> None:
        """Any state but RESET -> ERROR."""

    def close_qp(self, qpn: int) -> bool:
        """Send nothing more, take nothing new; True if it stays for now."""

    def destroy_qp(self, qpn: int) -> None:
        """Forget it."""


class QpNames(Protocol):
    """Where QPs have names, by which a run knows them."""

    def adopt(self, qpn: int, name: str, peer: int) -> None:
        """A program's QP is connected."""

    def disown(self, qpn: int) -> None:
        """It is gone."""


@dataclass(slots=True)
class ProgramQp:
    """`peer`: host number, from RTR on. `outstanding`: writes posted and not complete. `receives`: those posted and not
    taken; the endpoint hears of them at RTR."""

    qpn: int
    domain: Domain
    name: str
    state: To = To.RESET
    peer: int = -1
    outstanding: int = 0
    receives: int = 0
    sent: int = 0
    """Writes that are complete and that the program has not heard of."""
    terms: dict[str, int] = field(default_factory=dict)


_ALLOWED: Mapping[To, tuple[To, ...]] = {
    To.INIT: (To.RESET, To.INIT),
    To.RTR: (To.INIT, To.RTR),
    To.RTS: (To.RTR, To.RTS),
    To.RESET: tuple(To),
    To.ERROR: tuple(To),
}
"""Where each state may be entered from (ibv_modify_qp(3))."""


class NicQps:
    """Opens, moves and closes them. What cannot be raises `RequestRefused`, and changes nothing."""

    def __init__(self, endpoint: ProgramEndpoint, names: QpNames, rtt_ns: int) -> None:
        self._endpoint = endpoint
        self._names = names
        self._linger_ns = max(LINGER_NS, LINGER_RTTS * rtt_ns)
        self._closing: list[tuple[int, int]] = []
        """When each may be forgotten, and its number."""

    def create(self, domain: Domain, name: str) -> ProgramQp:
        """In RESET. `name`: of its program."""
        qpn = self._endpoint.new_qpn()
        return ProgramQp(qpn, domain, f"{name}:{qpn}")

    def move(self, qp: ProgramQp, to: To, now_ns: int) -> None:
        """To RESET, INIT or ERROR."""
        self._check(qp, to)
        if to is To.RESET:
            self._forget(qp)
            qp.terms.clear()
            qp.outstanding = qp.receives = qp.sent = 0
        elif to is To.ERROR:
            self.fail(qp, QpFailure.BY_PROGRAM)
        qp.state = to

    def connect(self, qp: ProgramQp, peer: int, terms: QpTerms) -> None:
        """INIT -> RTR; in RTR already, nothing."""
        self._check(qp, To.RTR)
        if qp.state is To.RTR:
            return
        with refusals():
            self._endpoint.open_receiver(qp.qpn, peer, terms, qp.domain)
        qp.state, qp.peer = To.RTR, peer
        self._names.adopt(qp.qpn, qp.name, peer)
        self._endpoint.post_receives(qp.qpn, qp.receives)

    def enable(self, qp: ProgramQp, psn: int, terms: QpTerms) -> None:
        """RTR -> RTS; in RTS already, nothing."""
        self._check(qp, To.RTS)
        if qp.state is To.RTR:
            with refusals():
                self._endpoint.enable_send(qp.qpn, psn, terms)
            qp.state = To.RTS

    def post_receives(self, qp: ProgramQp, count: int) -> None:
        """As `ProgramEndpoint`; in a state where the endpoint does not know the QP, for later."""
        if qp.state in (To.RTR, To.RTS):
            self._endpoint.post_receives(qp.qpn, count)
        qp.receives += count

    def fail(self, qp: ProgramQp, reason: QpFailure) -> None:
        """To ERROR, unless it is there. The endpoint may have failed it in this very turn, and tells of that next."""
        if qp.state in (To.RTR, To.RTS):
            qp.state = To.ERROR
            with contextlib.suppress(QpStateError):
                self._endpoint.fail_qp(qp.qpn, reason)

    def close(self, qp: ProgramQp, now_ns: int) -> None:
        """The program is through with it. It answers for a while."""
        if qp.peer >= 0 and qp.state is not To.RESET:
            if self._endpoint.close_qp(qp.qpn):
                heappush(self._closing, (now_ns + self._linger_ns, qp.qpn))
            else:
                self._names.disown(qp.qpn)
        qp.state = To.RESET

    def run(self, now_ns: int) -> None:
        """Forget those that have answered for long enough."""
        while self._closing and self._closing[0][0] <= now_ns:
            _, qpn = heappop(self._closing)
            self._endpoint.destroy_qp(qpn)
            self._names.disown(qpn)

    def next_ns(self) -> int:
        """When `run` has something to do."""
        return self._closing[0][0] if self._closing else NEVER

    def _forget(self, qp: ProgramQp) -> None:
        if qp.peer >= 0:
            self._endpoint.destroy_qp(qp.qpn)
            self._names.disown(qp.qpn)
            qp.peer = -1

    def _check(self, qp: ProgramQp, to: To) -> None:
        if qp.state not in _ALLOWED[to]:
            raise RequestRefused(errno.EINVAL, f"QP {qp.qpn} is in {qp.state.name} and cannot go to {to.name}")
