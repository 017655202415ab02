"""CPU time that a fabric takes of its machine: for packets, for turns of its endpoints, and for hosts at rest.

Measured on two cores (docs/decisions/0047-budget-in-cpu-time.md); what a turn costs relative to a packet, and what
hosts cost each other, by ten fabrics (docs/decisions/0129-budget-by-ten-fabrics.md). A slower machine does not change
these numbers: it carries fewer CPUs of them (`mrc_testbed.topos.budget.Capacity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from mrc_testbed.topos.shape import Shape

TURNS_PER_RTT = 10
"""Of a host, if its ports do not run dry between them (`mrc_testbed.hosts.loops`)."""
PACKETS_PER_TURN = 1.5
"""What a port has sent when half of its burst is gone and the next turn is due
(`mrc_testbed.hosts.common.pacer`)."""
LEAST_TURN_NS = 50_000
"""Turns are no closer (`mrc_testbed.hosts.loops`)."""
CONGESTED = 1.7
"""Cost of a packet of a flow that waits inside the network, relative to one that does not: trims, NACKs, packets sent
again."""
SWITCHES = 3
"""On the way of the packets that were measured: over two tiers."""
SWITCH_S = 4e-6
"""CPU seconds of the whole machine that each further switch on its way costs a data packet with its acknowledgement,
and each switch less saves (docs/measurements/machine-load.md)."""
REST_CPUS = 1.5e-3
"""Of a host that has nothing to do."""
FEW_HOSTS = 8
"""At work in the training by which a machine is measured: among as many, or fewer, a packet costs what `Cost` says."""
CROWD = 0.45
"""By how much of that a packet costs more with each doubling of the hosts that send at a time: the caches of two cores
hold less of each (docs/decisions/0119-hosts-cost-caches.md). `mrc-testbed calibrate` measures it for a machine."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a transport takes of a machine. `of`: the transport by its word; `packet_s`, `turn_s`: CPU seconds of the
    whole machine for a data packet through SWITCHES switches with its acknowledgement, and for a turn of an endpoint,
    however many packets it moves; `usual_pps`: data packets a second of the standard training, told by its ports at
    line rate, that two cores carry, as `mrc-testbed calibrate` measures it (docs/measurements/machine-load.md);
    `paced`: an endpoint takes a turn when a port is about to run dry, too; `crowd`: as CROWD."""

    of: str
    packet_s: float
    turn_s: float
    usual_pps: float
    paced: bool = False
    crowd: float = CROWD


STANDARD_COST = Cost("mrc", 68e-6, 100e-6, 17_000.0, paced=True)
"""Of the transport over which fabrics are planned."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a workload asks of a machine at most. `pps`: data packets a second; `congested_pps`: those of them whose
    flow waits inside the network; `hosts`: hosts at work; `switches`: on the way of a packet, in the mean; `pausing`:
    those of the hosts that wait for others and send nothing, at a time, in the mean."""

    pps: float
    hosts: int
    congested_pps: float = 0.0
    switches: float = SWITCHES
    pausing: float = 0.0


def full_load(shape: Shape) -> Load:
    """All hosts send at line rate, on the longest ways."""
    return Load(shape.fabric_pps, shape.hosts, switches=max(SWITCHES, len(shape.family.farthest)))


def packet_s(load: Load, cost: Cost) -> float:
    """Of a data packet of this load, with its acknowledgement."""
    return cost.packet_s * crowding(load.hosts - load.pausing, cost) + (load.switches - SWITCHES) * SWITCH_S


def crowding(hosts: float, cost: Cost) -> float:
    """What a packet costs among this number of hosts that send, relative to one among FEW_HOSTS."""
    return 1 + cost.crowd * doublings(hosts)


def doublings(hosts: float) -> float:
    """By which FEW_HOSTS become `hosts`; 0 for fewer."""
    return log2(max(hosts, FEW_HOSTS) / FEW_HOSTS)


def turns_per_s(shape: Shape, cost: Cost) -> float:
    """Of one host at work."""
    apart_ns = shape.rtt_ns / TURNS_PER_RTT
    if cost.paced:
        apart_ns = min(apart_ns, PACKETS_PER_TURN * 1e9 / shape.port_pps)
    return 1e9 / max(apart_ns, LEAST_TURN_NS)


def cpus(shape: Shape, load: Load, cost: Cost) -> float:
    """CPU seconds a second, of the whole machine."""
    packets = load.pps + load.congested_pps * (CONGESTED - 1)
    turns = load.hosts * turns_per_s(shape, cost)
    return packets * packet_s(load, cost) + turns * cost.turn_s + shape.hosts * REST_CPUS
