"""Rules about the faults that the port program makes: names of planes, EVs and hosts, and what has to be there too."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from testbed.checks.expect import did_you_mean
from testbed.scenario.denylist import parse_paths
from testbed.scenario.faults import Changes, EvLoss, Fault, LinkRate, Target
from testbed.scenario.parts import Parts
from testbed.scenario.units import format_rate
from testbed.scenario.wording import Mistake
from topos.names import parse_switch
from topos.plan import Plan
from topos.shape import MIN_RATE_BPS

MAX_RULES = 8
"""Rules that a port of the fabric can hold at once."""


def no_plane(fault: Fault, name: str, plan: Plan) -> str:
    """What is wrong with the name of a plane, empty when nothing is."""
    paths = parse_paths(name)
    last = f"p{plan.shape.planes - 1}"
    if paths is None or paths.uplink is not None:
        return f"{name} is no plane; {fault.kind} needs one, such as {last}"
    return "" if paths.plane < plan.shape.planes else f"there is no plane {name!r}; there are p0..{last}"


def no_uplink(fault: Fault, name: str, plan: Plan) -> str:
    """What is wrong with the name of an EV's uplink, empty when nothing is."""
    t1 = [switch.name for switch in plan.switches if switch.tier == 1]
    if name in t1:
        return "" if plan.shape.t0_groups > 1 else f"below one T0 no path leads over {name}"
    if not t1:
        return f"this fabric has no T1, and an EV of {fault.kind} is a plane and an uplink"
    if parse_switch(name) is None or name in plan.switch_by_name:
        return f"{name} is no uplink; {fault.kind} needs an EV by its plane and T1, such as {t1[-1]}"
    return f"there is no switch {name!r}{did_you_mean(name, t1) or f'; there are {t1[0]}..{t1[-1]}'}"


def lacking(parts: Parts) -> Iterator[Mistake]:
    """What else a fault needs: the port program, and to be noticed."""
    for index, fault in parts.faults.items():
        if fault.changes is Changes.RULES and parts.fabric.switch.use == "plain":
            needs = f"{fault.kind} needs the port program, and fabric.switch is plain; leave that out"
            yield Mistake(("faults", index, fault.kind), needs, at_key=True)
        if fault.kind == "corrupt" and parts.icrc is False:
            unseen = "nobody would notice: the ICRC is off; write also `endpoint: {icrc: true}`"
            yield Mistake(("faults", index, fault.kind), unseen, at_key=True)


def switch_fault_mistakes(faults: dict[int, Fault], plan: Plan, taking_part: Iterable[str]) -> Iterator[Mistake]:
    """Ends, rates and numbers that do not fit the fabric. `taking_part`: the workload's hosts."""
    members = [name for name in taking_part if name in plan.host_by_name]
    yield from _ends(faults, members, plan)
    yield from _rates(faults, plan)
    yield from _too_many(faults, plan)


def _ends(faults: dict[int, Fault], members: Sequence[str], plan: Plan) -> Iterator[Mistake]:
    for index, fault in faults.items():
        if isinstance(fault, EvLoss):
            sender = _no_end(fault.sender, members, plan)
            peer = _no_end(fault.peer, members, plan) if fault.peer else ""
            if sender:
                yield Mistake(("faults", index, "from"), sender)
            if peer:
                yield Mistake(("faults", index, "to"), peer)
            if not sender and not peer and plan.shape.t0_groups > 1:
                yield from _not_used(fault, index, members, plan)


def _no_end(name: str, members: Sequence[str], plan: Plan) -> str:
    known = list(plan.host_by_name)
    if name not in plan.host_by_name:
        return f"there is no host {name!r}{did_you_mean(name, known) or f'; there are {known[0]}..{known[-1]}'}"
    return "" if name in members else f"{name} takes no part in the workload and sends nothing"


def _not_used(fault: EvLoss, index: int, members: Sequence[str], plan: Plan) -> Iterator[Mistake]:
    group = plan.host_by_name[fault.sender].group
    peers = [fault.peer] if fault.peer else members
    if all(plan.host_by_name[peer].group == group for peer in peers):
        who = fault.peer or "every other host of the workload"
        where = ("faults", index, "to" if fault.peer else "from")
        yield Mistake(where, f"{who} is below the T0 of {fault.sender}: no path between them leads over a T1")


def _rates(faults: dict[int, Fault], plan: Plan) -> Iterator[Mistake]:
    most = plan.shape.port_rate_bps
    for index, fault in faults.items():
        if isinstance(fault, LinkRate) and not MIN_RATE_BPS <= fault.rate_bps < most:
            limits = f"{format_rate(MIN_RATE_BPS)} to less than the {format_rate(most)} of the port"
            yield Mistake(("faults", index, "rate"), f"{format_rate(fault.rate_bps)} is outside {limits}")


def _too_many(faults: dict[int, Fault], plan: Plan) -> Iterator[Mistake]:
    """Rules are counted whenever one is added. A fault with a wrong name has no place and is left out."""
    places = {index: fault.places(plan) for index, fault in faults.items() if _placed(fault, plan)}
    for index, mine in places.items():
        begin = faults[index].at_ns
        # What stands later in the file and begins at the same time is added later.
        before = [n for n in places if (faults[n].at_ns, n) <= (begin, index) and begin < faults[n].end_ns]
        for place in dict.fromkeys(mine):
            count = sum(places[n].count(place) for n in before)
            if count > MAX_RULES:
                what = f"is rule number {count} on what comes to the {place.toward} end of {place.link}"
                yield Mistake(("faults", index), f"{what} at once; a port holds {MAX_RULES}")
                break


def _placed(fault: Fault, plan: Plan) -> bool:
    known: dict[Target, Container[str]] = {
        Target.LINK: plan.link_by_name,
        Target.SWITCH: plan.switch_by_name,
        Target.UPLINK: plan.switch_by_name,
        Target.PLANE: [f"p{plane}" for plane in range(plan.shape.planes)],
    }
    hosts = (name for name in (fault.how.sender, fault.how.peer) if name)
    targets = known.get(fault.target, ())
    return all(name in plan.host_by_name for name in hosts) and all(name in targets for name in fault.targets)
