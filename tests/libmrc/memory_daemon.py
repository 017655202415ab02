"""A daemon for tests of Python's verbs: all hosts in one thread, bytes go from memory to memory at once.

What the real daemon does over MRC is left out; what a program sees of it is as hosts/verbs/messages.py says.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from errno import EINVAL
from pathlib import Path
from threading import Thread
from typing import Any

from mrc_testbed.hosts.verbs.messages import FORMS, HELLO_REPLY, RECORD_BYTES, PostFlag, RecordKind, To, kind_of

Fields = dict[str, Any]
RETRIES_EXCEEDED, REMOTE_ACCESS, FLUSHED = 12, 10, 5


@dataclass
class Qp:
    """One end."""

    program: Program
    number: int
    state: int = To.RESET
    peer: tuple[bytes, int] = (b"", 0)
    receives: int = 0
    waiting: deque[Fields] = field(default_factory=deque)
    """Writes that are not done yet."""


class Program:
    """One connection, and what it has registered."""

    def __init__(self, came: socket.socket, gid: bytes) -> None:
        self.socket, self.gid = came, gid
        self.memory = -1
        self.regions: dict[int, tuple[int, int]] = {}

    def tell(self, kind: RecordKind, **values: Any) -> None:
        with contextlib.suppress(OSError):
            self.socket.send(FORMS[kind].pack(**values), socket.MSG_NOSIGNAL)

    def lies_in(self, key: int, address: int, length: int) -> bool:
        first, size = self.regions.get(key, (0, 0))
        return first <= address and address + length <= first + size


class MemoryDaemon:
    """Hosts `h0`, `h1`, ... with sockets of these names in `folder`. A context manager. Orders of a test are carried
    out in the daemon's own thread, between two records."""

    def __init__(self, folder: Path, hosts: int = 2) -> None:
        self.paths = [str(folder / f"h{host}") for host in range(hosts)]
        self.held = False
        """Writes wait, and so nobody gets a completion."""
        self.seen: list[tuple[int, RecordKind, Fields]] = []
        """What came from programs, with the host of each."""
        self.programs: list[Program] = []
        self.qps: dict[int, Qp] = {}
        self._selector = selectors.DefaultSelector()
        self._orders, self._wake = deque[Callable[[], None]](), os.eventfd(0, os.EFD_NONBLOCK)
        self._numbers = iter(range(1000, 1 << 24))
        self._thread = Thread(target=self._serve, daemon=True)

    def __enter__(self) -> MemoryDaemon:
        self._selector.register(self._wake, selectors.EVENT_READ, self._obey)
        for host, path in enumerate(self.paths):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind(path)
            listener.listen()
            taken = self._taker(listener, host)
            self._selector.register(listener, selectors.EVENT_READ, taken)
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self.order(self._stop)
        self._thread.join()

    def order(self, what: Callable[[], None]) -> None:
        """Have something done between two records."""
        self._orders.append(what)
        os.eventfd_write(self._wake, 1)

    def release(self) -> None:
        """Writes go on."""

        def go_on() -> None:
            self.held = False
            for qp in list(self.qps.values()):
                self._move(qp)

        self.order(go_on)

    def fail(self, qpn: int, status: int = RETRIES_EXCEEDED, text: str = "no acknowledgement") -> None:
        """A QP goes to ERROR."""
        self.order(lambda: self._fail(self.qps[qpn], status, text))

    def hang_up(self, host: int) -> None:
        """As if the daemon of a host ended."""

        def leave() -> None:
            for program in [each for each in self.programs if each.gid == _gid(host)]:
                self._leave(program)

        self.order(leave)

    def say(self, host: int, datagram: bytes) -> None:
        """Send anything to the programs of a host."""

        def send() -> None:
            for program in [each for each in self.programs if each.gid == _gid(host)]:
                program.socket.send(datagram)

        self.order(send)

    def _serve(self) -> None:
        while self._thread.is_alive() and self._selector.get_map():
            for key, _ in self._selector.select():
                key.data()

    def _obey(self) -> None:
        os.eventfd_read(self._wake)
        while self._orders:
            self._orders.popleft()()

    def _stop(self) -> None:
        for program in list(self.programs):
            self._leave(program)
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fileobj)
            key.fileobj.close() if isinstance(key.fileobj, socket.socket) else os.close(self._wake)

    def _taker(self, listener: socket.socket, host: int) -> Callable[[], None]:
        def take() -> None:
            program = Program(listener.accept()[0], _gid(host))
            self.programs.append(program)
            self._selector.register(program.socket, selectors.EVENT_READ, lambda: self._hear(program, host))

        return take

    def _hear(self, program: Program, host: int) -> None:
        try:
            datagram, descriptors, _, _ = socket.recv_fds(program.socket, 1 << 16, 2)
        except OSError:
            datagram, descriptors = b"", []
        if descriptors:
            program.memory = descriptors[0]
            os.close(descriptors[1])
        if not datagram:
            self._leave(program)
        for start in range(0, len(datagram), RECORD_BYTES):
            record = datagram[start : start + RECORD_BYTES]
            kind = kind_of(record)
            fields = FORMS[kind].unpack(record)
            self.seen.append((host, kind, fields))
            self._act(program, host, kind, fields)

    def _act(self, program: Program, host: int, kind: RecordKind, fields: Fields) -> None:
        if kind is RecordKind.HELLO:
            facts = {"host": host, "planes": 4, "payload_bytes": 4096, "rtt_ns": 10**7, "gid": _gid(host)}
            reply = HELLO_REPLY.pack(token=fields["token"], name=b"h%d" % host, **facts)
            program.socket.send(reply)
        elif kind is RecordKind.POST_SEND:
            qp = self.qps[fields["qpn"]]
            qp.waiting.append(fields)
            self._move(qp)
        elif kind is RecordKind.POST_RECV:
            qp = self.qps[fields["qpn"]]
            qp.receives += fields["count"] if qp.state in (To.INIT, To.RTR, To.RTS) else 0
        else:
            error, value = self._answer(program, kind, fields)
            text = b"the daemon says no" if error else b""
            program.tell(RecordKind.REPLY, token=fields["token"], error=error, value=value, text=text)

    def _answer(self, program: Program, kind: RecordKind, fields: Fields) -> tuple[int, int]:
        match kind:
            case RecordKind.REG_MR:
                key = next(self._numbers)
                program.regions[key] = fields["address"], fields["length"]
                return 0, key
            case RecordKind.CREATE_QP if fields["max_send_wr"] <= 1024:
                number = next(self._numbers)
                self.qps[number] = Qp(program, number)
                return 0, number
            case RecordKind.DEREG_MR:
                return (0 if program.regions.pop(fields["key"], None) else EINVAL), 0
            case RecordKind.DESTROY_QP:
                return (0 if self.qps.pop(fields["qpn"], None) else EINVAL), 0
            case RecordKind.MODIFY_QP if fields["state"] != To.RTR or fields["dgid"] in map(
                _gid, range(len(self.paths))
            ):
                qp = self.qps[fields["qpn"]]
                qp.state = fields["state"]
                if qp.state == To.RTR:
                    qp.peer = fields["dgid"], fields["dest_qpn"]
                return 0, 0
        return EINVAL, 0

    def _move(self, qp: Qp) -> None:
        while qp.waiting and not self.held:
            write = qp.waiting.popleft()
            far = self.qps.get(qp.peer[1])
            if far is None or qp.state != To.RTS:
                self._fail(qp, RETRIES_EXCEEDED, "no acknowledgement")
            elif not self._carry_out(qp, far, write):
                self._fail(qp, REMOTE_ACCESS, "remote access")
                self._fail(far, FLUSHED, "refused an access")
            else:
                qp.program.tell(RecordKind.SENT, qpn=qp.number, count=1)

    def _carry_out(self, qp: Qp, far: Qp, write: Fields) -> bool:
        length, source, into = write["length"], write["address"], write["remote_address"]
        ours = qp.program.lies_in(write["lkey"], source, length)
        with_immediate = bool(write["flags"] & PostFlag.IMMEDIATE)
        if not (ours and far.program.lies_in(write["rkey"], into, length)) or (with_immediate and not far.receives):
            return False
        os.pwrite(far.program.memory, os.pread(qp.program.memory, length, source), into)
        if with_immediate:
            far.receives -= 1
            far.program.tell(RecordKind.RECEIVED, qpn=far.number, immediate=write["immediate"], byte_len=length)
        return True

    def _fail(self, qp: Qp, status: int, text: str) -> None:
        qp.waiting.clear()
        qp.state = To.ERROR
        qp.program.tell(RecordKind.QP_ERROR, qpn=qp.number, status=status, text=text.encode())

    def _leave(self, program: Program) -> None:
        """It has ended: peers that write to it get no acknowledgement."""
        if program not in self.programs:
            return
        self.programs.remove(program)
        self.qps = {number: qp for number, qp in self.qps.items() if qp.program is not program}
        self._selector.unregister(program.socket)
        program.socket.close()
        if program.memory >= 0:
            os.close(program.memory)


def _gid(host: int) -> bytes:
    return bytes(10) + b"\xff\xff" + bytes([10, 64, 0, host + 1])
