"""Memory of the endpoint core: bytes per QP end, before its first packet and after traffic, and per path.

    .venv/bin/python benchmarks/memory.py [--qps N] [--packets N]

`tracemalloc` around `open_qp` and `connect_qp`, then around traffic that takes the ring of packet states round once and
more. Regions are left out: the requester registers none and the responder's is counted apart. A figure is the mean over
the QPs of one endpoint; the endpoint's own fixed part is not in it.
"""

from __future__ import annotations

import argparse
import tracemalloc

from benchmarks.core import BATCH, PLANES, PORT, T_NS, UPLINKS, drain, feed
from mrc_testbed.hosts.common.events import WriteCompleted
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.endpoint import Endpoint

MESSAGE = 1 << 16
REGION = 1 << 16


def endpoints() -> tuple[Endpoint, Endpoint]:
    """Two endpoints without paths yet."""
    return _endpoint(0), _endpoint(1)


def _endpoint(host: int) -> Endpoint:
    return Endpoint(
        EndpointConfig(host=host, planes=PLANES, udp_port=PORT, rtt_ns=T_NS, port_rate_bps=200_000_000, pace=False)
    )


def grown(before: int) -> int:
    """Bytes allocated since."""
    return tracemalloc.get_traced_memory()[0] - before


def allocated() -> int:
    """Bytes allocated now."""
    return tracemalloc.get_traced_memory()[0]


def add_paths(end: Endpoint, peer: int) -> int:
    """Bytes for the paths of one peer."""
    before = allocated()
    end.add_peer(peer, [(p, u, p << 8 | u) for p in range(PLANES) for u in range(UPLINKS)])
    return grown(before)


def open_qps(a: Endpoint, b: Endpoint, count: int) -> tuple[int, int, list[tuple[int, int]]]:
    """Bytes for `count` connected QPs at requester and responder, and (QPN at a, address at b) of each."""
    before = allocated()
    mine = [a.open_qp(1, 0) for _ in range(count)]
    requester = grown(before)
    before = allocated()
    theirs = [b.open_qp(0, REGION) for _ in range(count)]
    responder = grown(before) - count * REGION
    before = allocated()
    for left, right in zip(mine, theirs, strict=True):
        a.connect_qp(left.qpn, right)
    requester += grown(before)
    before = allocated()
    for left, right in zip(mine, theirs, strict=True):
        b.connect_qp(right.qpn, left)
    responder += grown(before)
    return requester, responder, [(left.qpn, right.region_address) for left, right in zip(mine, theirs, strict=True)]


def traffic(a: Endpoint, b: Endpoint, qps: list[tuple[int, int]], packets: int) -> None:
    """At least `packets` data packets on every QP, then until nothing is left to send."""
    data = bytes(MESSAGE)
    for qpn, address in qps:
        for _ in range(-(-packets * 4096 // MESSAGE)):
            a.post_write(qpn, data, address, 1)
    now = 1_000_000_000
    buffers = [memoryview(bytearray(4400)) for _ in range(BATCH)]
    acks = [memoryview(bytearray(200)) for _ in range(BATCH)]
    pending = len(qps) * -(-packets * 4096 // MESSAGE)
    while pending:
        now += 500_000
        feed(b, 0, drain(a, now, buffers, BATCH), now)
        feed(a, 1, drain(b, now, acks, BATCH), now)
        a.handle_timeout(now)
        b.handle_timeout(now)
        while (event := a.poll_event()) is not None:
            pending -= isinstance(event, WriteCompleted)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--qps", type=int, default=8)
    parser.add_argument("--packets", type=int, default=4096, help="data packets on each QP")
    arguments = parser.parse_args()
    tracemalloc.start()
    a, b = endpoints()
    paths = add_paths(a, 1)
    add_paths(b, 0)
    requester, responder, qps = open_qps(a, b, arguments.qps)
    before = allocated()
    traffic(a, b, qps, arguments.packets)
    # Both ends live in this process, so growth in traffic is for a pair of ends.
    after = grown(before)
    count = arguments.qps
    print(f"path               {paths / (PLANES * UPLINKS):8.0f} bytes, per peer")
    print(f"QP end, requester  {requester / count / 1000:8.1f} kB before its first packet")
    print(f"QP end, responder  {responder / count / 1000:8.1f} kB before its first packet, beside its region")
    print(f"both ends          {after / count / 1000:8.1f} kB more after {arguments.packets} packets")
    print(f"a pair of QP ends  {(requester + responder + after) / count / 1000:8.1f} kB in all")


if __name__ == "__main__":
    main()
