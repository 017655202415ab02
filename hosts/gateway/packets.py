"""What the gateway reads in IP packets, and the answer to one for an address that nobody has. Pure.

A frame is a packet as TUN gives it: `HEADER` bytes about offloads (virtio, struct virtio_net_hdr), then the IP packet.
"""

from __future__ import annotations

from struct import pack

HEADER = 10
"""Length of struct virtio_net_hdr."""
LARGEST_FRAME = HEADER + 65_535
"""The kernel hands over segments of up to 64 KiB, whatever the MTU (TSO)."""
_QUOTED_4 = 8
"""Bytes after the IPv4 header that an ICMP error quotes (RFC 792)."""
_LARGEST_6 = 1280
"""An ICMPv6 error is no longer than the least MTU (RFC 4443, 2.4)."""
_ICMP, _ICMP6 = 1, 58
_ROUTER_4, _ROUTER_6 = bytes([10, 64, 255, 254]), bytes([0xFD, 0, 0, 3, *bytes(8), 255, 255, 255, 254])
"""Who says that an address is unreachable: a host takes nothing from its own address that comes from outside."""


def frame_bytes(frame: memoryview) -> int:
    """How long the frame at the beginning of `frame` is; 0 for what is no IP packet."""
    version = frame[HEADER] >> 4 if len(frame) > HEADER else 0
    if version == 4 and len(frame) >= HEADER + 20:
        return HEADER + (frame[HEADER + 2] << 8 | frame[HEADER + 3])
    if version == 6 and len(frame) >= HEADER + 40:
        return HEADER + 40 + (frame[HEADER + 4] << 8 | frame[HEADER + 5])
    return 0


def destination(frame: memoryview) -> bytes:
    """The address that it goes to, 4 or 16 bytes; none for what is no IP packet."""
    version = frame[HEADER] >> 4 if len(frame) > HEADER else 0
    if version == 4:
        return bytes(frame[HEADER + 16 : HEADER + 20])
    return bytes(frame[HEADER + 24 : HEADER + 40]) if version == 6 else b""


def for_several(address: bytes) -> bool:
    """True of multicast, of the broadcast of all networks and of that of ours, a /16."""
    if len(address) == 4:
        return address[0] >> 4 == 14 or address[2:] == b"\xff\xff"
    return address[:1] == b"\xff"


def mark_congestion(frame: memoryview) -> bool:
    """Set CE where the sender understands it; False where it does not (RFC 3168)."""
    if frame[HEADER] >> 4 == 6:
        if frame[HEADER + 1] >> 4 & 3 in (1, 2):
            frame[HEADER + 1] |= 0x30
            return True
        return False
    bits = frame[HEADER + 1] & 3
    if bits not in (1, 2):
        return False
    frame[HEADER + 1] |= 3
    # The checksum is of 16-bit words; what this one grew by is taken off (RFC 1624).
    total = (frame[HEADER + 10] << 8 | frame[HEADER + 11]) - (3 - bits)
    total += 0xFFFF if total < 0 else 0
    frame[HEADER + 10], frame[HEADER + 11] = total >> 8, total & 0xFF
    return True


def unreachable(frame: memoryview) -> bytes:
    """The frame that answers `frame`: a router says that the address is unreachable.

    Source: RFC 792, type 3 code 1; RFC 4443, type 1 code 3.
    """
    packet = bytes(frame[HEADER : frame_bytes(frame)])
    return bytes(HEADER) + (_unreachable_4(packet) if packet[0] >> 4 == 4 else _unreachable_6(packet))


def _unreachable_4(packet: bytes) -> bytes:
    quoted = packet[: (packet[0] & 15) * 4 + _QUOTED_4]
    message = pack(">BBHI", 3, 1, 0, 0) + quoted
    message = message[:2] + pack(">H", _checksum(message)) + message[4:]
    header = pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(message), 0, 0, 64, _ICMP, 0, _ROUTER_4, packet[12:16])
    return header[:10] + pack(">H", _checksum(header)) + header[12:] + message


def _unreachable_6(packet: bytes) -> bytes:
    message = pack(">BBHI", 1, 3, 0, 0) + packet[: _LARGEST_6 - 48]
    ends = _ROUTER_6 + packet[8:24]
    sealed = _checksum(ends + pack(">II", len(message), _ICMP6) + message)
    return pack(">IHBB", 6 << 28, len(message), _ICMP6, 64) + ends + message[:2] + pack(">H", sealed) + message[4:]


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) & 1)
    total = sum(int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
