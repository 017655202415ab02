"""Does a machine carry a shape, and which port rate and rtt fit it (docs/scaled.md)?

Results carry over from packets and round trips, so a fabric too big for the machine is not refused: it runs slower,
with a longer round trip, until its packets and turns fit. What they cost depends on the transport, for its endpoints do
most of the work (`mrc_testbed.topos.cost`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import permutations

from mrc_testbed.topos.cost import (
    REST_CPUS,
    STANDARD_COST,
    Cost,
    Load,
    cpus,
    crowding,
    full_load,
    packet_s,
    turns_per_s,
)
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.in_flight import rtt_of, too_few_in_flight
from mrc_testbed.topos.shape import MIN_RATE_BPS, Shape
from mrc_testbed.topos.units import count_text, rate_text, time_text

TRAINING_PAUSES_PPS = 7_650.0
"""Packets over the whole fabric that ports send in the time that a chunk of that training is on its way; its share of
line rate follows."""
TRAINING_SWITCHES = 1.5
"""On the way of its packets, in the mean: six of its eight hops stay below a T0."""
STANDARD_RATE_BPS = 12_500_000
STANDARD_RTT_NS = 40_000_000
STANDARD = clos2_shape(4, 2, 4, 4, STANDARD_RATE_BPS, STANDARD_RTT_NS)
"""The standard fabric. The quickstart's training takes 74 % of what two cores carry over MRC on it."""
FASTEST_RTT_NS = 5_000_000
"""Timers are multiples of the rtt and the scheduler is up to 3 ms late: small fabrics get no shorter rtt."""


USUAL_SPREAD = 2.2
"""Between what two cores carried in a slow phase with the core in Python, `Cost.usual_pps`, and in a fast one with the
compiled core (docs/measurements/machine-load.md)."""


class Fit(StrEnum):
    """What a machine makes of a fabric: it carries it at any time; in its fast phases, if at all; never."""

    FITS = "fits"
    MAY_FIT = "may fit"
    DOES_NOT_FIT = "does not fit"


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a machine carries over a transport: `pps` of the standard training, told as `Cost.usual_pps` is, at any
    time; `spread`: by how much more than that it never carries, as a factor of CPU time; and the source of both in
    words."""

    pps: float
    known_by: str
    cost: Cost = STANDARD_COST
    spread: float = 1.0

    @property
    def cpus(self) -> float:
        """CPU seconds a second that such a training takes."""
        packets = self.pps * self.pps / (self.pps + TRAINING_PAUSES_PPS)
        # Rates are scaled with the round trip, so turns are in proportion to packets at line rate.
        turns = STANDARD.hosts * turns_per_s(STANDARD, self.cost) * self.pps / STANDARD.fabric_pps
        each_s = packet_s(Load(packets, STANDARD.hosts, switches=TRAINING_SWITCHES), self.cost)
        return packets * each_s + turns * self.cost.turn_s + STANDARD.hosts * REST_CPUS

    @property
    def most_cpus(self) -> float:
        """CPU seconds a second that it never carries."""
        return self.cpus * self.spread

    def fit(self, takes: float) -> Fit:
        """Of a fabric that takes this number of CPUs."""
        if takes <= self.cpus:
            return Fit.FITS
        return Fit.MAY_FIT if takes <= self.most_cpus else Fit.DOES_NOT_FIT


def usual_capacity(cost: Cost) -> Capacity:
    """Without a measurement of this machine: what two cores carry."""
    option = "" if cost == STANDARD_COST else f" --transport {cost.of}"
    return Capacity(cost.usual_pps, f"two cores, not measured: `mrc-testbed calibrate{option}`", cost, USUAL_SPREAD)


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
    cpus: float
    plane_bdp_packets: float
    warnings: tuple[Warning, ...]


def budget(shape: Shape, capacity: Capacity, written_planes: int | None = None, load: Load | None = None) -> Budget:
    """Compute the cost of a fabric of this shape on a machine with this capacity. `written_planes`: how many planes it
    has as written, where they were folded; rates are suggested for those. `load`: what its workload asks for at most;
    None: all hosts at line rate."""
    return Budget(
        namespaces=shape.hosts + shape.switches,
        links=shape.links,
        routes=count_routes(shape),
        cpus=cpus(shape, load or full_load(shape), capacity.cost),
        plane_bdp_packets=shape.plane_bdp_packets,
        warnings=tuple(_warnings(shape, capacity, written_planes or shape.planes, load)),
    )


def count_routes(shape: Shape) -> int:
    """Routes in the whole fabric, path tables of the hosts included."""
    family, hosts = shape.family, shape.hosts
    own = hosts * (1 + 2 * shape.planes + (hosts - 1))  # its prefix, its ports twice, and its peers
    at_ports = hosts + 2 * family.cable_count
    return own + shape.planes * (_paths_a_plane(family) + sum(family.tiers) + at_ports)


def _paths_a_plane(family: Family) -> int:
    """Paths between all pairs of hosts."""
    below = list(map(len, family.below))
    near = sum(count * (count - 1) for count in below)
    pairs = permutations(range(len(below)), 2)
    return near + sum(below[a] * below[b] * family.way_count(a, b) for a, b in pairs)


def suggest(
    planes: int,
    hosts: int,
    capacity: Capacity,
    share: float = 1.0,
    standard: Shape = STANDARD,
    a_packet_s: float | None = None,
) -> tuple[int, int]:
    """The (port_rate_bps, rtt_ns) that keep the standard bytes per rtt and leave as much of the capacity as the
    standard fabric does, where this number of hosts send at this share of line rate. `standard`: that fabric, with
    packets of the size that is sent; `a_packet_s`: what one of them costs, None: on ways over two tiers."""
    cost = capacity.cost
    usual_s = cost.packet_s * crowding(hosts, cost)
    turns_in_rtt = turns_per_s(standard, cost) * STANDARD_RTT_NS / 1e9
    each_s = usual_s if a_packet_s is None else a_packet_s
    in_rtt = planes * standard.plane_bdp_packets * share * each_s + turns_in_rtt * cost.turn_s
    room = capacity.cpus * _standard_share() - hosts * REST_CPUS
    slowest = STANDARD_RATE_BPS * STANDARD_RTT_NS / 1e9 / MIN_RATE_BPS
    rtt_s = max(hosts * in_rtt / room, FASTEST_RTT_NS / 1e9) if room > 0 else slowest
    rate = _three_digits(int(STANDARD_RATE_BPS * STANDARD_RTT_NS / 1e9 / rtt_s * (1 + 1e-9)))
    return max(rate, MIN_RATE_BPS), suited_rtt_ns(max(rate, MIN_RATE_BPS))


def _standard_share() -> float:
    """What the standard fabric takes of two cores when all its hosts send at line rate."""
    return cpus(STANDARD, full_load(STANDARD), STANDARD_COST) / usual_capacity(STANDARD_COST).cpus


def suited_rtt_ns(port_rate_bps: int) -> int:
    """The rtt that keeps the standard number of packets in flight at this rate."""
    return rtt_of(STANDARD_RATE_BPS * STANDARD_RTT_NS, port_rate_bps)


def _warnings(shape: Shape, capacity: Capacity, written_planes: int, load: Load | None) -> Iterator[Warning]:
    fit = capacity.fit(cpus(shape, load or full_load(shape), capacity.cost))
    if fit is not Fit.FITS:
        code = "fabric-cpus" if fit is Fit.DOES_NOT_FIT else "fabric-cpus-maybe"
        yield Warning(code, _too_much(shape, capacity, written_planes, load))
    if too_few_in_flight(shape):
        yield Warning("plane-bdp", too_few_in_flight(shape))


def _too_much(shape: Shape, capacity: Capacity, written_planes: int, asked: Load | None) -> str:
    who, load = ("all hosts at line rate take", full_load(shape)) if asked is None else ("its workload takes", asked)
    cost = capacity.cost
    turns = count_text(round(load.hosts * turns_per_s(shape, cost)))
    waiting = f", {count_text(round(load.congested_pps))} of them congested" if load.congested_pps >= 1 else ""
    share = (load.pps + load.congested_pps) / (max(load.hosts, 1) * shape.planes * shape.port_pps)
    standard = replace(STANDARD, payload_bytes=shape.payload_bytes, header_bytes=shape.header_bytes)
    rate, rtt = suggest(written_planes, load.hosts, capacity, share, standard, packet_s(load, cost))
    built = replace(shape, port_rate_bps=rate * written_planes // shape.planes, rtt_ns=rtt)
    slower = built.port_pps / shape.port_pps
    less = replace(load, pps=load.pps * slower, congested_pps=load.congested_pps * slower)
    fits = cpus(built, less, cost) <= capacity.cpus
    takes = cpus(shape, load, cost)
    word = "does not fit" if capacity.fit(takes) is Fit.DOES_NOT_FIT else "may not fit"
    carries = f"this machine carries {carried_text(capacity)} for {cost.of} ({capacity.known_by})"
    asks = f"{count_text(round(load.pps))} packets/s{waiting}, {turns} turns/s of endpoints"
    fitting = f"port_rate {rate_text(rate)} with rtt {time_text(rtt)} fits"
    advice = fitting if fits else "fewer hosts or planes would fit"
    return f"{who} {takes:.2f} CPUs ({asks}) and {word}: {carries}; {advice}"


def carried_text(capacity: Capacity) -> str:
    """`1.03 to 2.26 CPUs`: at any time, and what it never carries."""
    most = f" to {capacity.most_cpus:.2f}" if capacity.spread > 1 else ""
    return f"{capacity.cpus:.2f}{most} CPUs"


def _three_digits(value: int) -> int:
    """`value` rounded down to three digits: a readable rate that never exceeds the budget."""
    step = int(10 ** max(len(str(value)) - 3, 0))
    return value // step * step
