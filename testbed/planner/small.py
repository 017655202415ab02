"""A plan made small: a fabric of 8 hosts that two cores carry, with the ratios of the plan, as a scenario to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import NamedTuple

from testbed.errors import UsageError
from testbed.planner.clos import Clos
from testbed.planner.design import Design
from testbed.planner.question import tiers_words
from topos.budget import MRC, suggest, usual_capacity
from topos.shape import MAX_PLANES, WIRE_BYTES, Shape

TIERS = 2
GROUPS = 2
"""T0 groups: the fewest between which T1s carry."""
_HOSTS_PER_T0 = 4
_LEAST_T1, _MOST_T1 = 4, 32
_MOST_SWITCHES = 144
"""T0s and T1s: two cores start and watch so many."""
_NEAR = 0.05
"""A ratio is kept if it is off by no more than this share."""
COMPUTE_MS = 100
ALLREDUCE_MIB = 4
FALL_T = 20
"""How long a link is down, in T: MRC notices within 8."""
_STEPS_BEFORE, _STEPS_AFTER = 3, 4
_LEAST_STEPS = 10
_MOST_S = 100
"""Under flaps."""
_FALLS = 10
"""At least so many are expected: a run with fewer may show none."""
_MOST_DOWN = 0.1
"""Share of the T0-T1 links that are down at once."""


class Ratio(NamedTuple):
    """A ratio of the plan and of the small fabric, each with what it is made of. `unit`: `%`, or empty. `why`: what
    keeps it from being the same, if it is not."""

    what: str
    plan: float
    here: float
    unit: str
    of_plan: str
    of_here: str
    why: str

    @property
    def kept(self) -> bool:
        """Near enough for what follows from it."""
        return abs(self.here - self.plan) <= _NEAR * self.plan


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
    """The fabric, its job and its flaps. `t1`: of a plane; `evs`: of a QP, in each plane; `job`: hosts of it."""

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
        off = [abs(evs / t1 - share) for t1, evs in pairs]
        return next((pair for pair, error in zip(pairs, off, strict=True) if error <= _NEAR * share / 2),
                    pairs[off.index(min(off))])  # fmt: skip

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
        rate_bps, rtt_ns = suggest(self.planes, GROUPS * below, usual_capacity(MRC))
        return Shape(self.planes, GROUPS, self.t1, below, rate_bps, rtt_ns)

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
        """Of the job when nothing breaks: computation, then 2 (N - 1) phases of a ring (docs/scenario.md)."""
        shape, phases = self.shape, 2 * (len(self.job) - 1)
        packet_s = 1 / shape.port_pps
        wire_s = (ALLREDUCE_MIB << 20) / len(self.job) / shape.payload_bytes * packet_s / shape.planes
        return COMPUTE_MS / 1e3 + phases * (wire_s + shape.rtt_ns / 2e9 + 3 * packet_s)

    @property
    def fall_s(self) -> float:
        return FALL_T * self.shape.rtt_ns / 1e9

    @property
    def flaps_a_step(self) -> float:
        """As in the plan, if a run is long enough to see some and the fabric has links enough to bear them."""
        links = self.shape.planes * GROUPS * self.t1
        most = _MOST_DOWN * links * self.step_s / self.fall_s
        return min(max(self.plan.flaps_a_step, _FALLS / self._most_steps), most)

    @property
    def flaps_a_minute(self) -> float:
        return self.flaps_a_step * 60 / self.step_s

    @property
    def flap_steps(self) -> int:
        return min(max(ceil(_FALLS / self.flaps_a_step), _LEAST_STEPS), self._most_steps)

    @property
    def _most_steps(self) -> int:
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

    def ratios(self) -> Iterator[Ratio]:
        """Of the plan and here, kept or not."""
        plan, clos, shape = self.plan, self.plan.clos, self.shape
        yield Ratio("tiers", clos.tiers, TIERS, "", "", "", "")
        yield Ratio("planes of a NIC", clos.planes, shape.planes, "", "", "", f"a uSID numbers {MAX_PLANES} at most")
        paths, evs = shape.planes * self.t1, shape.planes * self.evs
        yield Ratio(
            "EVs of a QP, of its paths", 100 * plan.evs_used / clos.paths, 100 * evs / paths, "%",
            f"{plan.evs_used} of {clos.paths:,}", f"{evs} of {paths}", self._why_evs(),
        )  # fmt: skip
        yield Ratio(
            "QPs with an EV over a given T1, at most", min(100.0, 100 * plan.evs_used / clos.planes / plan.t1_a_plane),
            100 * self.evs / self.t1, "%", f"{plan.t1_a_plane} T1s a plane", f"{self.t1}",
            "the plan's T0s have several links to a T1, these have one" if plan.t1_a_plane < clos.half
            else self._why_evs(),
        )  # fmt: skip
        yield Ratio(
            "hosts in the job, and so its share of a T1", 100 * plan.job / clos.nics, 100 * len(self.job) / shape.hosts,
            "%", f"{plan.job:,} of {clos.nics:,}", f"{len(self.job)} of {shape.hosts}",
            f"it has as many hosts below either T0, of {shape.hosts_per_t0}",
        )  # fmt: skip
        yield Ratio(
            "T0-T1 flaps in a step of the job", plan.flaps_a_step, self.flaps_a_step, "", "",
            f"{self.flaps_a_minute:.3g} a minute, steps of {self.step_s:.3g} s", self._why_flaps(),
        )  # fmt: skip
        yield Ratio(
            "T0-T1 flaps that meet an EV in use", plan.flaps_met, self.flaps_met, "%",
            f"{plan.job_below_t0} hosts of the job below a T0", f"{self.job_pairs}", "a T0 has few hosts here",
        )  # fmt: skip
        yield Ratio("bandwidth that a lost NIC port takes", 100 / clos.planes, 100 / shape.planes, "%", "", "",
                    "as the planes")  # fmt: skip
        yield from self._of_size()

    def _of_size(self) -> Iterator[Ratio]:
        """What a fabric of 8 hosts cannot keep, but for small plans."""
        plan, clos, shape = self.plan, self.plan.clos, self.shape
        yield Ratio("hosts", clos.nics, shape.hosts, "", "", "", "each runs on these two cores")
        yield Ratio(
            "share of a plane that a lost T0-T1 link takes", 100 / clos.half, 100 / self.t1, "%",
            f"{clos.half} uplinks", f"{self.t1}", "as many T1s as keep the share of EVs",
        )  # fmt: skip
        yield Ratio("uplinks of a T0, of its hosts", 1, self.t1 / shape.hosts_per_t0, "", "", "",
                    "T1s cost little, hosts do the work; so uplinks are less loaded here")  # fmt: skip
        in_flight = plan.port_gbps * 1e9 * plan.rtt_s / 8 / WIRE_BYTES
        yield Ratio(
            "packets that fill a port for a round trip", in_flight, shape.plane_bdp_packets, "",
            f"{plan.port_gbps}G, {plan.rtt_s * 1e6:g} us", f"{shape.port_rate_bps / 1e6:g}M, {shape.rtt_ns / 1e6:g} ms",
            "two cores carry so many packets a second",
        )  # fmt: skip

    def _why_evs(self) -> str:
        if self.evs == 1:
            return f"one EV a plane is the least, and two cores build {self.t1} T1s in each of {self.planes} planes"
        return f"the nearest with {self.t1} T1s a plane"

    def _why_flaps(self) -> str:
        if self.flaps_a_step < self.plan.flaps_a_step:
            return f"more than {100 * _MOST_DOWN:g} % of these links would be down at once"
        return f"a run of {self._most_steps} steps would see too few"


def _met(share: float, hosts: int) -> float:
    """Chance, in percent, that a link of a T0 is on an EV in use, where each of so many hosts sends on one QP and
    receives on one, over that share of the uplinks each."""
    return 100 * (1 - (1 - share) ** (2 * hosts))
