"""Cost of the endpoint core in CPython: us per data packet, split into sender, receiver and SACK.

    .venv/bin/python benchmarks/core.py [--packets N] [--profile]

Two endpoints in one process, no sockets, no pacing, 4 planes x 8 paths. Packets are handed over in batches, as a daemon
does. "sack" is everything either side does with control packets, spread over the data packets. CPU time of the thread,
so that a busy machine does not matter. The second line has one plane late by a batch, so that nothing is in order.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from time import thread_time_ns

from mrc_testbed.hosts.common.events import WriteCompleted
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.endpoint import Endpoint

PLANES = 4
UPLINKS = 8
PORT = 0xC000
T_NS = 20_000_000
BATCH = 32
PAYLOAD = 4096

Datagram = tuple[int, int, int, memoryview]
"""Size, token (here the flow label), traffic class, bytes."""


class Clocked:
    """Adds up the time spent in each part."""

    def __init__(self) -> None:
        self.sender = self.receiver = self.sack = 0


def make() -> tuple[Endpoint, Endpoint, int, int]:
    """Two connected endpoints; the QP at the first, and the address to write to."""
    ends = []
    for host in (0, 1):
        config = EndpointConfig(
            host=host, planes=PLANES, udp_port=PORT, rtt_ns=T_NS, port_rate_bps=25_000_000 * 8, pace=False
        )
        end = Endpoint(config)
        end.add_peer(1 - host, [(p, u, p << 8 | u) for p in range(PLANES) for u in range(UPLINKS)])
        ends.append(end)
    a, b = ends
    mine, theirs = a.open_qp(1, 4096), b.open_qp(0, 16 << 20)
    a.connect_qp(mine.qpn, theirs)
    b.connect_qp(theirs.qpn, mine)
    return a, b, mine.qpn, theirs.region_address


def drain(end: Endpoint, now: int, buffers: list[memoryview], limit: int) -> list[Datagram]:
    """Up to `limit` datagrams."""
    out = []
    for i in range(limit):
        packet = end.poll_transmit(now, buffers[i])
        if packet is None:
            break
        size, token, traffic_class = packet
        assert isinstance(token, int)
        out.append((size, token, traffic_class, buffers[i][:size]))
    return out


def feed(end: Endpoint, peer: int, packets: list[Datagram], now: int) -> None:
    """Hand datagrams in."""
    for _, token, traffic_class, view in packets:
        end.handle_datagram(view, peer, token, PORT, traffic_class, now, now)


def run(packets: int, spent: Clocked, late: bool) -> int:
    """Move `packets` data packets; returns how many were sent."""
    a, b, qpn, address = make()
    data = bytes(1 << 20)
    now = 1_000_000_000
    outstanding = 0
    banks = [[memoryview(bytearray(4400)) for _ in range(BATCH)] for _ in range(2)]
    held: list[Datagram] = []
    acks = [memoryview(bytearray(200)) for _ in range(BATCH)]
    sent = rounds = 0
    while sent < packets:
        while outstanding < 4:
            a.post_write(qpn, data, address, 1)
            outstanding += 1
        now += 500_000
        t0 = thread_time_ns()
        out = drain(a, now, banks[rounds & 1], BATCH)
        a.next_timeout()
        t1 = thread_time_ns()
        sent += len(out)
        rounds += 1
        if late:
            last_plane = [packet for packet in out if packet[1] >> 8 == PLANES - 1]
            out = [packet for packet in out if packet[1] >> 8 != PLANES - 1] + held
            held = last_plane
        feed(b, 0, out, now)
        t2 = thread_time_ns()
        answers = drain(b, now, acks, BATCH)
        b.next_timeout()
        feed(a, 1, answers, now)
        t3 = thread_time_ns()
        a.handle_timeout(now)
        b.handle_timeout(now)
        spent.sender += t1 - t0
        spent.receiver += t2 - t1
        spent.sack += t3 - t2
        while (event := a.poll_event()) is not None:
            outstanding -= isinstance(event, WriteCompleted)
    assert a.counters()["retransmitted"] == 0
    return sent


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--packets", type=int, default=40_000)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    if arguments.profile:
        spent = Clocked()
        profile = cProfile.Profile()
        profile.runcall(run, arguments.packets, spent, False)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    for late in (False, True):
        figures = min((measure(arguments.packets, late) for _ in range(3)), key=sum)
        parts = "  ".join(f"{name} {us:.2f}" for name, us in zip(("sender", "receiver", "sack"), figures, strict=True))
        print(f"{'one plane late' if late else 'in order':15} {parts}  total {sum(figures):.2f} us per data packet")


def measure(packets: int, late: bool) -> list[float]:
    """us per data packet: sender, receiver, SACK."""
    spent = Clocked()
    sent = run(packets, spent, late)
    return [part / sent / 1000 for part in (spent.sender, spent.receiver, spent.sack)]


if __name__ == "__main__":
    main()
