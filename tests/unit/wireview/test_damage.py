"""Damaged captures: what is before the damage is shown; the damage is told with its place; memory is bounded."""

from __future__ import annotations

import gzip
import json
import os
import struct
import tracemalloc
from pathlib import Path

import pytest

from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.record import Record
from tests.captures import every_vector, pcap, pcapng
from tests.unit.calls import Call

FRAMES = every_vector()[:3]


def pcapng_blocks(path: Path) -> list[int]:
    """Where each block begins."""
    content, at, found = path.read_bytes(), 0, []
    while at < len(content):
        found.append(at)
        at += struct.unpack_from("<I", content, at + 4)[0]
    return found


def patched(path: Path, at: int, value: bytes) -> Path:
    content = bytearray(path.read_bytes())
    content[at : at + len(value)] = value
    path.write_bytes(content)
    return path


def read(path: Path) -> tuple[list[Record], str]:
    capture = CaptureReader(path)
    return list(capture), capture.damage


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """Three packets: a section, an interface, and blocks 3, 4 and 5."""
    return pcapng(tmp_path / "c.pcapng", FRAMES)


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


@pytest.mark.parametrize(
    ("offset", "value", "says"),
    [
        (4, u32(0xFFFFFFFC), "it says that it is 4294967292 bytes long, and 16777216 are the most"),
        (4, u32(0), "it says that it is 0 bytes long, which no block is"),
        (4, u32(13), "it says that it is 13 bytes long, which no block is"),
        (4, u32(16), "its 16 bytes do not end with its length"),
        (8, u32(7), "its packet is of interface 7, and the section has 1"),
        (20, u32(0x7FFFFFFF), "its packet says that it is 2147483647 bytes long, and "),
        (0, b"\x0a\x0d\x0d\x0a", "a section has no byte order"),
    ],
)
def test_a_damaged_block_is_told_with_its_place(
    call: Call, captured: Path, offset: int, value: bytes, says: str
) -> None:
    at = pcapng_blocks(captured)[4]
    patched(captured, at + offset, value)
    packets, damage = read(captured)
    assert len(packets) == 2
    assert damage.startswith(f"byte {at}, block 5: {says}")
    ended = call("decode", str(captured))
    assert ended.status == 3
    assert ended.out.splitlines()[-1] == f"the file is damaged: {damage}"
    assert "2 packets in " in ended.out
    machine = call("decode", "--json", str(captured))
    assert machine.status == 3
    assert json.loads(machine.out.splitlines()[-1])["summary"]["damage"] == damage


@pytest.mark.parametrize("left", [2, 6, 30, 70])
def test_a_cut_block_is_told_with_its_place(captured: Path, left: int) -> None:
    at = pcapng_blocks(captured)[4]
    os.truncate(captured, at + left)
    packets, damage = read(captured)
    assert (len(packets), damage) == (2, f"byte {at}, block 5: the file ends after {left} bytes of it")


def test_a_whole_file_is_not_damaged(call: Call, tmp_path: Path) -> None:
    for write in (pcap, pcapng):
        path = write(tmp_path / "whole", FRAMES)
        assert read(path)[1] == ""
        assert call("decode", str(path)).status == 0


def test_a_damaged_packet_of_pcap_is_told_with_its_place(tmp_path: Path) -> None:
    path = pcap(tmp_path / "c.pcap", FRAMES)
    at = 24 + 16 + len(FRAMES[0])
    patched(path, at + 8, u32(0xFFFFFFFF))
    packets, damage = read(path)
    assert len(packets) == 1
    assert damage == f"byte {at}, packet 2: it says that it is 4294967295 bytes long, and 262144 are the most"
    os.truncate(path, at + 7)
    assert read(path)[1] == f"byte {at}, packet 2: the file ends within the packet's header"


def test_a_damaged_archive_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "c.pcapng.gz"
    path.write_bytes(gzip.compress(pcapng(tmp_path / "whole", FRAMES).read_bytes())[:-20])
    packets, damage = read(path)
    assert len(packets) <= 3
    assert damage.startswith("byte ")


def test_memory_is_bounded_whatever_a_length_says(tmp_path: Path) -> None:
    """The file is as long as its lengths say, and takes no room on the disk."""
    whole = pcapng(tmp_path / "c.pcapng", FRAMES)
    at = pcapng_blocks(whole)[4]
    patched(whole, at + 4, u32(0xFFFFFFFC))
    old = patched(pcap(tmp_path / "c.pcap", FRAMES), 24 + 8, u32(0xFFFFFFFC))
    tracemalloc.start()
    try:
        for path in (whole, old):
            os.truncate(path, 5 << 30)
            assert read(path)[1]
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_section_in_the_other_byte_order_is_read(tmp_path: Path) -> None:
    def block(kind: int, body: bytes) -> bytes:
        return struct.pack(">II", kind, 12 + len(body)) + body + struct.pack(">I", 12 + len(body))

    path = pcapng(tmp_path / "c.pcapng", FRAMES)
    frame = FRAMES[0][: len(FRAMES[0]) & ~3]
    with path.open("ab") as file:
        file.write(block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1)))
        file.write(block(0xBAD, b"what nobody knows is passed over"))
        file.write(block(1, struct.pack(">HHI", 1, 0, 0)))
        file.write(block(6, struct.pack(">IIIII", 0, 0, 5, len(frame), len(frame)) + frame))
        file.write(block(3, struct.pack(">I", len(frame)) + frame))
    packets, damage = read(path)
    assert damage == ""
    assert [(packet.time_ns, packet.frame) for packet in packets[3:]] == [(5000, frame), (0, frame)]
