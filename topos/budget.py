"""What a shape costs the machine, and which port rate and rtt fit it (source: design, section 7).

Results carry over from packets and round trips, so a fabric too big for the machine is not refused: it runs slower,
with a longer round trip, until its packets fit. How many fit depends on the transport, for its endpoints do most of the
work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from topos.shape import MIN_RATE_BPS, Shape
from topos.units import count_text, rate_text, time_text

MRC = "mrc"
USUAL_PPS: Mapping[str, float] = MappingProxyType({MRC: 17_000.0, "roce": 20_000.0, "tcp": 20_000.0, "mptcp": 17_000.0})
"""Data packets per second that two cores carry through three switches, by transport; the default budgets.

Measured by `mrc-testbed calibrate` (docs/decisions.md, "How many packets a machine carries")."""
SLOW_PHASE = 0.75
"""What a machine still carries of that in a slow phase: what is shipped asks for no more."""
MIN_PLANE_BDP = 12
"""Below this many packets per plane in one rtt, the ECN ramp and the trim threshold are less than a packet apart."""
GOOD_PLANE_BDP = 15
STANDARD_RATE_BPS = 12_500_000
STANDARD_RTT_NS = 40_000_000
STANDARD_PORTS = 8 * 4
"""Hosts x planes of the standard fabric, which runs at STANDARD_RATE_BPS and STANDARD_RTT_NS: 70 % of what two cores
carry over MRC, so that a machine in a slow phase carries it too."""
FASTEST_RTT_NS = 5_000_000
"""Timers are multiples of the rtt and the scheduler is up to 3 ms late: small fabrics get no shorter rtt."""

_RTT_STEP_NS = 100_000


@dataclass(frozen=True, slots=True)
class Capacity:
    """Data packets per second over the whole fabric that a machine carries over a transport, and the source of that
    number in words."""

    pps: float
    known_by: str
    transport: str = MRC


def usual_capacity(transport: str) -> Capacity:
    """Without a measurement of this machine: what two cores carry."""
    option = "" if transport == MRC else f" --transport {transport}"
    return Capacity(USUAL_PPS[transport], f"two cores, not measured: `mrc-testbed calibrate{option}`", transport)


@dataclass(frozen=True, slots=True)
class Warning:
    """A problem of the fabric: `code` for programs, `text` for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Budget:
    """Size and cost of a fabric; `warnings` is empty if machine and packet scale suit it."""

    namespaces: int
    links: int
    routes: int
    fabric_pps: float
    plane_bdp_packets: float
    warnings: tuple[Warning, ...]


def budget(
    shape: Shape, capacity: Capacity, written_planes: int | None = None, load_pps: float | None = None
) -> Budget:
    """Compute the cost of a fabric of this shape on a machine with this capacity. `written_planes`: how many planes it
    has as written, where they were folded; rates are suggested for those. `load_pps`: what its workload sends at most;
    None: all hosts at line rate."""
    most_pps = shape.fabric_pps if load_pps is None else load_pps
    return Budget(
        namespaces=shape.hosts + shape.switches,
        links=shape.links,
        routes=count_routes(shape),
        fabric_pps=shape.fabric_pps,
        plane_bdp_packets=shape.plane_bdp_packets,
        warnings=tuple(_warnings(shape, capacity, written_planes or shape.planes, most_pps)),
    )


def count_routes(shape: Shape) -> int:
    """Routes in the whole fabric, path tables of the hosts included."""
    to_same_t0 = (shape.hosts_per_t0 - 1) * shape.planes
    to_other_t0 = (shape.hosts - shape.hosts_per_t0) * shape.planes * shape.t1
    a_host = 1 + 2 * shape.planes + (shape.hosts - 1) + to_same_t0 + to_other_t0
    a_t0 = 1 + shape.hosts_per_t0 + shape.t1
    a_t1 = 1 + shape.t0_groups
    return shape.hosts * a_host + shape.planes * (shape.t0_groups * a_t0 + shape.t1 * a_t1)


def suggest(planes: int, hosts: float, capacity: Capacity) -> tuple[int, int]:
    """The (port_rate_bps, rtt_ns) that keep the standard share of the budget and the standard packets per rtt, where so
    many hosts send at line rate."""
    fastest = STANDARD_RATE_BPS * STANDARD_RTT_NS // FASTEST_RTT_NS
    share = int(STANDARD_RATE_BPS * STANDARD_PORTS * capacity.pps / USUAL_PPS[MRC] / (planes * hosts))
    rate = min(max(_three_digits(share), MIN_RATE_BPS), fastest)
    return rate, suited_rtt_ns(rate)


def suited_rtt_ns(port_rate_bps: int) -> int:
    """The rtt that keeps the standard number of packets in flight at this rate."""
    return _round_up(STANDARD_RATE_BPS * STANDARD_RTT_NS, port_rate_bps)


def _warnings(shape: Shape, capacity: Capacity, written_planes: int, load_pps: float) -> Iterator[Warning]:
    if load_pps > capacity.pps:
        yield Warning("fabric-pps", _too_many_packets(shape, capacity, written_planes, load_pps))
    if shape.plane_bdp_packets < MIN_PLANE_BDP:
        yield Warning("plane-bdp", _too_few_in_flight(shape))


def _too_many_packets(shape: Shape, capacity: Capacity, written_planes: int, load_pps: float) -> str:
    part = load_pps / shape.fabric_pps
    who = "all hosts at line rate send" if part >= 1 else "its workload sends up to"
    rate, rtt = suggest(written_planes, shape.hosts * part, capacity)
    built_rate = rate * written_planes // shape.planes
    fits = replace(shape, port_rate_bps=built_rate, rtt_ns=rtt).fabric_pps * part <= capacity.pps
    return (
        f"{who} {count_text(load_pps)} packets/s, over the machine's packet budget for "
        f"{capacity.transport} of {count_text(capacity.pps)} ({capacity.known_by}); "
        + (f"port_rate {rate_text(rate)} with rtt {time_text(rtt)} fits" if fits else "fewer hosts or planes would fit")
    )


def _too_few_in_flight(shape: Shape) -> str:
    held = f"a plane holds {shape.plane_bdp_packets:.1f} packets in one rtt, under {MIN_PLANE_BDP}: "
    why = "ECN ramp and trim threshold fall between packets; "
    rtt = _round_up(GOOD_PLANE_BDP * 8 * shape.wire_bytes * 1_000_000_000, shape.port_rate_bps)
    return f"{held}{why}rtt {time_text(rtt)} would give {GOOD_PLANE_BDP}"


def _three_digits(value: int) -> int:
    """`value` rounded down to three digits: a readable rate that never exceeds the budget."""
    step = int(10 ** max(len(str(value)) - 3, 0))
    return value // step * step


def _round_up(bits_ns: int, rate: int) -> int:
    """bits_ns / rate rounded up to whole steps, so that rounding loses no packet of the BDP."""
    steps = -(-bits_ns // (rate * _RTT_STEP_NS))
    return steps * _RTT_STEP_NS
