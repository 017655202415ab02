"""Packets of strangers do not keep an endpoint from its timers."""

from __future__ import annotations

from typing import Any

import pytest

from mrc_testbed.hosts.udp import MOST_STRANGERS, RxSocket


class Flood:
    """A socket with nothing but packets of somebody unknown."""

    read = 0

    def recvmsg_into(self, *_):
        self.read += 1
        return 16, [], 0, ("fd00::bad", 1, 0, 0)

    def fileno(self):
        return -1


def flooded():
    rx: Any = RxSocket.__new__(RxSocket)
    rx._socket, rx._buffers, rx._ancillary_bytes = Flood(), [memoryview(bytearray(9216))], 64
    rx._hosts, rx._addresses, rx._told_apart_by = {}, frozenset(), slice(2)
    rx.unknown_sources = rx.unknown_ports = 0
    return rx


@pytest.mark.python_core
def test_one_look_at_the_socket_ends():
    rx = flooded()
    assert rx.receive(0) is None
    assert rx.unknown_sources == MOST_STRANGERS
    assert rx.unread, "the socket is not empty"
