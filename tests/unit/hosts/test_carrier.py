"""Link messages of the kernel, read without a kernel."""

import struct

import pytest

from mrc_testbed.hosts import carrier

LOWER_UP = 1 << 16


def message(name, flags, kind=16):
    """One link message as the kernel writes it."""
    text = name.encode() + b"\0"
    other = struct.pack("=HHI", 8, 4, 1500)
    named = struct.pack("=HH", 4 + len(text), 3) + text + bytes(-len(text) & 3)
    body = struct.pack("=BxHiII", 0, 1, 7, flags, 0) + other + named
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def test_ports_are_told_by_name_and_carrier():
    data = message("port0", 1) + message("lo", LOWER_UP) + message("port2", LOWER_UP | 1) + message("port3", 1, kind=17)
    assert list(carrier._ports(data, 4)) == [(0, False), (2, True), (3, False)]


def test_other_names_and_planes_are_not_ours():
    names = ("port4", "port", "portx", "eth0", "port-1", "port\u0661")
    assert list(carrier._ports(b"".join(message(name, LOWER_UP) for name in names), 4)) == []


@pytest.mark.parametrize("cut", [0, 3, 15])
def test_a_torn_message_is_the_end(cut):
    assert list(carrier._ports(message("port1", 1) + message("port2", 1)[:cut], 4)) == [(1, False)]


def test_the_end_of_a_dump_is_no_link():
    assert list(carrier._ports(struct.pack("=IHHII", 20, 3, 0, 0, 0) + bytes(4), 4)) == []


def test_this_machine_has_no_such_ports():
    watch = carrier.Carrier(64)
    assert watch.changes() == []
    watch.close()
    assert watch.fileno() == -1
