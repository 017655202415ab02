"""Verbs for Python programs: memory that peers write into, queue pairs, completions. Import it as `mrc_testbed.verbs`.

    from mrc_testbed import verbs

    with verbs.open() as device:
        region = device.register(bytearray(1 << 20))
        qp = device.queue_pair()
        qp.post_receive()
        mine = qp.address(region).to_json()          # give it to the peer over a socket of yours, and get its own
        qp.connect(theirs := verbs.Address.from_json(...))
        qp.write(region, 0, 4096, theirs, immediate=7)
        qp.wait_writes()                             # all 4096 bytes are in the peer's memory
        print(qp.wait_receive().immediate)           # and the peer's are in ours

`verbs.join()` does all of that for the ranks of a job. The program needs the standard library only. Data go from memory
to memory: the daemon of the host reads and writes the registered bytes, and speaks MRC with the daemons of other hosts.
All waiting is blocking, never spinning. Times are in seconds, lengths and offsets in bytes. What fails raises a
`VerbsError` with one line.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from mrc_testbed.hosts.verbs.client_connection import Connection, in_words, socket_path
from mrc_testbed.hosts.verbs.client_errors import (
    FLUSHED,
)
from mrc_testbed.hosts.verbs.client_memory import Pinned, Region
from mrc_testbed.hosts.verbs.client_qp import Completion, Numbers, QueuePair
from mrc_testbed.hosts.verbs.messages import DEVICE, DEVICE_VARIABLE, HELLO_REPLY, RecordKind, To

_WRITABLE: Final = 3
"""Access of a region: local and remote write (ibv_access_flags)."""
_PD: Final = 1


@dataclass(frozen=True)
class Event:
    """What happened to the device without being asked for: `number` is an ibv_event_type, `element` a QP or a port."""

    number: int
    element: int


class Device:
    """The NIC of the host that this program runs on. Made by `open`; a context manager. Threads may share it."""

    def __init__(self, path: str) -> None:
        self._qps: dict[int, QueuePair] = {}
        self._regions: dict[int, Region] = {}
        self._events: list[Event] = []
        self._counter = count()
        handlers = {
            RecordKind.SENT: self._on_sent,
            RecordKind.RECEIVED: self._on_received,
            RecordKind.QP_ERROR: self._on_error,
            RecordKind.ASYNC: self._on_event,
        }
        self._connection = Connection(path, handlers, self._on_end)
        with _closed_where_it_fails(self._connection):
            facts = HELLO_REPLY.unpack(self._connection.hello())
        self.name = os.environ.get(DEVICE_VARIABLE) or DEVICE
        self.host: int = facts["host"]
        """The number of this host."""
        self.host_name = in_words(facts["name"])
        self.gid: bytes = facts["gid"]
        self.planes: int = facts["planes"]
        """Ports of the NIC: one a plane."""
        self.payload_bytes: int = facts["payload_bytes"]
        """Of a data packet."""
        self.rtt: float = facts["rtt_ns"] / 1e9
        """T, the round-trip time of the fabric, in seconds."""

    def register(self, buffer: Any) -> Region:
        """Make a buffer known, so that writes can be from it and into it: a bytearray, an mmap, an array, a numpy
        array. It must be writable, in one piece, and stay as long as it is. Raises TypeError, ValueError, Refused."""
        pinned = Pinned(buffer)
        where = {"address": pinned.address, "length": pinned.length, "access": _WRITABLE}
        made = Region(pinned, self._connection.ask(RecordKind.REG_MR, pd=_PD, **where), self._deregister)
        # Peers may write into it as long as it is not closed, whether the program still has it or not.
        self._regions[made.key] = made
        return made

    def queue_pair(self, most_writes: int = 128, most_receives: int = 128) -> QueuePair:
        """A new QP, to be connected to one of a peer. `most_writes` and `most_receives` may be outstanding at a time.
        Raises Refused where that is more than the device has."""
        sizes = {"max_send_wr": most_writes, "max_recv_wr": most_receives}
        qpn = self._connection.ask(RecordKind.CREATE_QP, pd=_PD, **sizes)
        # From INIT on receives may be posted.
        self._connection.ask(RecordKind.MODIFY_QP, qpn=qpn, state=To.INIT)
        made = QueuePair(
            self._connection, Numbers(qpn, secrets.randbits(24), self.gid, most_writes, most_receives), self
        )
        with self._connection.lock:
            self._qps[qpn] = made
        return made

    def poll(self, timeout: float | None = 0) -> list[Completion]:
        """All completions since, in order. Where there is none it waits for `timeout` seconds, with None for ever, and
        then returns an empty list. Raises DeviceLost when the daemon has gone and nothing is left to tell."""
        return self._connection.wait(self._completions, timeout) or []

    def events(self) -> list[Event]:
        """Events since the last call, such as a port that lost its carrier. Each poll or wait collects them."""
        with self._connection.lock:
            found, self._events = self._events, []
        return found

    def fileno(self) -> int:
        """For `select` and `selectors`: readable when `poll` may have something."""
        return self._connection.fileno()

    def close(self) -> None:
        """Give everything back: QPs, regions and the connection. What is under way is not waited for."""
        self._connection.close("the device is closed")

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def count(self) -> int:
        """One more completion: its number."""
        return next(self._counter)

    def forget(self, qp: QueuePair) -> None:
        """It is destroyed: later news of it mean nothing."""
        self._qps.pop(qp.qpn, None)

    def _deregister(self, key: int) -> None:
        if not self._connection.ended:
            self._connection.ask(RecordKind.DEREG_MR, key=key)
        self._regions.pop(key, None)

    def _completions(self) -> list[Completion] | None:
        found = [each for qp in self._qps.values() for each in qp.take()]
        return sorted(found, key=lambda each: each.order) or None

    def _on_sent(self, values: tuple[Any, ...]) -> None:
        qpn, complete = values
        if qp := self._qps.get(qpn):
            qp.on_sent(complete)

    def _on_received(self, values: tuple[Any, ...]) -> None:
        qpn, immediate, byte_len = values
        if qp := self._qps.get(qpn):
            qp.on_received(immediate, byte_len)

    def _on_error(self, values: tuple[Any, ...]) -> None:
        qpn, status, _, text = values
        if qp := self._qps.get(qpn):
            qp.on_error(status, in_words(text))

    def _on_event(self, values: tuple[Any, ...]) -> None:
        self._events.append(Event(*values))

    def _on_end(self) -> None:
        for qp in self._qps.values():
            qp.on_error(FLUSHED, self._connection.ended)


def open(path: str | None = None) -> Device:
    """The device of this host. `path` is the daemon's socket; without it, what MRC_TESTBED_SOCKET says. Raises NoDevice
    where there is none."""
    return Device(socket_path(path))


@contextmanager
def _closed_where_it_fails(connection: Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close("the device was not opened")
        raise
