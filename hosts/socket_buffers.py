"""Socket buffers as large as asked for, or as large as the kernel lets this process have them.

Root of the machine may ask for any size; others get net.core.rmem_max and net.core.wmem_max at most. Source: socket(7).
"""

from __future__ import annotations

import socket

SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33


def enlarge_receive_buffer(which: socket.socket, wanted_bytes: int) -> None:
    """Let `wanted_bytes` bytes wait to be read."""
    _enlarge(which, SO_RCVBUFFORCE, socket.SO_RCVBUF, wanted_bytes)


def enlarge_send_buffer(which: socket.socket, wanted_bytes: int) -> None:
    """Let `wanted_bytes` bytes wait to be sent."""
    _enlarge(which, SO_SNDBUFFORCE, socket.SO_SNDBUF, wanted_bytes)


def _enlarge(which: socket.socket, forced: int, usual: int, wanted_bytes: int) -> None:
    try:
        which.setsockopt(socket.SOL_SOCKET, forced, wanted_bytes)
    except PermissionError:
        which.setsockopt(socket.SOL_SOCKET, usual, wanted_bytes)
