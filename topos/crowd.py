"""The load that tells what hosts cost each other: 64 hosts that all send and receive all the time, and nobody waits
inside the network."""

from __future__ import annotations

from dataclasses import replace

from mrc_testbed.topos.budget import STANDARD, Capacity, suited_rtt_ns
from mrc_testbed.topos.cost import cpus, doublings, full_load
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.shape import Shape

CROWD_HOSTS = 64
_PLANES, _SIDE = 2, 8


def crowd_shape(pps: float) -> Shape:
    """64 hosts that send `pps` in all, with the standard number of packets in flight."""
    packet_bytes = STANDARD.payload_bytes + STANDARD.header_bytes
    bps = round(pps / (CROWD_HOSTS * _PLANES) * packet_bytes * 8)
    return clos2_shape(_PLANES, _SIDE, _SIDE, _SIDE, bps, suited_rtt_ns(bps))


def crowd_of(shape: Shape, capacity: Capacity) -> float:
    """`Cost.crowd` of a machine that carries all hosts of this shape at line rate, and nothing more; 0 or more.
    `shape`: of more than FEW_HOSTS hosts."""
    load, alone = full_load(shape), replace(capacity.cost, crowd=0.0)
    room = capacity.cpus - cpus(shape, load, alone)
    return max(0.0, room / (load.pps * alone.packet_s * doublings(load.hosts)))
