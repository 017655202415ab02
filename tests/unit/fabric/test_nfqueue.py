"""Netlink messages of the kernel delay, read back as the kernel reads them."""

from __future__ import annotations

import platform
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.testbed.fabric import delay_program
from mrc_testbed.testbed.fabric.nfqueue import (
    QUEUE_PACKETS,
    QueueBy,
    QueueCounts,
    queue_message,
    read_counts,
    rule_messages,
)

ATTRIBUTES = 20
"""After the headers of netlink and nfnetlink."""


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Kind, flags, the rest."""
    while data:
        length, kind, flags = struct.unpack_from("=IHH", data)
        yield kind, flags, data[16:length]
        data = data[length:]


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


def expressions(rule: bytes) -> list[str]:
    listed = dict(attributes(rule[4:]))[4]
    return [dict(attributes(each))[1].rstrip(b"\0").decode() for _, each in attributes(listed)]


@pytest.mark.parametrize("queue_by", ["queue", "target"])
def test_each_port_has_a_rule_for_echo_requests_and_one_for_the_rest(queue_by: QueueBy) -> None:
    kinds = [kind & 0xFF for kind, _, _ in messages(rule_messages([1000, 1003], queue_by))]
    assert kinds == [0x10, 0, 3, *[6] * 6, 0x11]
    daemons, answers, *ports = [body for kind, _, body in messages(rule_messages([1000, 1003], queue_by))][3:-1]
    met = ["meta", "cmp", "payload", "cmp", "immediate"]
    assert expressions(daemons) == ["meta", "cmp", "payload", "cmp", "immediate"]
    assert expressions(answers) == met
    assert expressions(ports[0]) == ["meta", "cmp", "meta", "cmp", "payload", "cmp", queue_by]
    assert expressions(ports[1]) == ["meta", "cmp", queue_by]
    assert struct.pack(">H", 4791) in daemons
    assert [struct.pack("=I", 1003) in rule for rule in ports] == [False, False, True, True]


def test_only_the_last_message_is_answered() -> None:
    """So that one answer says whether all of it holds."""
    flags = [flags & 4 for _, flags, _ in messages(rule_messages([1000], "queue"))]
    assert flags == [0, 0, 0, 0, 0, 0, 4, 0]


def test_a_queue_drops_when_it_is_full_and_gets_no_payload() -> None:
    ((kind, _, body),) = messages(queue_message(5))
    assert kind == 3 << 8 | 2
    assert struct.unpack_from(">H", body, 2) == (5,)
    told = dict(attributes(body[4:]))
    assert told[2] == b"\0\0\0\0\1"  # a range of 0, the meta data alone
    assert struct.unpack(">I", told[3]) == (QUEUE_PACKETS,)
    fail_open = 1
    assert struct.unpack(">I", told[5])[0] & fail_open == 0


def test_drops_are_read_as_the_kernel_prints_them() -> None:
    text = "    0  12576    17 1     0     3     4      912  1\n    1  12576     0 1     0     0     0        0  1\n"
    assert read_counts(text) == [QueueCounts(17, 3, 4), QueueCounts(0, 0, 0)]


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang: make setup")
def test_the_process_compiles_without_a_warning(tmp_path: Path) -> None:
    include = f"-I/usr/include/{platform.machine()}-linux-gnu"
    command = ["clang", *delay_program.RECIPE.flags, "-Wall", "-Wextra", "-Werror", include]
    told = subprocess.run(
        [*command, str(delay_program.SOURCE), "-o", str(tmp_path / "o")], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
