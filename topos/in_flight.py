"""How few packets in flight are too few for the shares of flows to be right.

With few packets in a plane-BDP (T x rate) ports mark and trim in steps of a packet, and windows are a few packets.
docs/decisions/0111-fourteen-packets-count.md has the measured limits.
"""

from __future__ import annotations

from itertools import pairwise

from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.shape import LEAST_PLANE_PACKETS, Shape
from mrc_testbed.topos.units import time_text

LEAST_PLANE_BDP = 5.5
"""Packets that a plane must hold in one rtt for the share of a flow that competes with no other."""
LEAST_SHARED_BDP = 11
"""The same for a flow that shares ports or links with others, and of links that are slower than ports."""
GOOD_PLANE_BDP = 15
_RTT_STEP_NS = 100_000


def few_in_flight(shape: Shape, alone: bool, slowest: float) -> str:
    """Why the share of a flow is not judged in a fabric of this shape; empty where it is. `alone`: nothing that it
    needs is shared with others; `slowest`: the rate of the slowest link on its ways, in shares of the port rate."""
    held = shape.plane_bdp_packets
    if held < LEAST_PLANE_BDP:
        return f"a plane holds {_under(held, LEAST_PLANE_BDP)}"
    if slowest < 1 and held * slowest < LEAST_SHARED_BDP:
        return f"a plane holds {_under(held * slowest, LEAST_SHARED_BDP, ' on its slowest links')}"
    if not alone and held < LEAST_SHARED_BDP:
        return f"a plane holds {_under(held, LEAST_SHARED_BDP)}, where flows compete"
    return ""


def slowest_between(family: Family, source: int, target: int) -> float:
    """The rate of the slowest link on any way from one T0 to another one, in shares of the port rate."""
    crossed = (pair for way in family.ways_of(source, target) for pair in pairwise(way))
    return min((family.rate_shares[pair] for pair in crossed), default=1.0)


def too_few_in_flight(shape: Shape) -> str:
    """Which figures of a fabric of this shape are not judged, and why; empty where planes hold enough."""
    held, slowest = shape.plane_bdp_packets, shape.family.least_share
    least = held * slowest
    if least >= LEAST_SHARED_BDP:
        return ""
    where = " on its slowest links" if slowest < 1 else ""
    figures = "fair_share, balance and flow_goodput"
    if held < LEAST_PLANE_BDP:
        few = _under(held, LEAST_PLANE_BDP)
        told = f"ports mark and trim in steps of a packet, so {figures} are worthless and not judged"
    elif slowest < 1:
        few = _under(least, LEAST_SHARED_BDP, where)
        told = f"{figures} of flows that cross them are not judged"
    else:
        few = _under(held, LEAST_SHARED_BDP)
        longer = LEAST_PLANE_PACKETS / held
        told = f"{figures} of flows that compete are not judged, and queues are {longer:.1f} times as long in rtts"
    rtt_ns = rtt_of(GOOD_PLANE_BDP * 8 * shape.wire_bytes * 1_000_000_000, round(shape.port_rate_bps * slowest))
    return f"a plane holds {few}: {told}; rtt {time_text(rtt_ns)} would give {GOOD_PLANE_BDP}{where}"


def _under(held: float, least: float, where: str = "") -> str:
    return f"{held:.1f} packets in one rtt{where}, under {least:g}"


def rtt_of(bits_ns: int, rate_bps: int) -> int:
    """bits x ns over a rate, rounded up to whole steps, so that rounding loses no packet of the BDP."""
    return -(-bits_ns // (rate_bps * _RTT_STEP_NS)) * _RTT_STEP_NS
