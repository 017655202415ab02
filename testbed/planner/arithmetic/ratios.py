"""The ratios of a plan and of the small fabric made of it, side by side, kept or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mrc_testbed.testbed.planner.arithmetic.small import MOST_DOWN, NEAR, SmallFabric
from mrc_testbed.topos.shape import MAX_PLANES, WIRE_BYTES


@dataclass(frozen=True, slots=True)
class Ratio:
    """One of them. `unit`: `%`, or empty; `of_plan`, `of_here`: what each number is made of, in words. `why`: what
    keeps them from being the same, if they are not."""

    what: str
    plan: float
    here: float
    why: str = ""
    unit: str = ""
    of_plan: str = ""
    of_here: str = ""

    @property
    def kept(self) -> bool:
        """Near enough for what follows from it."""
        return abs(self.here - self.plan) <= NEAR * self.plan


def ratios_of(small: SmallFabric) -> Iterator[Ratio]:
    """Those that the small fabric is made to keep first."""
    yield Ratio("tiers", small.plan.clos.tiers, len(small.family.tiers))
    yield from _of_planes(small)
    yield from _of_evs(small)
    yield from _of_job(small)
    yield from _of_size(small)


def _of_planes(small: SmallFabric) -> Iterator[Ratio]:
    planned, here = small.plan.clos.planes, small.shape.planes
    why = f"a uSID numbers {MAX_PLANES} planes at most"
    yield Ratio("planes of a NIC", planned, here, why)
    yield Ratio("bandwidth that a lost NIC port takes", 100 / planned, 100 / here, why, "%")


def _of_evs(small: SmallFabric) -> Iterator[Ratio]:
    plan, clos, planes, ways = small.plan, small.plan.clos, small.shape.planes, small.ways
    top = f"T{clos.tiers - 1}s"
    if small.evs == 1:
        why = f"one EV a plane is the least, and two cores build {ways} {top} in each of {planes} planes"
    else:
        why = f"the nearest with {ways} {top} a plane"
    yield Ratio(
        what="EVs of a QP, of its paths",
        plan=100 * plan.evs_used / clos.paths,
        here=100 * small.evs / ways,
        why=why,
        unit="%",
        of_plan=f"{plan.evs_used} of {clos.paths:,}",
        of_here=f"{planes * small.evs} of {planes * ways}",
    )
    yield Ratio(
        what="QPs with an EV over a given T1, at most",
        plan=min(100.0, 100 * plan.evs_used / clos.planes / plan.t1_of_t0),
        here=min(100.0, 100 * small.evs / small.t1),
        why=_why_t1(small, why),
        unit="%",
        of_plan=f"{_T1S[clos.tiers]}: {plan.t1_of_t0}",
        of_here=f"{small.t1}",
    )
    if clos.tiers > 2:
        yield Ratio(
            what="QPs with an EV over a given T2, at most",
            plan=min(100.0, 100 * plan.evs_used / clos.planes / plan.top_a_plane),
            here=100 * small.evs / ways,
            why="the plan's T1s have several links to a T2, these have one" if plan.top_a_plane < clos.half**2 else why,
            unit="%",
            of_plan=f"T2s of a plane: {plan.top_a_plane}",
            of_here=f"{ways}",
        )


_T1S = {2: "T1s of a plane", 3: "T1s of a pod"}


def _why_t1(small: SmallFabric, why: str) -> str:
    if small.plan.clos.tiers > 2:
        return "a pod has fewer T1s here"
    return (
        "the plan's T0s have several links to a T1, these have one"
        if small.plan.t1_of_t0 < small.plan.clos.half
        else why
    )


def _of_job(small: SmallFabric) -> Iterator[Ratio]:
    plan, shape = small.plan, small.shape
    yield Ratio(
        what="hosts in the job, and so its share of a T1",
        plan=100 * plan.job / plan.clos.nics,
        here=100 * len(small.job) / shape.hosts,
        why=f"it has as many hosts {_SIDE[plan.clos.tiers]}, of {small.hosts_a_side}",
        unit="%",
        of_plan=f"{plan.job:,} of {plan.clos.nics:,}",
        of_here=f"{len(small.job)} of {shape.hosts}",
    )
    yield Ratio(
        what="T0-T1 flaps in a step of the job",
        plan=plan.flaps_a_step,
        here=small.flaps_a_step,
        why=_why_flaps(small),
        of_here=f"{small.flaps_a_minute:.3g} a minute, steps of {small.step_s:.3g} s",
    )
    yield Ratio(
        what="T0-T1 flaps that meet an EV in use",
        plan=plan.flaps_met,
        here=small.flaps_met,
        why="a T0 has few hosts here",
        unit="%",
        of_plan=f"hosts of the job below a T0: {plan.job_below_t0}",
        of_here=f"{small.job_below_t0}",
    )


_SIDE = {2: "below either T0", 3: "in either pod"}


def _why_flaps(small: SmallFabric) -> str:
    if small.flaps_a_step < small.plan.flaps_a_step:
        return f"more than {100 * MOST_DOWN:g} % of these links would be down at once"
    return f"a run of {small.most_steps} steps would see too few"


_KEEPS = {2: "T1s", 3: "T1s and T2s"}


def _of_size(small: SmallFabric) -> Iterator[Ratio]:
    """What a fabric of 8 hosts cannot keep, but for small plans."""
    plan, clos, shape = small.plan, small.plan.clos, small.shape
    yield Ratio("hosts", clos.nics, shape.hosts, "each runs on these two cores")
    yield Ratio(
        what="share of a plane that a lost T0-T1 link takes",
        plan=100 / clos.half,
        here=100 / small.t1,
        why=f"as many {_KEEPS[clos.tiers]} as keep the share of EVs",
        unit="%",
        of_plan=f"uplinks: {clos.half}",
        of_here=f"{small.t1}",
    )
    yield Ratio(
        what="uplinks of a T0, of its hosts",
        plan=1,
        here=small.t1 / small.family.hosts_per_t0,
        why="T1s cost little, hosts do the work; so uplinks are less loaded here",
    )
    yield Ratio(
        what="packets that fill a port for a round trip",
        plan=plan.port_gbps * 1e9 * plan.rtt_s / 8 / WIRE_BYTES,
        here=shape.plane_bdp_packets,
        why="two cores carry few packets a second",
        of_plan=f"{plan.port_gbps}G, {plan.rtt_s * 1e6:g} us",
        of_here=f"{shape.port_rate_bps / 1e6:g}M, {shape.rtt_ns / 1e6:g} ms",
    )
