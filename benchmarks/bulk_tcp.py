"""One end of a TCP flow that sends as fast as it may, for benchmarks/kernel_delay.py and its test.

    python -m benchmarks.bulk_tcp --fd N send ADDRESS SECONDS CONGESTION_CONTROL
    python -m benchmarks.bulk_tcp --fd N receive SECONDS

Each writes one JSON line to descriptor N: the sender its smoothed RTT, the receiver the bytes of the second half of the
time and how long that was.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import time

PORT = 5001
SEGMENT_BYTES = 4096
"""As TCP of the testbed: a full packet is as long as one of MRC, and a port's queue holds as many."""
PAYLOAD_BYTES = SEGMENT_BYTES - 12
"""Without the option for time stamps."""
_CHUNK_BYTES = 1 << 16
_RTT_AT = 68
"""Of tcpi_rtt, microseconds, in struct tcp_info."""


def send(address: str, seconds: float, congestion_control: str) -> dict[str, float]:
    """Connect, send for so long."""
    chunk = bytes(_CHUNK_BYTES)
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as flow:
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        _connect(flow, address)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            flow.sendall(chunk)
        info = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
    return {"rtt_us": struct.unpack_from("=I", info, _RTT_AT)[0]}


def _connect(flow: socket.socket, address: str) -> None:
    give_up = time.monotonic() + 5
    while True:  # the receiver may still be starting
        try:
            return flow.connect((address, PORT))
        except ConnectionRefusedError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


def receive(seconds: float) -> dict[str, float]:
    """Accept one flow; count after half of the time, when it has found its rate."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
        listener.bind(("::", PORT))
        listener.listen()
        flow, _ = listener.accept()
    into = bytearray(1 << 20)
    with flow:
        begin = time.monotonic()
        taken = 0
        since = last = begin
        while count := flow.recv_into(into):
            last = time.monotonic()
            if last - begin < seconds / 2:
                since = last
            else:
                taken += count
    return {"bytes": taken, "seconds": last - since}


def main() -> None:
    """One end, as it is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("what", choices=("send", "receive"))
    parser.add_argument("rest", nargs="+")
    asked = parser.parse_args()
    rest = asked.rest
    figures = send(rest[0], float(rest[1]), rest[2]) if asked.what == "send" else receive(float(rest[0]))
    os.write(asked.fd, json.dumps(figures).encode() + b"\n")


if __name__ == "__main__":
    main()
