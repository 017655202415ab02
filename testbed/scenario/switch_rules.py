"""Rules about the faults that the port program makes: names of planes, EVs and hosts, and what has to be there too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush

from testbed.scenario.denial_rules import Talk
from testbed.scenario.fault_rules import Cycles, each_part
from testbed.scenario.faults import Effect, EvLoss, LinkRate, Place
from testbed.scenario.faults.names import unknown_name
from testbed.scenario.parts import Parts
from testbed.scenario.source import KeyPath
from testbed.scenario.units import format_rate
from testbed.scenario.wording import Mistake
from topos.plan import Plan
from topos.shape import MIN_RATE_BPS

MAX_RULES = 8
"""Rules that a port of the fabric can hold at once."""


def lacking(parts: Parts) -> Iterator[Mistake]:
    """What else a fault needs: the port program, and to be noticed."""
    for _, kind_path, fault in each_part(parts.faults):
        if fault.effect is Effect.RULES and parts.fabric.switch.use == "plain":
            needs = f"{fault.kind} needs the port program, and fabric.switch is plain; leave that out"
            yield Mistake(kind_path, needs, at_key=True)
        if fault.kind == "corrupt" and parts.icrc is False:
            unseen = "it would go unnoticed: the ICRC is off; add `endpoint: {icrc: true}`"
            yield Mistake(kind_path, unseen, at_key=True)


def switch_fault_mistakes(parts: Parts, cycles: Cycles, plan: Plan, talk: Talk) -> Iterator[Mistake]:
    """Ends, rates and numbers that do not fit the fabric."""
    for path, _, fault in each_part(parts.faults):
        if isinstance(fault, EvLoss):
            yield from _ends(fault, path, talk, plan)
        if isinstance(fault, LinkRate):
            yield from _rate(fault, path, plan.shape.port_rate_bps)
    yield from _too_many(cycles)


def _ends(fault: EvLoss, path: KeyPath, talk: Talk, plan: Plan) -> Iterator[Mistake]:
    sender = _no_end(fault.sender, talk, plan)
    peer = _no_end(fault.peer, talk, plan) if fault.peer else ""
    if sender:
        yield Mistake((*path, "from"), sender)
    if peer:
        yield Mistake((*path, "to"), peer)
    if not sender and not peer and plan.shape.t0_groups > 1:
        yield from _not_used(fault, path, talk, plan)


def _no_end(name: str, talk: Talk, plan: Plan) -> str:
    if name not in plan.host_by_name:
        return unknown_name("host", name, plan.host_by_name)
    return "" if name in talk.peers else f"{name} is not part of the workload and sends nothing"


def _not_used(fault: EvLoss, path: KeyPath, talk: Talk, plan: Plan) -> Iterator[Mistake]:
    group = plan.host_by_name[fault.sender].group
    peers = [fault.peer] if fault.peer else talk.peers[fault.sender]
    if all(plan.host_by_name[peer].group == group for peer in peers):
        who = fault.peer or f"every peer of {fault.sender} in the workload"
        below = f"{who} is below the T0 of {fault.sender}: no path between them leads over a T1"
        yield Mistake((*path, "to" if fault.peer else "from"), below)


def _rate(fault: LinkRate, path: KeyPath, most: int) -> Iterator[Mistake]:
    if not MIN_RATE_BPS <= fault.rate_bps < most:
        limits = f"{format_rate(MIN_RATE_BPS)} to less than the {format_rate(most)} of the port"
        yield Mistake((*path, "rate"), f"{format_rate(fault.rate_bps)} is outside {limits}")


def _too_many(cycles: Cycles) -> Iterator[Mistake]:
    """Rules are counted whenever some are added, by time and then in the order of the file."""
    by_rule = [(cycle, index) for index, each in cycles.items() for cycle in each if cycle.places]
    held: Counter[Place] = Counter()
    on: list[tuple[int, int]] = []
    said: set[int] = set()
    by_rule.sort(key=lambda item: item[0].begin_ns)
    for number, (cycle, index) in enumerate(by_rule):
        while on and on[0][0] <= cycle.begin_ns:  # what heals at this moment goes first
            held.subtract(by_rule[heappop(on)[1]][0].places)
        held.update(cycle.places)
        heappush(on, (cycle.end_ns, number))
        full = next((place for place in cycle.places if held[place] > MAX_RULES), None)
        if full and index not in said:
            said.add(index)
            what = f"needs rule {held[full]} at the {full.toward} end of {full.link}"
            yield Mistake(("faults", index), f"{what} at the same time; the limit of a port is {MAX_RULES}")
