"""Packets in batches: the extension is found for its own source and no other, and the books are those of single packets
whatever the kernel refuses in the middle of a call."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts import batched, batches, compiled, extensions
from mrc_testbed.hosts.batched import SEND_BATCH, STRIDE, BatchSender, Outgoing
from mrc_testbed.hosts.udp import LOST_ERRNOS, UDP_NO_CHECK6_RX, SenderSet, TxSocket
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import extensions as maker

EXTENSION = batches.EXTENSION
MADE = Path(EXTENSION.folder()).is_dir() or bool(os.environ.get("CI"))
needs_it = pytest.mark.skipif(not MADE, reason="make setup has not compiled the extension here")
HERE = "::1"
CLASS = 8


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """As in a process that has not looked for the extension."""
    monkeypatch.delenv(batches.SWITCH, raising=False)
    extensions.found.cache_clear()
    yield monkeypatch
    extensions.found.cache_clear()


@needs_it
def test_the_extension_of_this_source_is_used(fresh: pytest.MonkeyPatch) -> None:
    assert (batches.in_use(), batches.described()) == ("batches", "batches (recvmmsg, sendmmsg)")


def test_a_variable_leaves_it_alone(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv(batches.SWITCH, "python")
    assert (batches.in_use(), batches.described()) == ("single", "single packets (MRC_TESTBED_SOCKETS=python)")
    assert batched.batch_sender(TxSocket(HERE, 0, CLASS)) is None


def test_of_another_source_nothing_is_used(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed = tmp_path / "batches.c"
    changed.write_bytes(Path(EXTENSION.source).read_bytes() + b"// another\n")
    fresh.setattr(batches, "EXTENSION", replace(EXTENSION, sources=str(tmp_path)))
    assert batches.in_use() == "single"
    assert batches.described().startswith("single packets (not compiled here; make setup does it")


@pytest.mark.parametrize("sums", ["", None], ids=["of another system", "torn"])
def test_what_is_damaged_is_not_loaded_and_said(fresh: pytest.MonkeyPatch, tmp_path: Path, sums: str | None) -> None:
    fresh.setattr(compiled, "CACHE", str(tmp_path))
    place = Path(EXTENSION.folder())
    place.mkdir()
    (place / EXTENSION.file).write_bytes(b"no machine code")
    (place / compiled.SUMS).write_text("torn" if sums is None else compiled.sums(str(place)))
    said = f"{place} is damaged; `make setup` makes it again" if sums is None else "it cannot be loaded: "
    assert batches.described().startswith(f"single packets ({said}")


@needs_it
def test_what_is_damaged_is_made_again(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / Path(EXTENSION.folder()).name
    shutil.copytree(EXTENSION.folder(), place)
    os.truncate(place / EXTENSION.file, 100)
    fresh.setattr(compiled, "CACHE", str(tmp_path))
    assert maker.made(EXTENSION) == place
    assert batches.in_use() == "batches"


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ({"shutil.which": lambda _: None}, "clang is missing"),
        (
            {"shutil.which": lambda _: "/bin/clang", "sysconfig.get_paths": lambda: {"include": "/nowhere"}},
            "Python's headers are missing",
        ),
    ],
)
def test_where_it_cannot_be_made_the_reason_is_said(
    fresh: pytest.MonkeyPatch, tmp_path: Path, lacks: dict[str, Any], said: str
) -> None:
    fresh.setattr(compiled, "CACHE", str(tmp_path))
    for name, instead in lacks.items():
        fresh.setattr(f"mrc_testbed.testbed.fabric.extensions.{name}", instead)
    with pytest.raises(MissingCapability, match=f"the extension for packets in batches is not made: {said}"):
        maker.made(EXTENSION)


def test_both_say_how_many_packets_a_call_has() -> None:
    assert f"MOST = {batches.MOST}," in Path(EXTENSION.source).read_text(encoding="utf-8")
    assert SEND_BATCH <= batches.MOST


class Kernel:
    """In place of the extension: refuses some packets, and sends at most `at_once` in a call."""

    def __init__(self, refused: dict[int, int], at_once: int) -> None:
        self.refused, self.at_once = refused, at_once
        self.sent: list[tuple[int, int]] = []

    def send(self, descriptor: int, *arguments: Any) -> int:
        _, _, packets, start, end, _ = arguments
        for number, (size, _, _) in enumerate(packets[start:end]):
            if size in self.refused:
                return number or -self.refused[size]
            if number == self.at_once:
                return number
            self.sent.append((descriptor, size))
        return int(end - start)


ERRNOS = st.sampled_from(sorted(LOST_ERRNOS))


@given(
    count=st.integers(1, SEND_BATCH),
    refused=st.dictionaries(st.integers(0, SEND_BATCH - 1), ERRNOS),
    at_once=st.integers(1, SEND_BATCH),
    ports=st.lists(st.integers(0, 2), min_size=SEND_BATCH, max_size=SEND_BATCH),
    one_socket=st.booleans(),
)
def test_each_packet_is_sent_once_in_order_or_lost_for_its_own_reason(
    count: int, refused: dict[int, int], at_once: int, ports: list[int], one_socket: bool
) -> None:
    kernel = Kernel(refused, at_once)
    where = (HERE, 4791, 0, 0)
    sender: TxSocket | SenderSet = TxSocket(HERE, 0, CLASS) if one_socket else SenderSet({HERE: HERE}, CLASS)
    ways = [where if one_socket else (0, (HERE, 4791, port, 0)) for port in ports]
    packets: list[Outgoing] = [(number, ways[number], CLASS) for number in range(count)]
    BatchSender(kernel, sender).send(packets)
    assert [size for _, size in kernel.sent] == [number for number in range(count) if number not in refused]
    assert sender.lost == Counter(errno.errorcode[code] for number, code in refused.items() if number < count)
    if isinstance(sender, SenderSet):
        own = [sender.source(packet[1]).fileno() for packet in packets if packet[0] not in refused]
        assert [descriptor for descriptor, _ in kernel.sent] == own


def test_what_no_broken_path_explains_is_raised_after_what_was_sent() -> None:
    kernel, sender = Kernel({2: errno.EPERM}, SEND_BATCH), TxSocket(HERE, 0, CLASS)
    packets: list[Outgoing] = [(number, (HERE, 4791, 0, 0), CLASS) for number in range(4)]
    with pytest.raises(PermissionError):
        BatchSender(kernel, sender).send(packets)
    assert [size for _, size in kernel.sent] == [0, 1]
    assert not sender.lost


def receiving() -> socket.socket:
    """A socket of this machine, and it tells flow labels and traffic classes."""
    found = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    found.bind((HERE, 0))
    found.settimeout(5)
    found.setsockopt(socket.IPPROTO_IPV6, 11, 1)
    found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
    found.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
    return found


@needs_it
@given(drawn=st.lists(st.tuples(st.binary(max_size=9000), st.integers(0, 0xFFFFF), st.sampled_from([CLASS, 0, 255]))))
def test_packets_leave_as_they_do_one_by_one(drawn: list[tuple[bytes, int, int]]) -> None:
    drawn = drawn[:SEND_BATCH]
    extension, why_not = batches.found()
    assert extension is not None, why_not
    seen = []
    with receiving() as taker:
        for together in (True, False):
            sender = TxSocket(HERE, 0, CLASS)
            sends = BatchSender(extension, sender)
            packets: list[Outgoing] = []
            for (payload, label, traffic_class), room in zip(drawn, sends.room, strict=False):
                room[: len(payload)] = payload
                packets.append((len(payload), (HERE, taker.getsockname()[1], label, 0), traffic_class))
            if together:
                sends.send(packets)
            else:
                for room, (size, where, traffic_class) in zip(sends.room, packets, strict=False):
                    sender.send(room[:size], where, traffic_class)
            seen.append([taker.recvmsg(9300, 64)[:2] for _ in packets])
            assert not sender.lost
    assert seen[0] == seen[1]
    assert [payload for payload, _ in seen[0]] == [payload for payload, _, _ in drawn]


BAD_CALLS = [
    "send(0, room, 12288, [], 0, 1, 8)",
    "send(0, room, 12288, [(1, WHERE, 8)], 0, 2, 8)",
    "send(0, room, 12288, [(1, WHERE, 8)], -1, 1, 8)",
    "send(0, room, 12288, [(12289, WHERE, 8)], 0, 1, 8)",
    "send(0, room, 12288, [(-1, WHERE, 8)], 0, 1, 8)",
    "send(0, room, 12288, [(1, WHERE, 8)] * 3, 0, 3, 8)",
    "send(0, room, 12288, [(1, WHERE, 8)] * 99, 0, 99, 8)",
    "send(0, room, 12288, [(1, ('fd00::x', 1, 0, 0), 8)], 0, 1, 8)",
    "send(0, room, 12288, [(1, 5, 8)], 0, 1, 8)",
    "send(0, room, 12288, [None], 0, 1, 8)",
    "receive(0, [bytearray(9)] * 33, {}, 16)",
    "receive(0, [bytearray(9), b'cannot be written'], {}, 16)",
    "receive(0, [bytearray(9)], {}, 19)",
    "receive(0, (), {}, 16)",
]


@needs_it
def test_a_wrong_call_is_an_error_and_ends_nothing() -> None:
    lines = [f"try: made.{call}; print('no error:', {call!r})\nexcept Exception: pass" for call in BAD_CALLS]
    text = "\n".join(
        (
            "from mrc_testbed.hosts import batches",
            f"made, room, WHERE = batches.found()[0], bytearray(2 * {STRIDE}), ('::1', 1, 0, 0)",
            *lines,
            "print('done')",
        )
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
