"""The connection between a program and the daemon of its host: requests with their replies, and news in order.

Several threads may wait at the same time: one of them reads the socket, the others sleep until it has news.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from functools import cache
from threading import Condition
from typing import Any, Final, TypeVar

from mrc_testbed.hosts.verbs.client_errors import DeviceLost, NoDevice, Refused
from mrc_testbed.hosts.verbs.messages import (
    FORMS,
    MOST_NEWS,
    RECORD_BYTES,
    SOCKET_VARIABLE,
    VERSION,
    RecordKind,
    kind_of,
)

PATIENCE_S: Final = 30.0
"""Seconds for a reply of the daemon."""
Handler = Callable[[tuple[Any, ...]], None]
T = TypeVar("T")


class Connection:
    """One socket. What arrives besides replies goes to `handlers`, by kind, under `lock`."""

    def __init__(self, path: str, handlers: Mapping[RecordKind, Handler], on_end: Callable[[], None]) -> None:
        self.lock = Condition()
        """Guards what handlers change. Hold it neither for `ask` nor for `wait`."""
        self.ended = ""
        """Why there is no daemon any more; empty while there is."""
        self._handlers = handlers
        self._on_end = on_end
        self._replies: dict[int, bytes] = {}
        self._token = 0
        self._reading = False
        self._socket = _connect(path)
        _OPEN.add(self)
        _watch_forks()

    def fileno(self) -> int:
        """Readable when there is news."""
        return self._socket.fileno()

    def hello(self) -> bytes:
        """The first request. It hands over this program's memory; returns the whole reply. Raises Refused."""
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        events = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            return self._request(
                RecordKind.HELLO,
                {"version": VERSION, "pid": os.getpid(), "name": _own_name()},
                descriptors=[memory, events],
            )
        finally:
            os.close(memory)
            os.close(events)

    def ask(self, kind: RecordKind, **fields: Any) -> int:
        """Send a request, wait for its reply, and return the reply's value. Raises Refused and DeviceLost."""
        value: int = FORMS[RecordKind.REPLY].read(self._request(kind, fields))[2]
        return value

    def send(self, record: bytes) -> None:
        """Send a record that has no reply. It waits while the daemon is behind. Raises DeviceLost."""
        with self.lock:
            self._send(record, [])

    def wait(self, ready: Callable[[], T | None], timeout: float | None) -> T | None:
        """What `ready` gives, called under `lock`, as soon as that is not None; None when `timeout` seconds are over.
        Raises DeviceLost when it can come no more."""
        until = None if timeout is None else time.monotonic() + timeout
        with self.lock:
            while True:
                # A thread that sleeps on the socket must see itself what comes: else nobody would wake it.
                if not self._reading:
                    self._drain()
                if (found := ready()) is not None:
                    return found
                if self.ended:
                    raise DeviceLost(self.ended)
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._sleep(left)

    def close(self, why: str) -> None:
        """The daemon sees the end of the connection. Other threads that wait get DeviceLost."""
        with self.lock:
            if self.ended:
                return
            self._end(why)
            while self._reading:
                self.lock.wait()
            self._socket.close()

    def leave_to_the_parent(self) -> None:
        """In the child of a fork: its copy of the socket must not keep the connection open."""
        self.lock, self._reading = Condition(), False
        self._socket.close()
        with self.lock:
            self._end("this process is a fork: the device belongs to its parent; open it again")

    def _request(self, kind: RecordKind, fields: dict[str, Any], descriptors: list[int] | None = None) -> bytes:
        with self.lock:
            self._token += 1
            token = self._token
            self._send(FORMS[kind].pack(token=token, **fields), descriptors or [])
        reply = self.wait(lambda: self._replies.pop(token, None), PATIENCE_S)
        if reply is None:
            self.close(f"the daemon of this host did not answer {kind.name} for {PATIENCE_S:.0f} s")
            raise DeviceLost(self.ended)
        error = FORMS[RecordKind.REPLY].read(reply)[0]
        if error:
            text = FORMS[RecordKind.REPLY].unpack(reply)["text"]
            raise Refused(in_words(text) or f"{kind.name}: {os.strerror(error)}", error)
        return reply

    def _send(self, record: bytes, descriptors: list[int]) -> None:
        if self.ended:
            raise DeviceLost(self.ended)
        try:
            if descriptors:
                socket.send_fds(self._socket, [record], descriptors, socket.MSG_NOSIGNAL)
            else:
                self._socket.send(record, socket.MSG_NOSIGNAL)
        except OSError as error:
            self._end(f"the daemon of this host has gone ({error.strerror})")
            raise DeviceLost(self.ended) from error

    def _sleep(self, seconds: float | None) -> None:
        """Until there may be news. The lock is not held meanwhile."""
        if self._reading:
            self.lock.wait(seconds)
            return
        self._reading = True
        self.lock.release()
        try:
            until = select.poll()
            until.register(self._socket, select.POLLIN)
            until.poll(None if seconds is None else max(1, round(1000 * seconds)))
        finally:
            self.lock.acquire()
            self._reading = False
            self.lock.notify_all()

    def _drain(self) -> None:
        """Take all that has come."""
        while not self.ended:
            try:
                datagram = self._socket.recv(2 * MOST_NEWS * RECORD_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                datagram = b""
            if not datagram:
                self._end("the daemon of this host has gone")
                return
            self._take(datagram)

    def _take(self, datagram: bytes) -> None:
        for start in range(0, len(datagram), RECORD_BYTES):
            record = datagram[start : start + RECORD_BYTES]
            try:
                kind = kind_of(record)
                values = FORMS[kind].read(record)
            except (ValueError, struct.error) as error:
                self._end(f"the daemon of this host sent what is no record ({error})")
                return
            if kind is RecordKind.REPLY:
                self._replies[values[1]] = record
            elif kind in self._handlers:
                self._handlers[kind](values)

    def _end(self, why: str) -> None:
        self.ended = why
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._on_end()
        self.lock.notify_all()


def in_words(text: bytes) -> str:
    """What a record says, up to its zero byte."""
    return text.partition(b"\0")[0].decode(errors="replace")


def _own_name() -> bytes:
    return os.path.basename(sys.argv[0] if sys.argv and sys.argv[0] else "python").encode()[:31]


def _connect(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(PATIENCE_S), 0))
    try:
        made.connect(f"\0{path[1:]}" if path.startswith("@") else path)
    except OSError as error:
        made.close()
        raise NoDevice(f"no daemon at {path}, which {SOCKET_VARIABLE} names ({error.strerror})") from error
    return made


def socket_path(path: str | None) -> str:
    """`path`, or what the environment says. Raises NoDevice."""
    if found := path or os.environ.get(SOCKET_VARIABLE, ""):
        return found
    raise NoDevice(f"{SOCKET_VARIABLE} is not set: this program runs on no host of mrc-testbed")


_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()


@cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_in_the_child)


def _in_the_child() -> None:
    for each in list(_OPEN):
        if not each.ended:
            each.leave_to_the_parent()
