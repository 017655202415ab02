"""A program that speaks records itself, without a verbs library: what it sends may be as wrong as a test wants.

program = RawProgram(pair.hosts[0].path, pair.drive)
program.hello()
key = program.register(program.buffer(4096))
"""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from mrc_testbed.hosts.verbs.messages import (
    FORMS,
    HELLO_REPLY,
    RECORD_BYTES,
    VERSION,
    PostFlag,
    RecordKind,
    To,
    kind_of,
)
from mrc_testbed.hosts.verbs.opening import gid_of
from tests.libmrc.pair import Pair

LOCAL_PROTECTION, FLUSHED, REMOTE_ACCESS, REMOTE_OPERATION, RETRIES = 4, 5, 10, 11, 12
"""Values of ibv_wc_status."""
WRITABLE = 3
"""LOCAL_WRITE and REMOTE_WRITE."""
Drive = Callable[[Callable[[], bool]], None]


def gid(host: int) -> bytes:
    """Of a host of tests/libmrc/pair.py."""
    return gid_of(f"10.64.0.{host}")


class Refusal(Exception):
    """A REPLY with an errno."""

    def __init__(self, error: int, text: str) -> None:
        super().__init__(f"{error}: {text}")
        self.error, self.text = error, text


class Buffer:
    """Memory of this process."""

    def __init__(self, size: int) -> None:
        self.map = mmap.mmap(-1, size)
        self.size = size
        holder = (ctypes.c_char * size).from_buffer(self.map)
        self.address = ctypes.addressof(holder)
        del holder

    def __getitem__(self, part: slice) -> bytes:
        return self.map[part]

    def fill(self, data: bytes, at: int = 0) -> None:
        self.map[at : at + len(data)] = data

    def unmap(self) -> None:
        """What is at its address then is nothing."""
        self.map.close()


class RawProgram:
    """One connection. `drive(until)`: let the daemons work until it is so."""

    opened: ClassVar[list[RawProgram]] = []
    """All of them, for `close_all`."""

    def __init__(self, path: str, drive: Drive) -> None:
        self.opened.append(self)
        self.memory = self.events = -1
        self._drive = drive
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect("\0" + path[1:] if path.startswith("@") else path)
        self.socket.setblocking(False)
        self.memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        self.events = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.ended = False
        """The daemon has ended the connection."""
        self.deaf = False
        """Reads nothing."""
        self.datagrams: list[bytes] = []
        self.replies: dict[int, dict[str, Any]] = {}
        self.sent: dict[int, int] = defaultdict(int)
        self.received: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.failed: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self.asyncs: list[tuple[int, int]] = []
        self.evs: list[dict[str, Any]] = []
        self.probed: list[dict[str, Any]] = []
        self._token = 0

    # What goes out

    def send(self, *records: bytes, descriptors: list[int] | None = None) -> None:
        """One datagram. Raises BlockingIOError when the socket is full."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.socket.sendmsg([b"".join(records)], ancillary, socket.MSG_NOSIGNAL)

    def ask(self, kind: RecordKind, **fields: Any) -> int:
        """Send a request; returns its token."""
        self._token += 1
        self.send(FORMS[kind].pack(token=self._token, **fields))
        return self._token

    def answer(self, token: int) -> int:
        """Wait for a reply; returns its value. Raises Refusal, and EOFError if the connection ends instead."""
        self.wait(lambda: token in self.replies or self.ended)
        if token not in self.replies:
            raise EOFError
        reply = self.replies.pop(token)
        if reply["error"]:
            raise Refusal(reply["error"], reply["text"].split(b"\0")[0].decode())
        return int(reply["value"])

    def request(self, kind: RecordKind, **fields: Any) -> int:
        """Both."""
        return self.answer(self.ask(kind, **fields))

    def hello_record(self, version: int = VERSION, name: bytes = b"raw") -> bytes:
        return FORMS[RecordKind.HELLO].pack(version=version, token=77, pid=os.getpid(), name=name)

    def hello(self) -> dict[str, Any]:
        """The greeting; returns what the host says of itself."""
        self.send(self.hello_record(), descriptors=[self.memory, self.events])
        self.wait(lambda: 77 in self.replies or self.ended)
        assert self.replies.pop(77)["error"] == 0
        self.hello_told = HELLO_REPLY.unpack(self.datagrams[0])
        return self.hello_told

    def register(self, buffer: Buffer, pd: int = 1, access: int = WRITABLE) -> int:
        """Of all of it; returns the key."""
        return self.request(RecordKind.REG_MR, pd=pd, address=buffer.address, length=buffer.size, access=access)

    def create(self, pd: int = 1) -> int:
        """A QP in RESET; returns its number."""
        return self.request(RecordKind.CREATE_QP, pd=pd, max_send_wr=1024, max_recv_wr=1024)

    def modify(self, qpn: int, state: To, **fields: Any) -> int:
        """Raises Refusal."""
        return self.request(RecordKind.MODIFY_QP, qpn=qpn, state=state, **fields)

    def receive_from(self, qpn: int, host: int, dest: int, **fields: Any) -> None:
        """RESET -> INIT -> RTR."""
        self.modify(qpn, To.INIT)
        self.modify(qpn, To.RTR, **{"dest_qpn": dest, "dgid": gid(host), "path_mtu": 4096} | fields)

    def post(self, qpn: int, buffer: Buffer, lkey: int, to: int, rkey: int, **fields: Any) -> None:
        """A write of a whole buffer, or of `length` bytes `at` a place; `immediate` as said."""
        self.send(self.post_record(qpn, buffer, lkey, to, rkey, **fields))

    @staticmethod
    def post_record(
        qpn: int,
        buffer: Buffer,
        lkey: int,
        to: int,
        rkey: int,
        at: int = 0,
        length: int | None = None,
        immediate: int | None = None,
        flags: int = 0,
    ) -> bytes:
        return FORMS[RecordKind.POST_SEND].pack(
            qpn=qpn,
            address=buffer.address + at,
            remote_address=to,
            length=buffer.size if length is None else length,
            lkey=lkey,
            rkey=rkey,
            immediate=immediate or 0,
            flags=flags | (PostFlag.IMMEDIATE if immediate is not None else 0),
        )

    def post_receives(self, qpn: int, count: int) -> None:
        self.send(FORMS[RecordKind.POST_RECV].pack(qpn=qpn, count=count))

    # What comes in

    def wait(self, until: Callable[[], object]) -> None:
        """Let the daemons work, and read, until it is so."""
        self._drive(lambda: (self.read() or True) and bool(until()))

    def read(self) -> None:
        """All that has come."""
        while not self.ended and not self.deaf:
            try:
                datagram = self.socket.recv(64 * RECORD_BYTES)
            except BlockingIOError:
                return
            except ConnectionError:
                datagram = b""
            if not datagram:
                self.ended = True
                return
            assert len(datagram) % RECORD_BYTES == 0
            self.datagrams.append(datagram)
            for at in range(0, len(datagram), RECORD_BYTES):
                self._take(datagram[at : at + RECORD_BYTES])

    def _take(self, record: bytes) -> None:
        kind = kind_of(record)
        fields = FORMS[kind].unpack(record)
        match kind:
            case RecordKind.REPLY:
                self.replies[fields["token"]] = fields
            case RecordKind.SENT:
                self.sent[fields["qpn"]] += fields["count"]
            case RecordKind.RECEIVED:
                self.received[fields["qpn"]].append((fields["immediate"], fields["byte_len"]))
            case RecordKind.QP_ERROR:
                self.failed[fields["qpn"]].append((fields["status"], fields["text"].split(b"\0")[0].decode()))
            case RecordKind.ASYNC:
                self.asyncs.append((fields["event"], fields["element"]))
            case RecordKind.EV_STATE:
                self.evs.append(fields)
            case RecordKind.PROBED:
                self.probed.append(fields)
            case _:
                raise AssertionError(f"{kind.name} from a daemon")

    def failures(self) -> list[tuple[int, int, str]]:
        """QP number, status and text of all that failed."""
        return [(qpn, *failure) for qpn, failures in self.failed.items() for failure in failures]

    def async_wakes(self) -> int:
        """How often its eventfd was told of something."""
        count = 0
        while True:
            try:
                os.eventfd_read(self.events)
            except BlockingIOError:
                return count
            count += 1

    def close(self) -> None:
        """It ends. More than once is nothing."""
        self.socket.close()
        for descriptor in {self.memory, self.events} - {-1}:
            os.close(descriptor)
        self.memory = self.events = -1

    @classmethod
    def close_all(cls) -> None:
        """The end of a test."""
        while cls.opened:
            cls.opened.pop().close()


class Joined:
    """A program on each host, with a QP in RTS each, that lead to each other, and a buffer to write from and one to
    write to. `receives`: posted on both. Index 0 and 1: of the hosts."""

    def __init__(
        self, pair: Pair, size: int = 1 << 16, receives: int = 64, hosts=(0, 1), drive=None, **fields: Any
    ) -> None:
        self.pair, self.hosts = pair, hosts
        self.drive = drive or pair.drive
        self.programs = [RawProgram(pair.hosts[host].path, self.drive) for host in hosts]
        for program in self.programs:
            program.hello()
        self.sources = [Buffer(size) for _ in hosts]
        self.targets = [Buffer(size) for _ in hosts]
        self.lkeys = [program.register(each) for program, each in zip(self.programs, self.sources, strict=True)]
        self.rkeys = [program.register(each) for program, each in zip(self.programs, self.targets, strict=True)]
        self.qpns = [program.create() for program in self.programs]
        for mine, other in ((0, 1), (1, 0)):
            program, qpn = self.programs[mine], self.qpns[mine]
            program.receive_from(qpn, hosts[other], self.qpns[other], rq_psn=100 + other, **fields)
            program.post_receives(qpn, receives)
            program.modify(qpn, To.RTS, sq_psn=100 + mine, **fields)

    def write(self, data: bytes, at: int = 0, source: int = 0, **fields: Any) -> None:
        """From a host into the target of the other."""
        other = 1 - source
        self.sources[source].fill(data, at)
        self.programs[source].post(
            self.qpns[source],
            self.sources[source],
            self.lkeys[source],
            self.targets[other].address + at,
            self.rkeys[other],
            **{"at": at, "length": len(data)} | fields,
        )

    def wait_sent(self, count: int, source: int = 0) -> None:
        """Until this number of writes is complete."""
        program, qpn = self.programs[source], self.qpns[source]
        program.wait(lambda: program.sent[qpn] >= count or bool(program.failed[qpn]) or program.ended)
        assert program.sent[qpn] == count, (program.failed, program.ended)

    def received(self, host: int) -> list[tuple[int, int]]:
        """Immediates that a program has heard of until now, and the bytes of their writes."""
        self.programs[host].read()
        return self.programs[host].received[self.qpns[host]]

    def wait_failed(self, source: int = 0) -> tuple[int, str]:
        """Until a QP has failed."""
        program, qpn = self.programs[source], self.qpns[source]
        program.wait(lambda: bool(program.failed[qpn]) or program.ended)
        (failure,) = program.failed[qpn]
        return failure


@contextmanager
def driven(folder: Path, **fields: Any) -> Iterator[Pair]:
    """Two hosts that a test drives; in the end everything is closed."""
    pair = Pair(folder, **fields)
    try:
        yield pair
    finally:
        RawProgram.close_all()
        for host in pair.hosts:
            host.server.close(pair.now_ns)


def greeted(pair: Pair, host: int = 0) -> RawProgram:
    """A program on a host."""
    program = RawProgram(pair.hosts[host].path, pair.drive)
    program.hello()
    return program


def settle(pair: Pair) -> None:
    """Everything that was sent has been read."""
    pair.drive(lambda: not pair.has_records())


def open_descriptors() -> int:
    """Of this process, and none that only waits for the collector."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
