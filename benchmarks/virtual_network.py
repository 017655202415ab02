"""Cost of the virtual network without endpoints: CPU time a packet and hop, and packets a second.

    .venv/bin/python benchmarks/virtual_network.py [--packets N] [--profile]

Every host of a fabric of the quickstart's shape at real rates sends data to the host across, spread over all planes
and uplinks, and gets one acknowledgement for eight. "idle" sends half of line rate, so no packet waits. "busy"
sends 97 % of it in bursts of 64 packets a port, 8 of them by the same uplink, all hosts at once: they wait and are
marked. CPU time of the thread, so that a busy machine does not matter.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from time import thread_time_ns

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.udp import PORT
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.nic import Nic
from mrc_testbed.testbed.virtual.packet import VirtualPacket
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import build_plan

SHAPE = clos2_shape(planes=4, t0_groups=2, t1=8, hosts_per_t0=4, port_rate_bps=100_000_000_000, rtt_ns=10_000)
T1S, BELOW = SHAPE.family.tiers[1], len(SHAPE.family.below[0])
PACKET_NS = 340
PER_SACK = 8
HOPS = 4


class Sender:
    """A host that sends bursts to the host across, on each port in turn another uplink."""

    def __init__(self, fabric: VirtualFabric, scheduler: Scheduler, host: Host, burst: int, pause_ns: int) -> None:
        self._scheduler = scheduler
        self._burst, self._pause_ns = burst, pause_ns
        plan = fabric.plan
        peer = plan.hosts[(host.index + BELOW) % SHAPE.hosts]
        self._ways = [(path.inner, PORT, path.id.flow_label, 0) for path in plan.paths(host, peer)]
        self.nic: Nic = fabric.attach(host.name, self._deliver, lambda plane, up: None)
        self._data = memoryview(bytes([bth.WRITE_MIDDLE]) + bytes(4096 + 39))
        self._sack = memoryview(bytes([wire.SACK]) + bytes(wire.SACK_BYTES - 1))
        self._turn = self.received = 0

    def _deliver(self, at_ns: int, packet: VirtualPacket) -> None:
        if packet.data[0] != bth.WRITE_MIDDLE:
            return
        self.received += 1
        if self.received % PER_SACK == 0:
            self.nic.send(self._sack, self._ways[self.received // PER_SACK % len(self._ways)], bth.CLASS_CONTROL)

    def send(self) -> None:
        """A burst on every port."""
        send, data, ways = self.nic.send, self._data, self._ways
        for plane in range(SHAPE.planes):
            for _ in range(self._burst):
                self._turn += 1
                uplink = self._turn // max(self._burst // T1S, 1) % T1S
                send(data, ways[plane * T1S + uplink], wire.CLASS_TRIMMABLE)
        self._scheduler.at(self._scheduler.now_ns + self._pause_ns, self.send)


def measure(burst: int, pause_ns: int, packets: int) -> tuple[float, int, int]:
    """CPU ns a data packet, packets delivered, and marks."""
    scheduler = Scheduler()
    options = FabricOptions("ifb", "endpoint", "port program")
    fabric = VirtualFabric(build_plan(SHAPE), options, scheduler, seed=1)
    senders = [Sender(fabric, scheduler, host, burst, pause_ns) for host in fabric.plan.hosts]
    for number, sender in enumerate(senders):
        scheduler.at(number if burst > 1 else number * pause_ns // len(senders), sender.send)
    start_ns = thread_time_ns()
    scheduler.run_until(lambda: senders[0].received >= packets // len(senders), 1 << 62)
    taken_ns = thread_time_ns() - start_ns
    received = sum(sender.received for sender in senders)
    return taken_ns / received, received, sum(hits.marked for _, hits in fabric.port_hits())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--packets", type=int, default=100_000)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    for name, burst, pause_ns in (("idle", 1, 2 * PACKET_NS), ("busy", 64, 66 * PACKET_NS)):
        profile = cProfile.Profile()
        if asked.profile:
            profile.enable()
        each_ns, received, marked = measure(burst, pause_ns, asked.packets)
        profile.disable()
        print(
            f"{name}: {each_ns / 1000:.2f} us a data packet over three switches with its share of SACKs, "
            f"{each_ns / 1000 / HOPS / (1 + 1 / PER_SACK):.2f} us a packet and hop, {1e9 / each_ns:.0f} packets/s "
            f"({received} delivered, {marked} marks)"
        )
        if asked.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(15)


if __name__ == "__main__":
    main()
