"""Trace and ping: which questions are asked, hop by hop, and what the answers say about a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from statistics import median

from mrc_testbed.testbed.oam.probes import HopAnswer, HopProber, HopSays, Probe
from mrc_testbed.topos import names, usid
from mrc_testbed.topos.graph import Way
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.usid import PathId

SHOWN_BY = 2
"""Packets of the path itself that end at a switch. A switch says it to a host once a second, after a burst of six."""


@dataclass(frozen=True, slots=True)
class TracedHop:
    """What was heard of one hop.

    `node`: who should answer. `passing`: answers to packets of the path; `asked`: questions to the node itself, and
    `replies` to them.
    """

    number: int
    node: str
    passing: tuple[HopAnswer, ...]
    asked: int
    replies: tuple[HopAnswer, ...]

    @property
    def rtt_ns(self) -> float | None:
        """The median of its own answers."""
        times = [answer.rtt_ns for answer in (*self.passing, *self.replies) if answer.by == self.node]
        return median(times) if times else None

    @property
    def answered(self) -> int:
        """Questions that the node itself has answered."""
        return sum(answer.kind is HopSays.REPLY for answer in self.replies)

    @property
    def heard(self) -> bool:
        """Anything came back from the node that should be here."""
        return self.rtt_ns is not None

    @property
    def stop(self) -> HopAnswer | None:
        """What says that a packet of the path goes no further."""
        ends = HopSays.NO_ROUTE, HopSays.NOT_TAKEN
        answers = (*self.passing, *self.replies)
        return next((answer for answer in answers if answer.kind in ends or answer.by != self.node), None)


@dataclass(frozen=True, slots=True)
class Traced:
    """A path that is asked about: `nodes` are its switches, and the host at the end."""

    plan: Plan
    source: Host
    target: Host
    path: PathId

    @property
    def way(self) -> Way:
        """Its switches, as places of the plane."""
        return self.plan.ways(self.source, self.target)[self.path.uplink]

    @property
    def nodes(self) -> list[str]:
        """Who is on it, in order."""
        return [*self.plan.switches_on_path(self.source, self.target, self.path), self.target.name]

    @property
    def has_way_back(self) -> bool:
        """True if the host at the end has a route for its answer."""
        return self.source in self.plan.peers_of(self.target)

    def hops(self, prober: HopProber, each: int) -> Iterator[TracedHop]:
        """Ask one hop after the other, with `each` questions to the node itself; until one says that it ends there."""
        numbers = count()
        *switches, host = self.nodes
        for number, node in enumerate(switches, 1):
            hop = self._hop(prober, number, node, each, numbers)
            yield hop
            if hop.stop is not None:
                return
        if self.has_way_back:
            replies = _came(prober.ask([self._probe(len(switches) + 1, next(numbers)) for _ in range(each)]))
            yield TracedHop(len(switches) + 1, host, (), each, replies)

    def _hop(self, prober: HopProber, number: int, node: str, each: int, numbers: Iterator[int]) -> TracedHop:
        passing = [self._probe(number, next(numbers)) for _ in range(SHOWN_BY)]
        asking = [Probe(self.source, self.path.plane, self.way, number, next(numbers)) for _ in range(each)]
        answers = prober.ask([*passing, *asking])
        shown, replies = _came(answers[:SHOWN_BY]), _came(answers[SHOWN_BY:])
        if replies and not shown:  # their answers may have gone another way back than those
            shown = _came(prober.ask([self._probe(number, next(numbers)) for _ in range(SHOWN_BY)]))
        return TracedHop(number, node, shown, each, replies)

    def _probe(self, hops: int, number: int) -> Probe:
        return Probe(self.source, self.path.plane, self.way, hops, number, self.target, self.path)


def _came(answers: list[HopAnswer | None]) -> tuple[HopAnswer, ...]:
    return tuple(answer for answer in answers if answer is not None)


def reached(traced: Traced, hops: list[TracedHop]) -> bool:
    """True if the last node on the path that can answer has done so."""
    return hops[-1].heard and hops[-1].stop is None and hops[-1].node == asked_nodes(traced)[-1]


def asked_nodes(traced: Traced) -> list[str]:
    """Those on the path that can answer."""
    return traced.nodes if traced.has_way_back else traced.nodes[:-1]


def conclusion(traced: Traced, hops: list[TracedHop]) -> str:
    """What the answers say of the path in one line; empty where it loses nothing."""
    if (stop := hops[-1].stop) is not None:
        return _stopped(traced, hops[-1], stop)
    if not hops[-1].heard:
        return _silent(traced, hops)
    if hops[-1].answered < hops[-1].asked:
        lossy = next(hop for hop in hops if hop.answered < hop.asked)
        lost = hops[-1].asked - hops[-1].answered
        return f"loses {lost} of {hops[-1].asked}, there or back, and the first of all at {lossy.node}"
    if not traced.has_way_back:
        return f"{traced.target.name} is not asked: it has no route to {traced.source.name} (`fabric.routes: all`)"
    return ""


def _stopped(traced: Traced, hop: TracedHop, stop: HopAnswer) -> str:
    """A node has no route, or is not the one that belongs there."""
    if stop.by not in traced.nodes:
        before = traced.nodes[hop.number - 2] if hop.number > 1 else traced.source.name
        return f"ends at {stop.by}, which is not on the path: {before} sends there what is for {hop.node}"
    following = following_name(traced.plan, stop) or "what comes next"
    return f"ends at {stop.by}, which has no entry for {following}"


def _silent(traced: Traced, hops: list[TracedHop]) -> str:
    """Nothing comes from the end of the path."""
    last = max((hop.number for hop in hops if hop.heard), default=0)
    one, other = list(pairwise([traced.source.name, *asked_nodes(traced)]))[last]
    return f"ends behind {one}: the link {traced.plan.link_between(one, other).name} or {other} says nothing"


def following_name(plan: Plan, answer: HopAnswer) -> str:
    """The node that comes next on the list that an answer quotes; empty where none is left or it is not known."""
    return node_of_usid(plan, answer.by, answer.left[0]) if answer.left else ""


def node_of_usid(plan: Plan, at: str, value: int) -> str:
    """The name of the node that a uSID means at a switch; empty for one that is not of this fabric."""
    tier, plane, index = usid.split_usid(value)
    switch = plan.switch_by_name.get(at)
    if tier != usid.TIER_HOST:
        name = names.switch_name(plane, tier - usid.TIER_T0, index)
        return name if name in plan.switch_by_name else ""
    below = plan.shape.family.below[switch.index] if switch is not None and switch.tier == 0 else ()
    return names.host_name(below[index]) if index < len(below) else ""


def ways_to(plan: Plan, source: Host, switch: str) -> list[Way]:
    """The beginnings of ways from a host that end at a switch, shortest first; empty where none leads over it."""
    place = plan.switch_by_name[switch].place
    family = plan.shape.family
    ways = (way for group in range(family.tiers[0]) for way in family.ways_of(source.group, group) if place in way)
    return sorted({way[: way.index(place) + 1]: None for way in ways}, key=len)
