"""The sockets of a host with the packets of a turn in one call of the kernel each way (hosts/batches.py).

What they count and what they raise is what `RxSocket` and `TxSocket` do: a call that the kernel ends early is followed
by one for the rest, so that each packet is either sent or lost for a reason of its own, in order.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from mmap import mmap
from socket import AF_INET6, inet_ntop, inet_pton
from typing import Any

from mrc_testbed.hosts import batches
from mrc_testbed.hosts.udp import (
    LOST_ERRNOS,
    MAX_DATAGRAM_BYTES,
    MOST_STRANGERS,
    Datagram,
    RxSocket,
    SenderSet,
    Source,
    TxSocket,
)

FEWEST_BUFFERS = 4
"""Buffers of a socket at first. They double each time that all were full, up to the most of a call."""
SEND_BATCH = 16
"""Packets of one call to send. What the kernel does for those before it, a packet waits."""
STRIDE = 12 << 10
"""Bytes from one outgoing packet to the next: MAX_DATAGRAM_BYTES as whole pages."""

Outgoing = tuple[int, Any, int]
"""A packet to send: its size, where to, its traffic class."""


class BatchReceiver(RxSocket):
    """Reads what is there, as far as there are buffers, and gives it packet by packet."""

    def __init__(self, extension: Any, hosts: Mapping[Source, int], delay_ns: int, stamped: bool) -> None:
        """As `RxSocket`."""
        super().__init__(hosts, delay_ns, stamped)
        self._read = extension.receive
        self._key_bytes = 18 if self._told_apart_by.stop == 2 else 16
        self._peers = {
            inet_pton(AF_INET6, source[0]) + b"".join(port.to_bytes(2, "big") for port in source[1:]): host
            for source, host in self._hosts.items()
        }
        self._slots = [memoryview(bytearray(MAX_DATAGRAM_BYTES)) for _ in range(FEWEST_BUFFERS)]
        self._batch: list[Any] = []
        self._next = 0
        self._emptied = False
        """The last call found fewer packets than it had buffers for."""

    def swap(self, buffer: memoryview) -> memoryview:
        """As `RxSocket.swap`, of the buffer that the last packet lies in."""
        at = self._next - 1
        before, self._slots[at] = self._slots[at], buffer
        return before

    def receive(self, now_ns: int) -> Datagram | None:
        """As `RxSocket.receive`."""
        for _ in range(MOST_STRANGERS):
            if self._next == len(self._batch) and not self._refill():
                self.unread = False
                return None
            view, host, flow_label, port, traffic_class, stamp_ns = self._batch[self._next]
            self._next += 1
            if isinstance(host, bytes):
                self._refuse(inet_ntop(AF_INET6, host))
                continue
            arrival_ns = self._clock.due_ns(stamp_ns, now_ns) if stamp_ns else now_ns
            return view, host, flow_label, port, traffic_class, arrival_ns
        self.unread = True
        return None

    def _refill(self) -> bool:
        """Read again, but for once after the socket was seen empty. Returns whether there is a packet."""
        if self._emptied:
            self._emptied = False
            return False
        slots, full = self._slots, len(self._batch) == len(self._slots)
        if full and len(slots) < batches.MOST:
            slots += [memoryview(bytearray(MAX_DATAGRAM_BYTES)) for _ in range(len(slots))]
        self._next = 0
        self._batch = self._read(self._socket.fileno(), slots, self._peers, self._key_bytes)
        self._emptied = 0 < len(self._batch) < len(slots)
        return len(self._batch) > 0


class BatchSender:
    """Sends packets that lie in `room`, one after the other."""

    def __init__(self, extension: Any, sender: TxSocket | SenderSet) -> None:
        self._send = extension.send
        self._sender = sender
        self._memory = mmap(-1, SEND_BATCH * STRIDE)
        self.room = [memoryview(self._memory)[at * STRIDE : (at + 1) * STRIDE] for at in range(SEND_BATCH)]
        """Where the packets of a call are made."""

    def send(self, packets: list[Outgoing]) -> None:
        """Send each, or lose and count it, as `TxSocket.send` does, from the source that its destination names."""
        sender, at = self._sender, 0
        if isinstance(sender, TxSocket):
            self._send_from(sender, packets, 0, len(packets))
            return
        while at < len(packets):
            source, end = sender.source(packets[at][1]), at + 1
            while end < len(packets) and sender.source(packets[end][1]) is source:
                end += 1
            self._send_from(source, packets, at, end)
            at = end

    def _send_from(self, source: TxSocket, packets: list[Outgoing], at: int, end: int) -> None:
        while at < end:
            sent: int = self._send(source.fileno(), self._memory, STRIDE, packets, at, end, source.default_class)
            if sent < 0:
                if -sent not in LOST_ERRNOS:
                    raise OSError(-sent, os.strerror(-sent))
                source.lost[errno.errorcode[-sent]] += 1
                sent = 1
            at += sent


def receiver(hosts: Mapping[Source, int], delay_ns: int, stamped: bool) -> RxSocket:
    """The socket that all packets come in by, in batches where the extension is."""
    extension, _ = batches.found()
    if extension is None:
        return RxSocket(hosts, delay_ns, stamped)
    return BatchReceiver(extension, hosts, delay_ns, stamped)


def batch_sender(sender: Any) -> BatchSender | None:
    """None without the extension, and where nothing goes out of a socket."""
    if not isinstance(sender, TxSocket | SenderSet):
        return None
    extension, _ = batches.found()
    return None if extension is None else BatchSender(extension, sender)
