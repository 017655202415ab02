"""A plan made small: a fabric of 8 hosts that two cores carry, its job and its flaps, with the ratios of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.question import tiers_words
from mrc_testbed.topos.budget import suggest, suited_rtt_ns, usual_capacity
from mrc_testbed.topos.cost import STANDARD_COST
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.shape import MAX_PLANES, Shape

TIERS = 2
GROUPS = 2
"""T0 groups: the fewest between which T1s carry."""
_HOSTS_PER_T0 = 4
_MOST_RATE_BPS = 25_000_000
"""Of a port: at 50 Mb/s and T = 10 ms, which a single plane would be given, hosts waited too long for a CPU."""
_LEAST_T1, _MOST_T1 = 4, 32
_MOST_SWITCHES = 144
"""T0s and T1s: two cores start and watch so many."""
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
"""At least so many are expected: a run with fewer may show none."""
MOST_DOWN = 0.1
"""Share of the T0-T1 links that are down at once."""


def only_design(made: Sequence[Design], planes: Sequence[int]) -> Design:
    """The design of two tiers that was asked for, with so many planes; others may stand beside it for comparison.
    Raises UsageError."""
    asked = [design for design in made if design.clos.planes in planes]
    tall = [design for design in asked if design.clos.tiers != TIERS]
    if tall:
        told = " and ".join(dict.fromkeys(tiers_words(design.clos.tiers) for design in tall))
        raise UsageError(f"--scenario: {told} planned, and the testbed builds two: --tiers 2, with --planes that reach")
    if len(asked) > 1:
        raise UsageError(
            f"--scenario: {len(asked)} designs; ask for one, with one value each of --gpus, --planes, --switch,"
            " --ports and --tiers"
        )
    return asked[0]


@dataclass(frozen=True)
class LargePlan:
    """What is to be kept, of a fabric of two tiers. `job`: GPUs of the job; `flaps_a_step`: T0-T1 flaps under it in one
    of its steps; `evs`: of a QP."""

    clos: Clos
    job: int
    flaps_a_step: float
    evs: int
    port_gbps: int
    rtt_s: float

    @property
    def t1_a_plane(self) -> int:
        return self.clos.tier_switches[1] // self.clos.planes

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
        return _met(self.evs_used / self.clos.paths, self.job_below_t0)


@dataclass(frozen=True)
class SmallFabric:
    """What is built and run. `t1`: of a plane; `evs`: of a QP, in each plane; `job`: its hosts, by rank."""

    plan: LargePlan

    @cached_property
    def planes(self) -> int:
        return min(self.plan.clos.planes, MAX_PLANES)

    @cached_property
    def _layout(self) -> tuple[int, int]:
        """(T1s of a plane, EVs of a QP in it): the fewest T1s whose share of EVs is near, else the nearest."""
        clos = self.plan.clos
        share = self.plan.evs_used / clos.paths
        most = min(_MOST_T1, _MOST_SWITCHES // self.planes - GROUPS, clos.half)
        pairs = [(t1, min(max(1, round(share * t1)), t1)) for t1 in range(min(_LEAST_T1, most), most + 1)]
        off = {pair: abs(pair[1] / pair[0] - share) for pair in pairs}
        near = (pair for pair in pairs if off[pair] <= NEAR * share / 2)
        return next(near, min(pairs, key=lambda pair: off[pair]))

    @property
    def t1(self) -> int:
        return self._layout[0]

    @property
    def evs(self) -> int:
        return self._layout[1]

    @cached_property
    def shape(self) -> Shape:
        """With the rate and round trip that two cores carry."""
        below = max(1, min(_HOSTS_PER_T0, self.plan.clos.half, self.plan.clos.nics // GROUPS))
        carried_bps, _ = suggest(self.planes, GROUPS * below, usual_capacity(STANDARD_COST))
        rate_bps = min(carried_bps, _MOST_RATE_BPS)
        return clos2_shape(self.planes, GROUPS, self.t1, below, rate_bps, suited_rtt_ns(rate_bps))

    @property
    def job_pairs(self) -> int:
        """Hosts of the job in each group."""
        share = self.plan.job / self.plan.clos.nics
        return max(1, round(share * self.shape.hosts_per_t0))

    @property
    def job(self) -> list[str]:
        """Its ring goes from one group to the other at every step, so that all its data cross T1s."""
        below = self.shape.hosts_per_t0
        return [f"h{number + group * below}" for number in range(self.job_pairs) for group in range(GROUPS)]

    @cached_property
    def step_s(self) -> float:
        """Of the job when nothing breaks: computation, 2 (N - 1) phases of a ring, and the acknowledgement of the last
        chunk (docs/scenario.md)."""
        shape, phases = self.shape, 2 * (len(self.job) - 1)
        packet_s = 1 / shape.port_pps
        wire_s = (ALLREDUCE_MIB << 20) / len(self.job) / shape.payload_bytes * packet_s / shape.planes
        least_s = (shape.header_bytes + 1) * 8 / shape.port_rate_bps
        answer_s = shape.rtt_ns / 2e9 + (3 + 1 / shape.planes) * least_s
        return COMPUTE_MS / 1e3 + phases * (wire_s + shape.rtt_ns / 2e9 + 3 * packet_s) + answer_s

    @property
    def fall_s(self) -> float:
        return FALL_T * self.shape.rtt_ns / 1e9

    @property
    def flaps_a_step(self) -> float:
        """As in the plan, if a run is long enough to see some and the fabric has links enough to bear them."""
        links = self.shape.planes * GROUPS * self.t1
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
        return _met(self.evs / self.t1, self.job_pairs)


def _met(share: float, hosts: int) -> float:
    """Chance, in percent, that a link of a T0 is on an EV in use, where each of so many hosts sends on one QP and
    receives on one, over that share of the uplinks each."""
    return 100 * (1 - (1 - share) ** (2 * hosts))
