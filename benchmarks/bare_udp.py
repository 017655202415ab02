"""The other side of benchmarks/endpoint.py: UDP with nothing on top, 32 datagrams a system call (sendmmsg, recvmmsg).

    python -m benchmarks.bare_udp --fd N send ADDRESS SECONDS
    python -m benchmarks.bare_udp --fd N receive SECONDS

Writes one JSON line with the packets it moved and the CPU it used to descriptor N.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import resource
import socket
import time

PORT = 4791
BATCH = 32
PAYLOAD_BYTES = 4096 + 40
"""A full MRC packet's UDP payload: what the headers cost on the wire is the same for both sides."""
MSG_WAITFORONE = 0x10000
MSG_DONTWAIT = 0x40
_SO_RCVBUFFORCE = 33
UDP_NO_CHECK6_TX = 101
UDP_NO_CHECK6_RX = 102


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.POINTER(_Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    _fields_ = (("header", _Header), ("length", ctypes.c_uint))


_libc = ctypes.CDLL(None, use_errno=True)


def _messages() -> tuple[ctypes.Array[_Message], list[object]]:
    """A batch of messages, each with a buffer of its own; the buffers must stay referenced."""
    buffers = [ctypes.create_string_buffer(PAYLOAD_BYTES) for _ in range(BATCH)]
    vectors = (_Vector * BATCH)(*(_Vector(ctypes.addressof(buffer), PAYLOAD_BYTES) for buffer in buffers))
    messages = (_Message * BATCH)()
    for index, message in enumerate(messages):
        message.header.vectors = ctypes.pointer(vectors[index])
        message.header.vector_count = 1
    return messages, [buffers, vectors]


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    for option in (UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX):
        made.setsockopt(socket.IPPROTO_UDP, option, 1)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
    return made


def _checked(moved: int) -> int:
    if moved >= 0:
        return moved
    if ctypes.get_errno() in (errno.EAGAIN, errno.EINTR, errno.ENOBUFS, errno.ECONNREFUSED):
        return 0
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def send(address: str, seconds: float) -> int:
    """Send as fast as the machine goes."""
    sender = _socket()
    sender.connect((address, PORT))
    messages, _keep = _messages()
    end, moved = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        moved += _checked(_libc.sendmmsg(sender.fileno(), messages, BATCH, 0))
    return moved


def receive(seconds: float) -> int:
    """Take what comes; packets that do not fit the socket are not counted."""
    receiver = _socket()
    receiver.bind(("::", PORT))
    receiver.settimeout(0.1)
    messages, _keep = _messages()
    end, moved = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        moved += _checked(_libc.recvmmsg(receiver.fileno(), messages, BATCH, MSG_WAITFORONE, None))
    return moved


def main() -> None:
    """Move packets, then report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    sending = commands.add_parser("send")
    sending.add_argument("address")
    sending.add_argument("seconds", type=float)
    commands.add_parser("receive").add_argument("seconds", type=float)
    chosen = parser.parse_args()
    moved = send(chosen.address, chosen.seconds) if chosen.command == "send" else receive(chosen.seconds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    report = {"kind": chosen.command, "packets": moved, "user_s": used.ru_utime, "system_s": used.ru_stime}
    os.write(chosen.fd, json.dumps(report).encode() + b"\n")


if __name__ == "__main__":
    main()
