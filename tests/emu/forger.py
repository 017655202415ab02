"""Sends packets that no endpoint sent, from inside the network namespace that it is started in.

`forger.py one HEX`: one IPv6 packet, as it is. `forger.py ahead PORT SECONDS`: for every data packet that leaves by
this port, packets of the same message that are still to be sent, with other data.
"""

import contextlib
import socket
import struct
import sys
import time

OUTER_BYTES, INNER_BYTES, UDP_BYTES = 40, 40, 8
BTH = 14 + OUTER_BYTES + INNER_BYTES + UDP_BYTES
"""Where the transport's headers begin in a frame with two IPv6 headers."""
WRITE_MIDDLE = 0xC7
PSN, ADDRESS, PAYLOAD = BTH + 9, BTH + 20, BTH + 36
PACKET_BYTES = 4096
AHEAD = range(4, 24, 2)


def ipv6_udp(source: str, destination: str, port: int, payload: bytes) -> bytes:
    """An IPv6 packet to port 4791, without a checksum as endpoints send it."""
    udp = struct.pack("!HHHH", port, 4791, UDP_BYTES + len(payload), 0) + payload
    ends = b"".join(socket.inet_pton(socket.AF_INET6, end) for end in (source, destination))
    return struct.pack("!IHBB", 6 << 28, len(udp), socket.IPPROTO_UDP, 64) + ends + udp


def send_one(packet: bytes) -> None:
    """Let the kernel of this namespace route it."""
    destination = socket.inet_ntop(socket.AF_INET6, packet[24:40])
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW) as sender:
        sender.sendto(packet, (destination, 0))


def send_ahead(port: str, seconds: float) -> None:
    """Follow what leaves by `port`."""
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as tap:
        tap.bind((port, 3))
        tap.settimeout(0.2)
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                frame, (_, _, kind, *_) = tap.recvfrom(10_000)
                if kind == socket.PACKET_OUTGOING and len(frame) > PAYLOAD and frame[BTH] == WRITE_MIDDLE:
                    for steps in AHEAD:
                        tap.send(_later(frame, steps))


def _later(frame: bytes, steps: int) -> bytes:
    """The packet `steps` after this one, and other data in it."""
    later = bytearray(frame)
    later[PSN : PSN + 3] = (int.from_bytes(frame[PSN : PSN + 3], "big") + steps & 0xFFFFFF).to_bytes(3, "big")
    (address,) = struct.unpack_from("!Q", frame, ADDRESS)
    struct.pack_into("!Q", later, ADDRESS, address + steps * PACKET_BYTES)
    later[PAYLOAD : PAYLOAD + 64] = b"\xaa" * 64
    return bytes(later)


if __name__ == "__main__":
    if sys.argv[1] == "one":
        send_one(bytes.fromhex(sys.argv[2]))
    else:
        send_ahead(sys.argv[2], float(sys.argv[3]))
