"""A daemon for tests of the verbs library: tables, and bytes moved at once between the memories of its programs.

It knows nothing of networks. `Faults` says how it misbehaves; tests in the same process send records of their own.
"""

from __future__ import annotations

import array
import errno
import heapq
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrc_testbed.hosts.verbs.messages import (
    FORMS,
    GID_INDEX,
    HELLO_REPLY,
    MOST_NEWS,
    RECORD_BYTES,
    VERSION,
    PostFlag,
    RecordKind,
    kind_of,
)

GID = bytes.fromhex("00000000000000000000ffff0a400001")
STATES = {"RESET": 0, "INIT": 1, "RTR": 2, "RTS": 3, "ERROR": 6}
FLUSH, REMOTE_ACCESS, REMOTE_OPERATION, LOCAL_PROTECTION = 5, 10, 11, 4


@dataclass(slots=True)
class Faults:
    """What is wrong with the daemon. Records are counted from 1, over all programs."""

    die_at: int = 0
    """Closes every connection instead of answering this record."""
    garbage_at: int = 0
    """Sends `garbage` before it answers this record."""
    garbage: bytes = b"\xff" * RECORD_BYTES
    silent_at: int = 0
    """Does not answer this record nor any after it."""
    delay: float = 0.0
    """Seconds between a write and its SENT and RECEIVED."""
    refuse: dict[RecordKind, tuple[int, str]] = field(default_factory=dict)
    """Requests that are answered with this errno and text."""
    limits: dict[str, int] = field(default_factory=dict)
    """Fields of the answer to HELLO."""
    hello_error: tuple[int, str] | None = None
    deaf: bool = False
    """Posts are not carried out."""


@dataclass(slots=True, eq=False)
class Program:
    """One connection."""

    socket: socket.socket
    memory: int = -1
    events: int = -1
    hello: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Pair:
    """One end of a queue pair."""

    program: Program
    qpn: int
    pd: int
    state: int = 0
    dest: int = 0
    receives: int = 0
    modified: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Region:
    """Memory of a program."""

    program: Program
    pd: int
    address: int
    length: int


class FakeDaemon:
    """Serves programs at `path` in a thread of its own, from `with` to its end."""

    def __init__(self, path: Path | str, faults: Faults | None = None) -> None:
        self.path = str(path)
        self.faults = faults or Faults()
        self.programs: list[Program] = []
        self.pairs: dict[int, Pair] = {}
        self.regions: dict[int, Region] = {}
        self.seen: list[RecordKind] = []
        self.bad_port: set[int] = set()
        self.on_record: Callable[[Program, RecordKind, dict[str, Any]], None] | None = None
        self.errors: list[BaseException] = []
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._next_qpn = 0x10
        self._next_key = 0x100
        self._silent = False
        self._dead = False
        self._lock = threading.RLock()

    def __enter__(self) -> FakeDaemon:
        name = "\0" + self.path[1:] if self.path.startswith("@") else self.path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(name)
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._stop_reader, self._stop_writer = os.pipe()
        self._stopped = False
        self._selector.register(self._stop_reader, selectors.EVENT_READ, self._stop)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._stop_writer, b"x")
        self._thread.join(20)
        for descriptor in (self._stop_reader, self._stop_writer):
            os.close(descriptor)
        with self._lock:
            self._end_all()
        self._listener.close()
        if self.errors:
            raise self.errors[0]

    def environment(self) -> dict[str, str]:
        """What a program needs to find it."""
        return {"MRC_TESTBED_SOCKET": self.path}

    # What tests do.

    def send(self, program: Program, record: bytes) -> None:
        """Records to a program, as they are."""
        with self._lock:
            try:
                program.socket.send(record)
            except OSError:
                self._end(program)

    def raise_async(self, program: Program, event: int, element: int) -> None:
        """An asynchronous event."""
        self.send(program, FORMS[RecordKind.ASYNC].pack(event=event, element=element))
        if program.events >= 0:
            os.eventfd_write(program.events, 1)

    def break_qp(self, qpn: int, status: int, text: str = "") -> None:
        """A QP goes to ERROR."""
        with self._lock:
            pair = self.pairs[qpn]
            pair.state = STATES["ERROR"]
            self.send(pair.program, FORMS[RecordKind.QP_ERROR].pack(qpn=qpn, status=status, text=text.encode()))

    def die(self) -> None:
        """Closes all connections and the listener's."""
        with self._lock:
            self._dead = True
            self._end_all()

    # The loop.

    def _serve(self) -> None:
        try:
            while not self._stopped:
                timeout = max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
                for key, _ in self._selector.select(timeout):
                    key.data()
                with self._lock:
                    while self._later and self._later[0][0] <= time.monotonic():
                        heapq.heappop(self._later)[2]()
        except BaseException as error:
            self.errors.append(error)

    def _stop(self) -> None:
        self._stopped = True

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._dead:
            client.close()
            return
        program = Program(client)
        self.programs.append(program)
        self._selector.register(client, selectors.EVENT_READ, lambda: self._receive(program))

    def _receive(self, program: Program) -> None:
        try:
            data, ancillary, _, _ = program.socket.recvmsg(RECORD_BYTES * 64, 1024, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            data, ancillary = b"", []
        with self._lock:
            for _, kind, content in ancillary:
                assert kind == socket.SCM_RIGHTS
                program.memory, program.events = array.array("i", content[:8])
            if not data:
                self._end(program)
            for at in range(0, len(data), RECORD_BYTES):
                self._take(program, data[at : at + RECORD_BYTES])

    def _end_all(self) -> None:
        for program in list(self.programs):
            self._end(program)

    def _end(self, program: Program) -> None:
        if program not in self.programs:
            return
        self.programs.remove(program)
        self._selector.unregister(program.socket)
        program.socket.close()
        for descriptor in (program.memory, program.events):
            if descriptor >= 0:
                os.close(descriptor)
        program.memory = program.events = -1
        self.pairs = {qpn: pair for qpn, pair in self.pairs.items() if pair.program is not program}
        self.regions = {key: region for key, region in self.regions.items() if region.program is not program}

    def _take(self, program: Program, record: bytes) -> None:
        if program not in self.programs:
            return
        self._count += 1
        kind = kind_of(record)
        values = FORMS[kind].unpack(record)
        self.seen.append(kind)
        if self.on_record is not None:
            self.on_record(program, kind, values)
        self._silent = self._silent or self._count == self.faults.silent_at
        if self._count == self.faults.die_at:
            self._dead = True
            self._end_all()
            return
        if self._count == self.faults.garbage_at:
            self.send(program, self.faults.garbage)
        if not self._silent and program in self.programs:
            self._handle(program, kind, values)

    def _handle(self, program: Program, kind: RecordKind, values: dict[str, Any]) -> None:
        if kind in self.faults.refuse:
            error, text = self.faults.refuse[kind]
            self._reply(program, values, error=error, text=text.encode())
        elif kind is RecordKind.POST_SEND:
            self._post_send(program, values)
        elif kind is RecordKind.POST_RECV:
            if values["qpn"] in self.pairs:
                self.pairs[values["qpn"]].receives += values["count"]
        elif kind is RecordKind.HELLO:
            self._hello(program, values)
        else:
            error, value = getattr(self, f"_{kind.name.lower()}", self._unknown)(program, values)
            self._reply(program, values, error=error, value=value)

    def _reply(self, program: Program, request: dict[str, Any], **values: Any) -> None:
        self.send(program, FORMS[RecordKind.REPLY].pack(token=request["token"], **values))

    def _hello(self, program: Program, values: dict[str, Any]) -> None:
        program.hello = values
        if self.faults.hello_error or values["version"] != VERSION:
            error, text = self.faults.hello_error or (errno.EPROTO, "another version")
            self._reply(program, values, error=error, text=text.encode())
            return
        limits = {
            **dict(host=1, planes=4, payload_bytes=4096, port_mask=15, rtt_ns=4_000_000),
            **dict(max_qp=1024, max_qp_wr=1024, max_cqe=65536, max_mr=65536, max_wimm=32, mpr=8),
            **self.faults.limits,
        }
        self.send(program, HELLO_REPLY.pack(token=values["token"], gid=GID, name=b"h1", **limits))

    # Requests: (errno, value).

    def _unknown(self, program: Program, values: dict[str, Any]) -> tuple[int, int]:
        return errno.EOPNOTSUPP, 0

    def _reg_mr(self, program: Program, values: dict[str, Any]) -> tuple[int, int]:
        self._next_key += 0x101
        self.regions[self._next_key] = Region(program, values["pd"], values["address"], values["length"])
        return 0, self._next_key

    def _dereg_mr(self, program: Program, values: dict[str, Any]) -> tuple[int, int]:
        return (0 if self.regions.pop(values["key"], None) else errno.EINVAL), 0

    def _create_qp(self, program: Program, values: dict[str, Any]) -> tuple[int, int]:
        self._next_qpn += 1
        self.pairs[self._next_qpn] = Pair(program, self._next_qpn, values["pd"])
        return 0, self._next_qpn

    def _destroy_qp(self, program: Program, values: dict[str, Any]) -> tuple[int, int]:
        return (0 if self.pairs.pop(values["qpn"], None) else errno.EINVAL), 0

    def _modify_qp(self, program: Program, values: dict[str, Any]) -> tuple[int, int]:
        pair = self.pairs.get(values["qpn"])
        if pair is None:
            return errno.EINVAL, 0
        pair.state, pair.dest, pair.modified = values["state"], values["dest_qpn"], values
        if pair.state == STATES["RESET"]:
            pair.receives = 0
        return 0, 0

    def _query_port(self, program: Program, values: dict[str, Any]) -> tuple[int, int]:
        return 0, int(values["port"] not in self.bad_port)

    # Writes.

    def _post_send(self, program: Program, values: dict[str, Any]) -> None:
        pair = self.pairs.get(values["qpn"])
        if pair is None or pair.state != STATES["RTS"] or self.faults.deaf:
            return
        if self.faults.delay:
            moment = time.monotonic() + self.faults.delay
            heapq.heappush(self._later, (moment, self._count, lambda: self._carry_out(pair, values)))
        else:
            self._carry_out(pair, values)

    def _carry_out(self, pair: Pair, values: dict[str, Any]) -> None:
        if pair.state != STATES["RTS"] or pair.qpn not in self.pairs:
            return
        if status := self._move(pair, values):
            self.break_qp(pair.qpn, status)
            return
        self.send(pair.program, FORMS[RecordKind.SENT].pack(qpn=pair.qpn, count=1))

    def _move(self, pair: Pair, values: dict[str, Any]) -> int:
        """The status: 0, or why not."""
        length, peer = values["length"], self.pairs.get(pair.dest)
        if (
            length
            and not values["flags"] & PostFlag.INLINE
            and not self._covers(values["lkey"], pair, values["address"])
        ):
            return LOCAL_PROTECTION
        if peer is None or peer.state not in (STATES["RTR"], STATES["RTS"]):
            return REMOTE_OPERATION
        if length and not self._covers(values["rkey"], peer, values["remote_address"]):
            return REMOTE_ACCESS
        if values["flags"] & PostFlag.IMMEDIATE and not peer.receives:
            return REMOTE_OPERATION
        data = os.pread(pair.program.memory, length, values["address"]) if length else b""
        assert len(data) == length
        if length:
            os.pwrite(peer.program.memory, data, values["remote_address"])
        if values["flags"] & PostFlag.IMMEDIATE:
            peer.receives -= 1
            record = FORMS[RecordKind.RECEIVED].pack(qpn=peer.qpn, immediate=values["immediate"], byte_len=length)
            self.send(peer.program, record)
        return 0

    def _covers(self, key: int, pair: Pair, address: int) -> bool:
        region = self.regions.get(key)
        return (
            region is not None
            and region.program is pair.program
            and region.pd == pair.pd
            and region.address <= address < region.address + region.length
        )


assert GID_INDEX == 3
assert MOST_NEWS * RECORD_BYTES == 4096
