"""Netlink messages that hand the packets of a host to a process: rules of nf_tables, and the queues of NFQUEUE.

Pure but for `NetfilterSocket`. Written out here because a rule is a dozen attributes, and no tool for it need be
installed: the kernel's own `queue` expression where it has one (CONFIG_NFT_QUEUE), else the NFQUEUE target of iptables
inside nf_tables (CONFIG_NFT_COMPAT), which every Debian kernel has as well.

Source: linux/netfilter/nf_tables.h, nfnetlink_queue.h, xt_NFQUEUE.h.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mrc_testbed.hosts.socket_buffers import enlarge_receive_buffer

QueueBy = Literal["queue", "target"]
"""How a rule queues: by the `queue` expression, or by the target of iptables."""

QUEUE_PACKETS = 65_528
"""What a queue holds before it drops."""
DAEMON_PORT = 4791
"""UDP to here is the daemons', which delay for themselves."""

_NETLINK_NETFILTER = 12
_SOL_NETLINK, _NO_ENOBUFS = 270, 5
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_NFTABLES, _QUEUE = 10, 3
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE, _QUEUE_CONFIG = 0, 3, 6, 2
_IPV6, _LOCAL_IN = 10, 1
_REG_VERDICT, _REG_32 = 0, 8
_META_IIF, _META_L4PROTO = 4, 16
_EQUAL = 0
_TRANSPORT_HEADER = 2
_ACCEPT = 1
_UDP, _ICMPV6 = 17, 58
_ECHO_REQUEST, _ECHO_REPLY = 128, 129
_COPY_META = 1
_GSO = 4
_TABLE, _CHAIN = b"mrc-testbed\0", b"input\0"
_READ_BYTES = 1 << 16


def attribute(kind: int, payload: bytes, nested: bool = False) -> bytes:
    """One netlink attribute, padded to four bytes."""
    head = struct.pack("=HH", 4 + len(payload), kind | (0x8000 if nested else 0))
    return head + payload + bytes(-len(payload) % 4)


def nest(kind: int, *parts: bytes) -> bytes:
    """An attribute made of attributes."""
    return attribute(kind, b"".join(parts), nested=True)


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">I", value))


def _message(kind: int, flags: int, sequence: int, family: int, resource: int, payload: bytes = b"") -> bytes:
    body = struct.pack("=BB", family, 0) + struct.pack(">H", resource) + payload
    return struct.pack("=IHHII", 16 + len(body), kind, flags | _REQUEST, sequence, 0) + body


def _expression(name: bytes, *parts: bytes) -> bytes:
    return nest(1, attribute(1, name + b"\0"), nest(2, *parts))


def _meta_is(key: int, value: bytes) -> tuple[bytes, bytes]:
    return _expression(b"meta", _number(1, _REG_32), _number(2, key)), _is(value)


def _is(value: bytes) -> bytes:
    return _expression(b"cmp", _number(1, _REG_32), _number(2, _EQUAL), nest(3, attribute(1, value)))


def _transport_has(offset: int, value: bytes) -> tuple[bytes, bytes]:
    where = (_number(2, _TRANSPORT_HEADER), _number(3, offset), _number(4, len(value)))
    return _expression(b"payload", _number(1, _REG_32), *where), _is(value)


def _accept() -> bytes:
    return _expression(b"immediate", _number(1, _REG_VERDICT), nest(2, nest(2, _number(1, _ACCEPT))))


def _to_queue(number: int, queue_by: QueueBy) -> bytes:
    if queue_by == "queue":
        return _expression(b"queue", attribute(1, struct.pack(">H", number)), attribute(2, struct.pack(">H", 1)))
    target = struct.pack("=HHI", number, 0, 0)  # struct xt_NFQ_info, as long as the kernel aligns it
    return _expression(b"target", attribute(1, b"NFQUEUE\0"), _number(2, 0), attribute(3, target))


def _rules(ports: Sequence[int], queue_by: QueueBy) -> Iterable[tuple[bytes, ...]]:
    ping = _meta_is(_META_L4PROTO, bytes([_ICMPV6]))
    yield (*_meta_is(_META_L4PROTO, bytes([_UDP])), *_transport_has(2, struct.pack(">H", DAEMON_PORT)), _accept())
    yield (*ping, *_transport_has(0, bytes([_ECHO_REPLY])), _accept())
    for port, ifindex in enumerate(ports):
        arrived = _meta_is(_META_IIF, struct.pack("=I", ifindex))
        yield (*arrived, *ping, *_transport_has(0, bytes([_ECHO_REQUEST])), _to_queue(2 * port + 1, queue_by))
        yield (*arrived, _to_queue(2 * port, queue_by))


def rule_messages(ports: Sequence[int], queue_by: QueueBy) -> bytes:
    """A table whose input chain queues what arrives at these ports (by ifindex) for this host, all but the daemons'
    UDP: port k into queue 2 k. What a host sends to itself arrives at no port.

    Echo requests go into queue 2 k + 1, where they wait for their answers too (c/kernel_delay.c)."""
    new = _NFTABLES << 8
    hook = nest(4, _number(1, _LOCAL_IN), _number(2, 0))
    bodies = [
        (new | _NEW_TABLE, attribute(1, _TABLE)),
        (new | _NEW_CHAIN, attribute(1, _TABLE) + attribute(3, _CHAIN) + hook + attribute(7, b"filter\0")),
    ]
    for rule in _rules(ports, queue_by):
        bodies.append((new | _NEW_RULE, attribute(1, _TABLE) + attribute(2, _CHAIN) + nest(4, *rule)))
    messages = [_message(_BATCH_BEGIN, 0, 0, 0, _NFTABLES)]
    for sequence, (kind, body) in enumerate(bodies, start=1):
        flags = _CREATE | _APPEND | (_ACK if sequence == len(bodies) else 0)
        messages.append(_message(kind, flags, sequence, _IPV6, 0, body))
    messages.append(_message(_BATCH_END, 0, len(messages), 0, _NFTABLES))
    return b"".join(messages)


def queue_message(queue: int) -> bytes:
    """Bind a queue to the socket that sends this: packets stay in the kernel, and a full queue drops.

    A packet of many segments (GSO) is queued whole.
    """
    command = attribute(1, struct.pack(">BxH", 1, 0))
    parameters = attribute(2, struct.pack(">IB", 0, _COPY_META))
    body = command + parameters + _number(3, QUEUE_PACKETS) + _number(4, _GSO) + _number(5, _GSO)
    return _message(_QUEUE << 8 | _QUEUE_CONFIG, _ACK, queue + 1, 0, queue, body)


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """One line of /proc/net/netfilter/nfnetlink_queue: packets that wait, and those dropped because the queue was full,
    or the process read too slowly."""

    waiting: int
    queue_dropped: int
    user_dropped: int


def read_counts(text: str) -> list[QueueCounts]:
    """All queues of a namespace."""
    rows = (line.split() for line in text.splitlines())
    return [QueueCounts(int(row[2]), int(row[5]), int(row[6])) for row in rows]


class NetfilterSocket:
    """A netlink socket of the namespace in which it is made. Raises OSError where the kernel refuses."""

    def __init__(self, receive_bytes: int = 1 << 24) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER)
        self.socket.bind((0, 0))
        enlarge_receive_buffer(self.socket, receive_bytes)
        self.socket.setsockopt(_SOL_NETLINK, _NO_ENOBUFS, 1)  # drops are counted in /proc

    def ask(self, messages: bytes) -> None:
        """Send, and wait for the answer to the last one, or the first refusal."""
        self.socket.send(messages)
        answer = self.socket.recv(_READ_BYTES)
        (code,) = struct.unpack_from("=i", answer, 16)
        if code:
            raise OSError(-code, os.strerror(-code))

    def queue(self, ports: Sequence[int], queue_by: QueueBy) -> None:
        """Serve the queues of these ports from this socket, and put the rules in force."""
        for queue in range(2 * len(ports)):
            self.ask(queue_message(queue))
        self.ask(rule_messages(ports, queue_by))

    def close(self) -> None:
        """What the kernel still queues for this socket is dropped."""
        self.socket.close()


def supported() -> QueueBy:
    """How this kernel's rules queue, tried in the present namespace. Raises OSError where it can in neither way."""
    try:
        return _tried("queue")
    except OSError:
        return _tried("target")


def _tried(queue_by: QueueBy) -> QueueBy:
    probe = NetfilterSocket()
    try:
        probe.queue([1], queue_by)
    finally:
        probe.close()
    return queue_by
