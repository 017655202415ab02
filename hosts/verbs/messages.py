"""The records between a program's verbs library and the daemon of its host (ours; docs/libmrc.md, "Messages").

They go over one Unix socket a program (SOCK_SEQPACKET). A datagram holds one record or more, each of RECORD_BYTES, all
integers little-endian. Every record begins with its kind; what follows is named here, in order, by the codes of
`struct`. A request has a token, which its REPLY brings back.

`hosts/libmrc/messages.h` says the same in C, and a test holds both together.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, Final

VERSION: Final = 1
"""Of these records. HELLO brings it; the daemon answers another one with EPROTO."""
RECORD_BYTES: Final = 128
MOST_POSTS: Final = 16
"""Records in a datagram of a program."""
MOST_NEWS: Final = 32
"""Records in a datagram of the daemon."""
INLINE_BYTES: Final = 256
"""Longest write whose data the library copies when it is posted."""
SOCKET_VARIABLE: Final = "MRC_TESTBED_SOCKET"
"""Names the socket in a program's environment; `@` in front: an abstract one of the host's network namespace."""
DEVICE_VARIABLE: Final = "MRC_TESTBED_DEVICE"
"""Names the device; without it, `DEVICE`."""
DEVICE: Final = "mlx5_0"
GID_INDEX: Final = 3
"""The one entry of the GID table that is not zero: the host's IPv4 address, mapped."""


class RecordKind(IntEnum):
    """What a record is. Those below 64 come from the program."""

    HELLO = 1
    """The first record, alone in its datagram. With it come two descriptors: the program's /proc/self/mem, open for
    reading and writing, and an eventfd of its own (EFD_SEMAPHORE), to which the daemon adds 1 for every ASYNC."""
    REG_MR = 2
    DEREG_MR = 3
    CREATE_QP = 4
    DESTROY_QP = 5
    MODIFY_QP = 6
    POST_SEND = 7
    POST_RECV = 8
    QUERY_PORT = 9
    MODIFY_PORT = 10
    MODIFY_EV = 11
    """Deny an EV to a peer, or allow it again. A `dgid` of zeros: to every peer. ENOENT: there is no such EV."""
    QUERY_EVS = 12
    """The EVs to one peer, as EV_STATE records, a REPLY after the last. A `dgid` of zeros: to every peer."""
    WATCH_EVS = 13
    """Have EV_STATE records sent, or no more."""
    PROBE = 14
    """Send an EV probe; its answer is a PROBED. A REPLY comes only if none can be sent, with its error."""
    REPLY = 64
    SENT = 65
    """The oldest `count` writes of a QP are complete."""
    RECEIVED = 66
    """A write with immediate is whole, and has taken the oldest posted receive of the QP."""
    QP_ERROR = 67
    """A QP is in ERROR: the library flushes what is outstanding. `status`: that of the oldest write."""
    ASYNC = 68
    """An asynchronous event: `event` is an ibv_event_type, `element` a QP number or a port."""
    EV_STATE = 69
    PROBED = 70


class To(IntEnum):
    """The states of MODIFY_QP: values of ibv_qp_state."""

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    ERROR = 6


class Given(IntEnum):
    """Bits of `given` in MODIFY_QP: which of the attributes after it are said; else the endpoint's own hold."""

    TIMEOUT = 1
    RETRY = 2
    MPR = 4
    MPR_DEST = 8
    MAX_WIMM = 16
    MAX_WIMM_DEST = 32
    CAP = 64


class PostFlag(IntEnum):
    """Bits of `flags` in POST_SEND."""

    IMMEDIATE = 1
    INLINE = 2
    """`address` is a copy that the library keeps until the write is complete: `lkey` is not looked at."""


FIELDS: Final[dict[RecordKind, str]] = {
    RecordKind.HELLO: "version:I token:Q pid:I reserved:I name:32s",
    RecordKind.REG_MR: "pd:I token:Q address:Q length:Q access:I",
    RecordKind.DEREG_MR: "key:I token:Q",
    RecordKind.CREATE_QP: "pd:I token:Q max_send_wr:I max_recv_wr:I",
    RecordKind.DESTROY_QP: "qpn:I token:Q",
    RecordKind.MODIFY_QP: "qpn:I token:Q state:I dest_qpn:I rq_psn:I sq_psn:I path_mtu:I given:I dgid:16s "
    "max_wimm:H max_wimm_dest:H timeout:B linear:B exp:B mpr:B mpr_dest:B cap:B",
    RecordKind.POST_SEND: "qpn:I address:Q remote_address:Q length:I lkey:I rkey:I immediate:I flags:I",
    RecordKind.POST_RECV: "qpn:I count:I",
    RecordKind.QUERY_PORT: "port:I token:Q",
    RecordKind.MODIFY_PORT: "port:I token:Q enabled:I",
    RecordKind.MODIFY_EV: "ev:I token:Q dgid:16s denied:I",
    RecordKind.QUERY_EVS: "reserved:I token:Q dgid:16s",
    RecordKind.WATCH_EVS: "on:I token:Q",
    RecordKind.PROBE: "ev:I token:Q dgid:16s",
    RecordKind.REPLY: "error:I token:Q value:I reserved:I text:96s",
    RecordKind.SENT: "qpn:I count:I",
    RecordKind.RECEIVED: "qpn:I immediate:I byte_len:I",
    RecordKind.QP_ERROR: "qpn:I status:I reserved:I text:96s",
    RecordKind.ASYNC: "event:I element:I",
    RecordKind.EV_STATE: "ev:I dgid:16s state:I port:I",
    RecordKind.PROBED: "ev:I token:Q rtt_ns:Q port:I",
}
"""After the kind (I). GIDs are 16 bytes in network order, PSNs and QP numbers 24 bits. Lengths and `path_mtu`: bytes;
`immediate` is the number on the wire (the program's `imm_data` through ntohl). An `ev` is EV[31:16]: plane x 256 +
uplink, as in bits 27:24 and 23:16 of the EV. `port` counts from 1. `state` of an EV: GOOD 1, ASSUMED_BAD 2, DENIED 4.
`value` of a REPLY: the key of REG_MR, the number of CREATE_QP; of QUERY_PORT: 1 up, 0 down by its carrier, 2 disabled
by MODIFY_PORT. `error`: 0 or an errno, `text` then the reason in words, ending with a zero byte."""

HELLO_FIELDS: Final = (
    "error:I token:Q host:I planes:I payload_bytes:I port_mask:I rtt_ns:Q max_qp:I max_qp_wr:I max_cqe:I max_mr:I "
    "max_wimm:H mpr:H reserved:I gid:16s name:16s"
)
"""The REPLY to a HELLO that was taken. With an error it is as any other."""


class RecordForm:
    """How one kind of record is written and read. `struct`: of a whole record, its kind first."""

    def __init__(self, kind: RecordKind, fields: str) -> None:
        named = [field.split(":") for field in fields.split()]
        self.kind = kind
        self.names = tuple(name for name, _ in named)
        self._empty = {name: b"" if code.endswith("s") else 0 for name, code in named}
        codes = "<I" + "".join(code for _, code in named)
        self.struct = struct.Struct(f"{codes}{RECORD_BYTES - struct.calcsize(codes)}x")

    def pack(self, **values: Any) -> bytes:
        """What is not named is 0. Raises KeyError for a name that the record does not have."""
        if unknown := values.keys() - self._empty.keys():
            raise KeyError(f"{self.kind.name} has no {', '.join(sorted(unknown))}")
        return self.struct.pack(self.kind, *{**self._empty, **values}.values())

    def unpack(self, record: bytes | memoryview) -> dict[str, Any]:
        """By name, without the kind. Raises `struct.error` for a record that is too short."""
        return dict(zip(self.names, self.read(record), strict=True))

    def read(self, record: bytes | memoryview) -> tuple[Any, ...]:
        """The values in order, without the kind. Raises as `unpack`."""
        return self.struct.unpack_from(record)[1:]


FORMS: Final[dict[RecordKind, RecordForm]] = {kind: RecordForm(kind, fields) for kind, fields in FIELDS.items()}
HELLO_REPLY: Final = RecordForm(RecordKind.REPLY, HELLO_FIELDS)


def kind_of(record: bytes | memoryview) -> RecordKind:
    """Raises ValueError for one that there is not."""
    return RecordKind(int.from_bytes(record[:4], "little"))
