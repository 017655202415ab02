"""A program to be killed: it writes without end, from memory that has one byte everywhere.

python -m tests.libmrc.killed_program SOCKET PEER_HOST BYTE

It prints its QP number, and the address and the key of what may be written; then it reads the same of its peer.
"""

from __future__ import annotations

import select
import sys

from mrc_testbed.hosts.verbs.messages import To
from tests.libmrc.raw_program import Buffer, RawProgram

SIZE = 1 << 20


def main() -> None:
    path, host, byte = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    def drive(until):
        while not until():
            select.select([program.socket], [], [], 1)

    program = RawProgram(path, drive)
    program.hello()
    source, target = Buffer(SIZE), Buffer(SIZE)
    source.fill(bytes([byte]) * SIZE)
    lkey, rkey, qpn = program.register(source), program.register(target), program.create()
    print(qpn, target.address, rkey, flush=True)  # noqa: T201
    dest, address, key = map(int, input().split())
    program.receive_from(qpn, host, dest)
    program.modify(qpn, To.RTS)
    for _ in range(8):
        program.post(qpn, source, lkey, address, key)
    done = 0
    while True:
        program.wait(lambda done=done: program.sent[qpn] > done)  # type: ignore[misc]
        done += 1
        program.post(qpn, source, lkey, address, key)


if __name__ == "__main__":
    main()
