"""A queue pair: writes go to one peer, in order, and writes with immediate come from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeVar

from mrc_testbed.hosts.verbs.client_connection import Connection
from mrc_testbed.hosts.verbs.client_errors import FLUSHED, DeviceLost, QueuePairError, TimedOut, status_name
from mrc_testbed.hosts.verbs.client_memory import Address, Region
from mrc_testbed.hosts.verbs.messages import FORMS, PostFlag, RecordKind, To

MOST_BYTES: Final = 1 << 30
"""Of one write."""
PATH_MTU: Final = 4096
"""Longest payload of a packet that we ask for, in bytes; the fabric's own is used where that is smaller."""
T = TypeVar("T")


@dataclass(frozen=True)
class Completion:
    """Work that is done. `kind` is `write` (all bytes have arrived), `receive` (a write with immediate has arrived, all
    its bytes are in memory) or `error` (the work was not done: `text` says why, `work` what it was)."""

    kind: Literal["write", "receive", "error"]
    qp: QueuePair
    work: Literal["write", "receive"]
    id: int = 0
    """Of a write: what `qp.write` returned."""
    immediate: int = 0
    """Of a receive: the 32-bit number that came with the write."""
    byte_len: int = 0
    """Of a receive: bytes of the write."""
    status: int = 0
    """0, or the ibv_wc_status of an error."""
    text: str = ""
    order: int = field(default=0, repr=False)
    """Counts all completions of a device."""


@dataclass(frozen=True)
class Numbers:
    """What a new QP is known by: its number, its first PSN, the GID of its host; and how much may be outstanding."""

    qpn: int
    psn: int
    gid: bytes
    most_writes: int
    most_receives: int


class Owner(Protocol):
    """The device of a QP."""

    def count(self) -> int:
        """One more completion: its number."""

    def forget(self, qp: QueuePair) -> None:
        """It is destroyed."""


class QueuePair:
    """Made by `device.queue_pair()`. Connect both ends before either of them writes."""

    def __init__(self, connection: Connection, numbers: Numbers, owner: Owner) -> None:
        self.qpn = numbers.qpn
        self.error: QueuePairError | None = None
        """Why the QP is of no use any more."""
        self._connection, self._numbers, self._owner = connection, numbers, owner
        self._outstanding: deque[tuple[int, bool]] = deque()
        self._written = 0
        self._posted = 0
        self._lost_writes = False
        self._writes: deque[Completion] = deque()
        self._receives: deque[Completion] = deque()
        self.closed = False

    def address(self, region: Region | None = None) -> Address:
        """What the peer needs: of this QP, and of the region that it shall write into."""
        place = (region.address, region.length, region.key) if region else (0, 0, 0)
        return Address(self.qpn, self._numbers.psn, self._numbers.gid, *place)

    def connect(self, remote: Address) -> None:
        """Make the peer's QP the other end. Raises Refused, such as for a GID that no host has."""
        ask = self._connection.ask
        way = {"dest_qpn": remote.qpn, "rq_psn": remote.psn, "path_mtu": PATH_MTU, "dgid": remote.gid}
        ask(RecordKind.MODIFY_QP, qpn=self.qpn, state=To.RTR, **way)
        ask(RecordKind.MODIFY_QP, qpn=self.qpn, state=To.RTS, sq_psn=self._numbers.psn)

    def write(
        self,
        region: Region,
        offset: int,
        length: int,
        remote: Address,
        remote_offset: int = 0,
        immediate: int | None = None,
        signaled: bool = True,
    ) -> int:
        """Write `length` bytes from `offset` of a region of this program into the peer's, at `remote_offset` of it.

        It returns a number at once; do not change the bytes until the write is complete. With an `immediate` (32 bits)
        the peer gets a completion, too: it must have posted a receive for it. Where `signaled` is false, this side gets
        none. It waits while as many writes are outstanding as the QP may have. Raises ValueError for bytes outside the
        regions, QueuePairError and DeviceLost.
        """
        address = region.at(offset, length)
        if remote_offset < 0 or remote_offset + length > remote.length:
            last = remote_offset + length
            raise ValueError(f"bytes {remote_offset} to {last} do not lie in the peer's region of {remote.length}")
        if length > MOST_BYTES:
            raise ValueError(f"a write has at most {MOST_BYTES} bytes, not {length}")
        where = {"address": address, "remote_address": remote.address + remote_offset, "length": length}
        how = {"immediate": immediate or 0, "flags": 0 if immediate is None else PostFlag.IMMEDIATE}
        post = FORMS[RecordKind.POST_SEND].pack(qpn=self.qpn, lkey=region.key, rkey=remote.key, **where, **how)
        return self._wait(lambda: self._post(post, signaled), None, "room for a write")

    def post_receive(self, count: int = 1) -> None:
        """Be ready for `count` more writes with immediate. Post them before the peer writes: what finds none is an
        error of the QP. Raises ValueError where more would be outstanding than the QP may have."""
        if count < 1:
            raise ValueError(f"at least 1 receive is posted, not {count}")
        with self._connection.lock:
            self._check()
            if self._posted + count > self._numbers.most_receives:
                raise ValueError(
                    f"{self._posted} receives are posted, and at most {self._numbers.most_receives} can be"
                )
            self._posted += count
            self._connection.send(FORMS[RecordKind.POST_RECV].pack(qpn=self.qpn, count=count))

    def wait_writes(self, timeout: float | None = None) -> None:
        """Until all writes so far are complete: their bytes have arrived. Their completions are taken. Raises TimedOut
        after `timeout` seconds, QueuePairError and DeviceLost."""
        self._wait(self._all_written, timeout, "its writes")
        with self._connection.lock:
            self._writes.clear()

    def wait_receive(self, timeout: float | None = None) -> Completion:
        """The next write with immediate from the peer. Raises TimedOut after `timeout` seconds, QueuePairError and
        DeviceLost."""
        return self._wait(self._next_receive, timeout, "a write with immediate")

    def close(self) -> None:
        """Destroy it; what is outstanding is forgotten."""
        with self._connection.lock:
            was, self.closed = self.closed, True
            self.take()
            self._owner.forget(self)
        if not was and not self._connection.ended:
            self._connection.ask(RecordKind.DESTROY_QP, qpn=self.qpn)

    def take(self) -> list[Completion]:
        """All completions so far; for `device.poll`."""
        found = [*self._writes, *self._receives]
        self._writes.clear()
        self._receives.clear()
        return found

    def on_sent(self, count: int) -> None:
        """The oldest `count` writes are complete."""
        for _ in range(min(count, len(self._outstanding))):
            number, signaled = self._outstanding.popleft()
            if signaled:
                self._writes.append(Completion("write", self, "write", number, order=self._owner.count()))

    def on_received(self, immediate: int, byte_len: int) -> None:
        """A write with immediate has arrived."""
        self._posted -= 1
        done: Any = {"immediate": immediate, "byte_len": byte_len, "order": self._owner.count()}
        self._receives.append(Completion("receive", self, "receive", **done))

    def on_error(self, status: int, text: str) -> None:
        """All that is outstanding comes back: the oldest write with its reason, the rest flushed."""
        self.error = self.error or QueuePairError(f"QP {self.qpn}: {text or status_name(status)}", status)
        self._lost_writes = self._lost_writes or bool(self._outstanding)
        for number, _ in self._outstanding:
            self._writes.append(self._failed("write", number, status))
            status = FLUSHED
        self._receives += [self._failed("receive", 0, FLUSHED) for _ in range(self._posted)]
        self._outstanding.clear()
        self._posted = 0

    def _failed(self, work: Literal["write", "receive"], number: int, status: int) -> Completion:
        return Completion("error", self, work, number, status=status, text=str(self.error), order=self._owner.count())

    def _next_receive(self) -> Completion | None:
        if self._receives and self._receives[0].kind == "receive":
            return self._receives.popleft()
        return None

    def _all_written(self) -> bool | None:
        if self._lost_writes:
            self._check()
        return None if self._outstanding else True

    def _post(self, record: bytes, signaled: bool) -> int | None:
        """The number of a write, or None while there is no room for it."""
        self._check()
        if len(self._outstanding) >= self._numbers.most_writes:
            return None
        self._written += 1
        self._outstanding.append((self._written, signaled))
        self._connection.send(record)
        return self._written

    def _check(self) -> None:
        if self.closed:
            raise ValueError(f"QP {self.qpn} is closed")
        if self._connection.ended:
            raise DeviceLost(self._connection.ended)
        if self.error:
            raise QueuePairError(str(self.error), self.error.status)

    def _wait(self, ready: Callable[[], T | None], timeout: float | None, what: str) -> T:
        def ready_or_over() -> T | None:
            if (found := ready()) is None:
                self._check()
            return found

        found = self._connection.wait(ready_or_over, timeout)
        if found is None:
            raise TimedOut(f"QP {self.qpn} waited {timeout} s for {what}")
        return found
