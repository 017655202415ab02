"""What the ports of the virtual network cost in C, beside the same ports as they are: CPU time a packet and link.

    .venv/bin/python -m benchmarks.native [--hosts N ...] [--packets N]

A prototype of one part (benchmarks/native.c): ports, queues, marks, trims, counts and the heap of what is due. clang
builds it in a temporary folder. Every host sends bursts over four links, hosts of a pair to the same one, so that
queues grow, mark and trim. Both sides take a call of Python for each packet sent, and hand a tuple over for each
that arrives; times, order, marks and counts of all ports must be the same. Sides alternate.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import sysconfig
import tempfile
from math import gcd
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from types import ModuleType
from typing import NamedTuple

from mrc_testbed.hosts import compiled
from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_counts import CHANGED, COUNTS, CUT
from mrc_testbed.testbed.switching.thresholds import PortLevels
from mrc_testbed.testbed.virtual.packet import DATA_ROW, ENCAPSULATED_BYTES, Headers, VirtualPacket, VirtualWay
from mrc_testbed.testbed.virtual.port import Port, QueueLimits
from mrc_testbed.testbed.virtual.port_row import BYTES_AT
from mrc_testbed.testbed.virtual.rules import PortDice
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.nodes import Interface

RATE_BPS = 12_500_000
LINKS = 4
BURST = 4
HEADERS = Headers(ENCAPSULATED_BYTES, FabricOptions("ifb", "endpoint"))
DATA = bytes([bth.WRITE_MIDDLE]) + bytes(wire.DATA_HEADER_BYTES + 4096 + bth.ICRC_BYTES - 1)
SIZE_BYTES = HEADERS.frame_bytes + len(DATA)
TRAFFIC_CLASS = wire.CLASS_TRIMMABLE
LEVELS = PortLevels(8 * SIZE_BYTES, 8 * SIZE_BYTES, 20 * SIZE_BYTES, 40 * SIZE_BYTES, False)
"""Marks from one level on, so that nothing is left to chance."""
LIMITS = QueueLimits(LEVELS, 1 << 60)
ROUNDS = 5

Arrived = list[tuple[int, int, int]]
"""When, which packet, and twice its row, with 1 for a mark."""


class Bursts(NamedTuple):
    """What is sent: at each time, by each of these hosts. `ways`: numbers of ports."""

    ways: list[tuple[int, ...]]
    times: list[tuple[int, list[int]]]
    packets: int


class Took(NamedTuple):
    """CPU time in s, what arrived, and the rows of all ports."""

    cpu_s: float
    arrived: Arrived
    rows: list[list[int]]


def bursts(hosts: int, packets: int) -> Bursts:
    """Each host has a port and a way up and down of its own; the last link is that of one host of a pair."""
    rows = ((host, hosts + host, 2 * hosts + host, 3 * hosts + host // 2 * 2) for host in range(hosts))
    ways: list[tuple[int, ...]] = list(rows)
    random, times, left, now_ns = Random(1), [], packets, 0
    burst_ns = BURST * SIZE_BYTES * 8 * 10**9 // RATE_BPS
    while left > 0:
        senders = [host for host in range(hosts) if random.random() < 0.6]
        times.append((now_ns, senders))
        left -= BURST * len(senders)
        now_ns += burst_ns
    return Bursts(ways, [*times, (now_ns + 10**9, [])], sum(BURST * len(who) for _, who in times))


def as_it_is(wanted: Bursts) -> Took:
    """Through ports of testbed/virtual."""
    scheduler, arrived = Scheduler(), Arrived()

    def deliver(now_ns: int, packet: VirtualPacket) -> None:
        arrived.append((now_ns, packet.due_ns, packet.row * 2 + (packet.traffic_class & 3 == 3)))

    def port_of(number: int) -> Port:
        return Port(Interface(f"n{number}", "p", number), LIMITS, RATE_BPS, HEADERS, scheduler, PortDice(1))

    ports = [port_of(number) for number in range(LINKS * len(wanted.ways))]
    for port in ports:
        port.join(port_of(len(ports)))
    ways = [VirtualWay(tuple(ports[each] for each in way), 0, 1, 0, 0, 0, 0, 0, 1) for way in wanted.ways]
    for way in ways:
        way.ports[-1].peer.deliver = deliver
    number, began_s = 0, process_time()
    for at_ns, senders in wanted.times:
        scheduler.run_until(_never, at_ns)
        for sender in senders:
            for _ in range(BURST):
                packet = VirtualPacket(ways[sender], DATA, SIZE_BYTES, TRAFFIC_CLASS, DATA_ROW, False)
                packet.due_ns = number  # its number, which nothing here asks for otherwise
                number += 1
                ways[sender].ports[0].offer(packet, at_ns)
    return Took(process_time() - began_s, arrived, [port.out.row() + port.peer.into.row() for port in ports])


def in_c(native: ModuleType, wanted: Bursts) -> Took:
    """Through those of benchmarks/native.c."""
    shared, bare = gcd(8 * 10**9, RATE_BPS), HEADERS.frame_bytes + wire.DATA_HEADER_BYTES
    levels = (level * 8 * 10**9 // RATE_BPS for level in (LEVELS.ecn_low, LEVELS.trim, LEVELS.drop))
    count, arrived = LINKS * len(wanted.ways), Arrived()
    native.begin(count, wanted.packets, 8 * 10**9 // shared, RATE_BPS // shared, *levels, bare)
    began_s = process_time()
    for at_ns, senders in wanted.times:
        arrived += native.run_until(at_ns)
        for sender in senders:
            for _ in range(BURST):
                native.send(SIZE_BYTES, wanted.ways[sender])
    return Took(process_time() - began_s, arrived, [native.counts(number) for number in range(count)])


def _never() -> bool:
    return False


def built(folder: Path) -> ModuleType:
    """The extension, compiled into this folder. Raises CalledProcessError if clang refuses it."""
    target = folder / f"native{compiled.SUFFIX}"
    headers = sysconfig.get_paths()["include"]
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["clang", "-shared", "-fPIC", "-O2", f"-I{headers}", str(source), "-o", str(target)], check=True)
    spec = importlib.util.spec_from_file_location("native", target)
    if spec is None or spec.loader is None:
        raise ImportError(str(target))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(native: ModuleType, hosts: int, packets: int) -> None:
    """Print what both took. Exits if they did not do the same."""
    wanted = bursts(hosts, packets)
    pairs = [(as_it_is(wanted), in_c(native, wanted)) for _ in range(ROUNDS)]
    ours, theirs = pairs[0]
    if (ours.arrived, ours.rows) != (theirs.arrived, theirs.rows):
        sys.exit("native: the two did not do the same")
    rows = [sum(row[each] for row in ours.rows) for each in range(2 * COUNTS)]
    links = sum(rows[COUNTS : COUNTS + BYTES_AT])
    ours_us, theirs_us = (median(pair[side].cpu_s for pair in pairs) / links * 1e6 for side in (0, 1))
    ratios = sorted(pair[0].cpu_s / pair[1].cpu_s for pair in pairs)
    print(
        f"{hosts} hosts, {wanted.packets} packets ({rows[CHANGED]} marked, {rows[CUT]} trimmed), "
        f"{links} links: {ours_us:.2f} us a packet and link as it is ({compiled.in_use()}), "
        f"{theirs_us:.3f} in C, ratio {median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--packets", type=int, default=60_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        native = built(Path(folder))
        for hosts in asked.hosts:
            compare(native, hosts, asked.packets)


if __name__ == "__main__":
    main()
