"""A plan made small: a fabric of 8 hosts that two cores carry, its job and its flaps, with the ratios of the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.question import tiers_words
from mrc_testbed.topos.budget import suggest, suited_rtt_ns, usual_capacity
from mrc_testbed.topos.bundles import busiest
from mrc_testbed.topos.cost import STANDARD_COST
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.shape import MAX_PLANES, Shape

TIERS = (2, 3)
"""That can be made small."""
SIDES = 2
"""T0s of two tiers, pods of three: the fewest between which the top tier carries."""
_HOSTS_A_SIDE = 4
_MOST_RATE_BPS = 25_000_000
"""Of a port: at 50 Mb/s and T = 10 ms, which a single plane would be given, hosts waited too long for a CPU."""
_LEAST_WAYS, _MOST_WAYS = 4, 32
"""Between two sides, in a plane."""
_MOST_SWITCHES = 144
"""Most switches that two cores start and watch."""
_ROOMY = 12
"""Switches of a plane that has two T0s a pod."""
_LINKS_OF_TWO_TIERS = 4
"""On the longest way, as on that of the fabric for which rates are suggested."""
NEAR = 0.05
"""A ratio is kept if it is off by no more than this share."""
COMPUTE_MS = 100
ALLREDUCE_MIB = 4
FALL_T = 20
"""How long a link is down, in T: MRC notices within 8."""
_STEPS_BEFORE, _STEPS_AFTER = 3, 4
_LEAST_STEPS = 10
_MOST_S = 100
_FALLS = 10
"""Least number that is expected: a run with fewer may show none."""
MOST_DOWN = 0.1
"""Share of the T0-T1 links that are down at once."""


def only_design(made: Sequence[Design], planes: Sequence[int]) -> Design:
    """The design that was asked for, with this number of planes; others may be beside it for comparison. Raises
    UsageError."""
    asked = [design for design in made if design.clos.planes in planes]
    other = [design for design in asked if design.clos.tiers not in TIERS]
    if other:
        told = " and ".join(dict.fromkeys(tiers_words(design.clos.tiers) for design in other))
        both = " or ".join(map(str, TIERS))
        raise UsageError(f"--scenario: {told} planned, and {both} are made small: --tiers, with --planes that reach")
    if len(asked) > 1:
        raise UsageError(
            f"--scenario: {len(asked)} designs; ask for one, with one value each of --gpus, --planes, --switch,"
            " --ports and --tiers"
        )
    return asked[0]


@dataclass(frozen=True)
class LargePlan:
    """What is to be kept, of a fabric of two or three tiers. `job`: GPUs of the job; `flaps_a_step`: T0-T1 flaps under
    it in one of its steps; `evs`: of a QP."""

    clos: Clos
    job: int
    flaps_a_step: float
    evs: int
    port_gbps: int
    rtt_s: float

    @property
    def t1_of_t0(self) -> int:
        """T1s that a T0 is linked to: all of a plane, or all of its pod."""
        return self.clos.tier_switches[1] // self.clos.planes if self.clos.tiers == 2 else self.clos.half

    @property
    def top_a_plane(self) -> int:
        """Switches of the top tier in a plane."""
        return self.clos.tier_switches[-1] // self.clos.planes

    @property
    def evs_used(self) -> int:
        """At most one a path."""
        return min(self.evs, self.clos.paths)

    @property
    def job_below_t0(self) -> int:
        return min(self.job, self.clos.nics_below_t0)

    @property
    def flaps_met(self) -> float:
        """In percent."""
        over_uplink = self.clos.paths // self.clos.planes // self.clos.half
        return _met(self.evs_used / self.clos.paths, self.job_below_t0 * over_uplink)


@dataclass(frozen=True)
class SmallFabric:
    """What is built and run. `evs`: of a QP, in each plane; `job`: its hosts, by rank."""

    plan: LargePlan

    @cached_property
    def planes(self) -> int:
        return min(self.plan.clos.planes, MAX_PLANES)

    @cached_property
    def _layout(self) -> tuple[Clos2 | Clos3, int]:
        """(a plane, EVs of a QP in it): the fewest ways whose share of EVs is near, else the nearest."""
        share = self.plan.evs_used / self.plan.clos.paths
        pairs = [
            (family, min(max(1, round(share * ways)), ways))
            for family in self._planes_that_fit()
            for ways in [family.way_count(0, family.tiers[0] - 1)]
        ]
        off = [abs(evs / family.way_count(0, family.tiers[0] - 1) - share) for family, evs in pairs]
        near = (pair for pair, far in zip(pairs, off, strict=True) if far <= NEAR * share / 2)
        return next(near, pairs[off.index(min(off))])

    def _planes_that_fit(self) -> Sequence[Clos2 | Clos3]:
        """From the fewest ways between the sides on."""
        clos, switches = self.plan.clos, _MOST_SWITCHES // self.planes
        below = max(1, min(_HOSTS_A_SIDE, clos.half, clos.nics // SIDES))
        if clos.tiers == 2:
            return two_tiers(clos.half, below, switches)
        some_below_all = below % 2 == 0 and _of_a_side(self.plan.job / clos.nics, below) > below // 2
        two_t0s = some_below_all and clos.half > 1 and switches >= _ROOMY
        return three_tiers(clos.half, 2 if two_t0s else 1, below, switches)

    @property
    def family(self) -> Clos2 | Clos3:
        """A plane."""
        return self._layout[0]

    @property
    def evs(self) -> int:
        return self._layout[1]

    @property
    def ways(self) -> int:
        """Between the sides, in a plane."""
        return self.family.way_count(0, self.family.tiers[0] - 1)

    @property
    def t1(self) -> int:
        """T1s that a T0 is linked to."""
        return self.family.t1

    @cached_property
    def shape(self) -> Shape:
        """With the rate and round trip that two cores carry: each further link takes its part of them."""
        carried_bps, _ = suggest(self.planes, self.family.hosts, usual_capacity(STANDARD_COST))
        slower = _LINKS_OF_TWO_TIERS / (self.plan.clos.longest_path + 1)
        rate_bps = int(min(carried_bps, _MOST_RATE_BPS) * slower)
        return Shape(self.planes, self.family, rate_bps, suited_rtt_ns(rate_bps))

    @property
    def hosts_a_side(self) -> int:
        return self.shape.hosts // SIDES

    @property
    def job_pairs(self) -> int:
        """Hosts of the job on each side."""
        return _of_a_side(self.plan.job / self.plan.clos.nics, self.hosts_a_side)

    @property
    def job_below_t0(self) -> int:
        """Hosts of the job below the T0 that has most of them."""
        return min(self.job_pairs, self.family.hosts_per_t0)

    @property
    def job(self) -> list[str]:
        """Its ring goes from one side to the other at every step, so that all its data cross the top tier."""
        return [f"h{host}" for host in self._ranks]

    @property
    def _ranks(self) -> list[int]:
        below = self.hosts_a_side
        return [number + side * below for number in range(self.job_pairs) for side in range(SIDES)]

    @cached_property
    def step_s(self) -> float:
        """Of the job when nothing breaks: computation, 2 (N - 1) phases of a ring, and the acknowledgement of the last
        chunk (docs/scenario.md)."""
        shape, phases = self.shape, 2 * (len(self.job) - 1)
        packet_s = 1 / shape.port_pps
        wire_s = (ALLREDUCE_MIB << 20) / len(self.job) / shape.payload_bytes * packet_s / shape.planes
        least_s = (shape.header_bytes + 1) * 8 / shape.port_rate_bps
        further = self.plan.clos.longest_path
        answer_s = shape.rtt_ns / 2e9 + (further + 1 / shape.planes) * least_s
        phase_s = wire_s + shape.rtt_ns / 2e9 + further * packet_s + self._behind * wire_s
        return COMPUTE_MS / 1e3 + phases * phase_s + answer_s

    @property
    def _behind(self) -> float:
        """How much longer the busiest links between switches are with a phase of the ring than a host's ports, over
        the time of those."""
        ends = [self.family.t0_of(host) for host in self._ranks]
        return max(0.0, busiest(self.family, Counter(pairwise([*ends, ends[0]]))) - 1)

    @property
    def fall_s(self) -> float:
        return FALL_T * self.shape.rtt_ns / 1e9

    @property
    def flaps_a_step(self) -> float:
        """As in the plan, if a run is long enough to see some and the fabric has links enough to bear them."""
        links = self.shape.planes * self.family.tiers[0] * self.t1
        most = MOST_DOWN * links * self.step_s / self.fall_s
        return min(max(self.plan.flaps_a_step, _FALLS / self.most_steps), most)

    @property
    def flaps_a_minute(self) -> float:
        return self.flaps_a_step * 60 / self.step_s

    @property
    def flap_steps(self) -> int:
        return min(max(ceil(_FALLS / self.flaps_a_step), _LEAST_STEPS), self.most_steps)

    @property
    def most_steps(self) -> int:
        """Under flaps, so that a run takes two minutes."""
        return max(int(_MOST_S / self.step_s), _LEAST_STEPS)

    @property
    def steps(self) -> int:
        """Some before the first flap, for comparison, and some after the last."""
        return _STEPS_BEFORE + self.flap_steps + _STEPS_AFTER

    @property
    def flaps_at_s(self) -> float:
        return _STEPS_BEFORE * self.step_s

    @property
    def flaps_met(self) -> float:
        """In percent."""
        return _met(self.evs / self.ways, self.job_below_t0 * (self.ways // self.t1))


def _of_a_side(share: float, hosts: int) -> int:
    """`share` of `hosts`, at least one."""
    return max(1, round(share * hosts))


def two_tiers(half: int, below: int, switches: int) -> Sequence[Clos2]:
    """Planes of two T0s with `below` hosts each, at most `half` T1s, and at most `switches` switches in all."""
    most = min(_MOST_WAYS, switches - SIDES, half)
    return [Clos2(SIDES, t1, below) for t1 in range(min(_LEAST_WAYS, most), most + 1)]


def three_tiers(half: int, t0: int, a_side: int, switches: int) -> Sequence[Clos3]:
    """Planes of two pods with `t0` T0s and `a_side` hosts each; a T1 has about as many T2s as a T0 has T1s, at most
    `half`."""
    found = [
        Clos3(SIDES, t0, t1, t2, a_side // t0)
        for t2 in range(1, _MOST_WAYS + 1)
        for t1 in [next(t1 for t1 in range(1, t2 + 1) if t2 % t1 == 0 and t1 * t1 >= t2)]
        if t1 <= half and SIDES * (t0 + t1) + t2 <= switches
    ]
    return [plane for plane in found if plane.t2 >= _LEAST_WAYS] or found


def _met(share: float, over: int) -> float:
    """Chance, in percent, that a link of a T0 is on an EV in use, where each of some hosts sends on one QP and receives
    on one, over that share of all ways each. `over`: those hosts times the ways that lead over the link."""
    return 100 * (1 - (1 - share) ** (2 * over))
