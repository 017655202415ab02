"""Capture files made by hand: MRC packets in the headers the fabric puts around them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from mrc_testbed.hosts.mrc import wire
from mrc_testbed.topos import usid
from mrc_testbed.topos.graph import SwitchPlace
from tests.vectors import VECTORS

OUTER = usid.outer_address(
    usid.Segments(plane=1, way=(SwitchPlace(0, 0), SwitchPlace(1, 2), SwitchPlace(0, 3)), downlink=1)
)
PATH = usid.PathId(plane=1, uplink=2)
THREE_TIERS = usid.outer_address(
    usid.Segments(1, tuple(SwitchPlace(*place) for place in ((0, 0), (1, 1), (2, 3), (1, 5), (0, 7))), downlink=1)
)
"""Six uSIDs: all that an address holds."""
PORT = 0xC005
ETHERNET = bytes.fromhex("0200000000ff 0200000000fe 86dd")
CONTROL_CLASS = 46 << 2
DATA_CLASS = 4 << 2 | 2
TRIMMED_CLASS = 12 << 2 | 2


def packed(address: str) -> bytes:
    from ipaddress import IPv6Address

    return IPv6Address(address).packed


def ipv6(source: str, destination: str, next_header: int, length: int, traffic_class: int, label: int) -> bytes:
    first = 6 << 28 | traffic_class << 20 | label
    return struct.pack(">IHBB", first, length, next_header, 64) + packed(source) + packed(destination)


def udp(payload: bytes, source: int = PORT, destination: int = 4791) -> bytes:
    return struct.pack(">HHHH", source, destination, 8 + len(payload), 0) + payload


def frame(
    payload: bytes,
    traffic_class: int = DATA_CLASS,
    *,
    keep: int | None = None,
    corrected: bool = False,
    outer: str | None = OUTER,
    path: usid.PathId = PATH,
    destination: int = 4791,
) -> bytes:
    """host 0 -> host 5 over `path`. `keep`: a switch has trimmed `payload` to this number of bytes, and `corrected` all
    lengths."""
    segment = udp(payload[:keep] if corrected else payload, destination=destination)
    addresses = usid.plain_address(0), usid.inner_address(5, path)
    inner = ipv6(*addresses, 17, len(segment), DATA_CLASS, path.flow_label)
    there = inner + segment[: len(segment) if keep is None else 8 + keep]
    if outer is not None:
        there = ipv6(addresses[0], outer, 41, len(there), traffic_class, path.flow_label) + there
    return ETHERNET + there


def every_vector() -> list[bytes]:
    """A frame of each packet type, in the class it travels in."""
    classes = {True: CONTROL_CLASS, False: DATA_CLASS}
    return [frame(v.packet, classes[v.packet[0] > wire.LAST_DATA_OPCODE]) for v in VECTORS.values()]


def pcap(path: Path, frames: Iterable[bytes], snap: int = 1 << 18, link_type: int = 1) -> Path:
    """Frames a millisecond apart, from second 100 on."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, link_type))
        for i, whole in enumerate(frames):
            kept = whole[:snap]
            file.write(struct.pack("<IIII", 100 + i // 1000, i % 1000 * 1000, len(kept), len(whole)) + kept)
    return path


def pcapng(path: Path, frames: Iterable[bytes]) -> Path:
    """The same as pcapng, times in nanoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = 12 + len(body)
        return struct.pack("<II", kind, size) + body + struct.pack("<I", size)

    with path.open("wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        resolution = struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0)
        file.write(block(1, struct.pack("<HHI", 1, 0, 0) + resolution))
        for i, whole in enumerate(frames):
            time_ns = 100_000_000_000 + i * 1_000_000
            head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(whole), len(whole))
            file.write(block(6, head + whole))
    return path
