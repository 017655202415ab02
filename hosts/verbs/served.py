"""A program as its daemon serves it: the greeting, then requests and posts, one datagram after the other."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from typing import Any, Final

from mrc_testbed.hosts.verbs import facts
from mrc_testbed.hosts.verbs.connection import ProgramConnection
from mrc_testbed.hosts.verbs.controls import Controls
from mrc_testbed.hosts.verbs.memory import ProgramMemory
from mrc_testbed.hosts.verbs.messages import FORMS, HELLO_REPLY, RECORD_BYTES, VERSION, RecordKind, kind_of
from mrc_testbed.hosts.verbs.outcomes import outcome_of
from mrc_testbed.hosts.verbs.program import NicProgram, ProgramHost
from mrc_testbed.hosts.verbs.qps import ProgramQp
from mrc_testbed.hosts.verbs.refusal import Malformed, RequestRefused

_POST = FORMS[RecordKind.POST_SEND].struct
_POST_SEND: Final = int(RecordKind.POST_SEND)
_RECEIVED, _SENT = FORMS[RecordKind.RECEIVED].struct, FORMS[RecordKind.SENT].struct
_OWN = frozenset(
    {RecordKind.REG_MR, RecordKind.DEREG_MR, RecordKind.CREATE_QP, RecordKind.DESTROY_QP, RecordKind.MODIFY_QP}
)


class Served:
    """One connection and the NIC behind it. `program` is there after the greeting."""

    def __init__(self, host: ProgramHost, controls: Controls, connection: ProgramConnection) -> None:
        self._host = host
        self._controls = controls
        self.connection = connection
        self.program: NicProgram | None = None
        self._async_fd = -1
        self._changed: dict[int, ProgramQp] = {}
        """QPs with writes that are complete and that the program has not heard of."""
        self._untold_events = 0
        self.posts = 0
        self.completed = 0

    @property
    def placed(self) -> int:
        """Bytes that peers have written."""
        return 0 if self.program is None else self.program.memory.placed

    def take_datagram(self, now_ns: int) -> bool:
        """Read one, and do what it says; False if there is none. Raises OSError at the end of the program, and
        Malformed."""
        if self.program is None:
            return self._greet()
        size = self.connection.receive()
        view = self.connection.view
        for at in range(0, size, RECORD_BYTES):
            fields = _POST.unpack_from(view, at)
            if fields[0] == _POST_SEND:
                self.posts += 1
                self.program.post_send(fields)
            else:
                self._take(self.program, view[at : at + RECORD_BYTES], now_ns)
        return size > 0

    def _take(self, program: NicProgram, record: memoryview, now_ns: int) -> None:
        try:
            kind = kind_of(record)
        except ValueError as error:
            raise Malformed(str(error)) from None
        if kind is RecordKind.POST_RECV:
            program.post_receive(record)
        else:
            self._answer(program, kind, record, now_ns)

    def _answer(self, program: NicProgram, kind: RecordKind, record: memoryview, now_ns: int) -> None:
        token = _token(kind, record)
        try:
            if kind in _OWN:
                value: int | None = program.serve(kind, record, now_ns)
            else:
                value = self._controls.serve(self, kind, record, now_ns)
        except RequestRefused as refused:
            self.connection.reply(token, 0, refused.number, str(refused))
            return
        if value is not None:
            self.connection.reply(token, value)

    def _greet(self) -> bool:
        first = self.connection.first()
        if first is None:
            return False
        record, descriptors = first
        try:
            self._take_hello(record, descriptors)
        except (Malformed, OSError):
            for each in descriptors:
                os.close(each)
            raise
        return True

    def _take_hello(self, record: memoryview, descriptors: list[int]) -> None:
        if int.from_bytes(record[:4], "little") != RecordKind.HELLO or len(descriptors) != 2:
            raise Malformed("the first record is no HELLO with two descriptors")
        hello = FORMS[RecordKind.HELLO].unpack(record)
        if hello["version"] != VERSION:
            words = f"the daemon speaks version {VERSION} of the records, the library {hello['version']}"
            self.connection.reply(hello["token"], 0, errno.EPROTO, words)
            self.connection.flush()
            raise Malformed(words)
        memory, async_fd = descriptors
        if not os.readlink(f"/proc/self/fd/{memory}").endswith("/mem"):
            raise Malformed("the first descriptor of a HELLO is no /proc/self/mem")
        if not os.readlink(f"/proc/self/fd/{async_fd}").endswith("[eventfd]"):
            raise Malformed("the second descriptor of a HELLO is no eventfd")
        os.set_blocking(async_fd, False)
        self._async_fd = async_fd
        name = bytes(hello["name"]).split(b"\0")[0].decode("ascii", "replace") or "program"
        self.program = NicProgram(self._host, f"{name}[{hello['pid']}]", ProgramMemory(memory))
        self.connection.send(_hello_reply(self._host, hello["token"]))

    # Events

    def written(self, qp: ProgramQp) -> None:
        """The oldest write of a QP is complete."""
        qp.outstanding -= 1
        qp.sent += 1
        self.completed += 1
        self._changed[qp.qpn] = qp

    def received(self, qp: ProgramQp, immediate: int, length: int) -> None:
        """A write with immediate has taken a receive."""
        qp.receives -= 1
        self.connection.send(_RECEIVED.pack(RecordKind.RECEIVED, qp.qpn, immediate, length))

    def failed(self, qp: ProgramQp, reason: str) -> None:
        """A QP is in ERROR."""
        self._tell_sent()
        outcome = outcome_of(reason, qp.outstanding)
        text = reason.encode()[:95]
        self.connection.send(FORMS[RecordKind.QP_ERROR].pack(qpn=qp.qpn, status=outcome.status, text=text))
        if outcome.event:
            self.tell_event(outcome.event, qp.qpn)

    def tell_event(self, event: int, element: int) -> None:
        """An asynchronous event, for which the program may sleep in its eventfd."""
        self.connection.tell(FORMS[RecordKind.ASYNC].pack(event=event, element=element))
        self._untold_events += 1

    def flush(self) -> None:
        """Tell what is new, as far as the program takes it. Raises as `ProgramConnection.flush`."""
        self.connection.flush()
        if self._changed and not self.connection.full:
            self._tell_sent()
            self.connection.flush()
        if self._untold_events and not self.connection.full:
            self._wake()

    def _wake(self) -> None:
        """The records are there: now count them in the program's eventfd (eventfd(2))."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._async_fd, struct.pack("<Q", self._untold_events))
        self._untold_events = 0

    def _tell_sent(self) -> None:
        for qpn, qp in self._changed.items():
            self.connection.send(_SENT.pack(RecordKind.SENT, qpn, qp.sent))
            qp.sent = 0
        self._changed.clear()

    def end(self, now_ns: int) -> None:
        """The program has gone, or its connection is ended."""
        self.connection.close()
        if self._async_fd >= 0:
            os.close(self._async_fd)
            self._async_fd = -1
        if self.program is not None:
            self.program.end(now_ns)


def _token(kind: RecordKind, record: memoryview) -> int:
    form = FORMS[kind]
    if kind >= RecordKind.REPLY or "token" not in form.names:
        raise Malformed(f"{kind.name} from a program")
    return int(form.read(record)[form.names.index("token")])


def _hello_reply(host: ProgramHost, token: int) -> bytes:
    told: Any = host.facts
    return HELLO_REPLY.pack(
        token=token,
        host=told.number,
        planes=told.planes,
        payload_bytes=told.payload_bytes,
        port_mask=host.port_mask(),
        rtt_ns=told.rtt_ns,
        max_qp=facts.MOST_QPS,
        max_qp_wr=facts.MOST_WORK,
        max_cqe=facts.MOST_COMPLETIONS,
        max_mr=facts.MOST_REGIONS,
        max_wimm=told.max_wimm,
        mpr=told.mpr,
        gid=told.gid,
        name=told.name.encode()[:16],
    )
