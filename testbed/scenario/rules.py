"""Rules that look at more than one key: does the shape exist, do names, do faults fit into the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from testbed.checks.expect import did_you_mean
from testbed.scenario.denial_rules import denial_mistakes
from testbed.scenario.expect_rules import LATEST_START, broken_scopes, broken_windows
from testbed.scenario.faults import Changes, Fault, LinkFlap, Target
from testbed.scenario.fields import Model
from testbed.scenario.flow_rules import broken_flow_rules
from testbed.scenario.models import MAX_ALLREDUCE_BYTES, Fabric, default_time_limit_ns
from testbed.scenario.parts import Parts
from testbed.scenario.switch_rules import lacking, no_plane, no_uplink, switch_fault_mistakes
from testbed.scenario.units import format_duration, format_size
from testbed.scenario.wording import Mistake
from testbed.scenario.workloads import FlowSet, Train, flow_set
from topos.names import link_name, parse_host, parse_switch
from topos.plan import Plan, build_plan
from topos.shape import Shape, ShapeError

SHORTEST_OUTAGE_NS = 1_000_000
"""A link cannot be taken down and up again faster than this in a way that means anything."""
MAX_NODES = 2048
"""A plan with more nodes than this never fits one machine; building it would only waste time."""

_ONE_AT_A_TIME = {
    Changes.PORTS: "this version has one fault at a time that takes a link down",
    Changes.RATE: "a link has one rate at a time",
}

MAX_PROGRAM_SIZE = 256_000
"""Steps times ranks squared: every rank's program is written out step by step, about 1 kB of memory for each unit."""


def broken_rules(parts: Parts) -> list[Mistake]:
    """Every rule across keys that the readable parts break."""
    found = list(_impossible_shape(parts.fabric))
    plan = build_plan(parts.fabric.shape()) if parts.whole_fabric and not found else None
    job: Train | FlowSet | None = parts.train
    if plan:
        found += _workload(parts.train, plan)
        wrong_flows = list(broken_flow_rules(parts.flows, plan))
        found += wrong_flows
        if parts.flows and not wrong_flows and not job:
            job = flow_set(list(parts.flows.values()), plan.shape)
        found += _targets(parts.faults, plan)
        members = job.host_names(plan.shape) if job else tuple(plan.host_by_name)
        found += denial_mistakes(parts, plan, members)
        found += switch_fault_mistakes(parts.faults, plan, members)
    found += _times(parts, job, plan.shape if plan else None)
    found += _flaps(parts.faults)
    found += _overlaps(parts.faults, plan)
    found += lacking(parts)
    found += _names(parts.faults)
    found += broken_windows(parts, job, plan.shape if plan else None)
    if job and plan and parts.all_workload:
        found += broken_scopes(parts.expectations, job, plan)
    return found


def _impossible_shape(fabric: Fabric) -> Iterator[Mistake]:
    """All limits that are broken, found by putting the usual value in place of each wrong one."""
    usual = Fabric.model_validate({})
    while True:
        try:
            shape = fabric.shape()
        except ShapeError as error:
            name = _attribute(fabric, error.field)
            yield Mistake(("fabric", error.field), error.limit)
            fabric = fabric.model_copy(update={name: getattr(usual, name)})
        else:
            if shape.hosts + shape.switches > MAX_NODES:
                many = f"{shape.hosts} hosts and {shape.switches} switches; the limit is {MAX_NODES} in all"
                yield Mistake(("fabric",), many)
            return


def _attribute(model: Model, key: str) -> str:
    return next(name for name, field in type(model).model_fields.items() if (field.alias or name) == key)


def _workload(train: Train | None, plan: Plan) -> Iterator[Mistake]:
    if train is None:
        return
    where = ("workload", 0, "train")
    for index, name in enumerate(train.hosts):
        if name not in plan.host_by_name:
            yield Mistake((*where, "hosts", index), _unknown("host", name, plan.host_by_name))
        elif name in train.hosts[:index]:
            yield Mistake((*where, "hosts", index), f"{name} stands here twice")
    ranks = len(train.host_names(plan.shape))
    if not ranks <= train.allreduce_bytes <= MAX_ALLREDUCE_BYTES:
        limits = f"{ranks} bytes (one for each of {ranks} hosts) to {format_size(MAX_ALLREDUCE_BYTES)}"
        yield Mistake((*where, "allreduce"), f"{format_size(train.allreduce_bytes)} is outside {limits}")
    most = MAX_PROGRAM_SIZE // ranks**2
    if train.steps > most:
        yield Mistake((*where, "steps"), f"{train.steps} steps are more than the {most} that {ranks} ranks can have")


def _targets(faults: dict[int, Fault], plan: Plan) -> Iterator[Mistake]:
    for index, fault in faults.items():
        if fault.target is Target.PATH:  # see denial_rules
            continue
        for position, target in enumerate(fault.targets):
            path = ("faults", index, fault.kind)
            # A single name is written without a list; the place of an item that is not there is its parent's.
            where = (*path, position) if len(fault.targets) > 1 else path
            message = _no_target(fault, target, plan)
            if message:
                yield Mistake(where, message)
            elif target in fault.targets[:position]:
                yield Mistake(where, f"{target} stands here twice")


def _no_target(fault: Fault, target: str, plan: Plan) -> str:
    if fault.target is Target.PLANE:
        return no_plane(fault, target, plan)
    if fault.target is Target.UPLINK:
        return no_uplink(fault, target, plan)
    wants_switch = fault.target is Target.SWITCH
    known: Iterable[str] = plan.switch_by_name if wants_switch else plan.link_by_name
    if target in known:
        return ""
    if wants_switch and target in plan.host_by_name:
        return f"{target} is a host; {fault.kind} needs a switch, such as {plan.switches[-1].name}"
    if wants_switch and ":" in target:
        return f"{target} is not a switch; {fault.kind} needs one, such as {plan.switches[-1].name}"
    if not wants_switch and ":" not in target and (parse_host(target) or parse_switch(target)) is not None:
        return f"{target} is one node; {fault.kind} needs a link by its two ends, such as {plan.links[-1].name}"
    return _unknown("switch" if wants_switch else "link", target, known)


def _unknown(noun: str, name: str, known: Iterable[str]) -> str:
    known = list(known)
    near, _, far = name.partition(":")
    if link_name(far, near) in known:
        return f"there is no {noun} {name!r}; the end nearer to the hosts comes first: {link_name(far, near)!r}"
    some = f"{known[0]}..{known[-1]}" if known else "none in this fabric"
    return f"there is no {noun} {name!r}{did_you_mean(name, known) or f'; there are {some}'}"


def _times(parts: Parts, job: Train | FlowSet | None, shape: Shape | None) -> Iterator[Mistake]:
    estimate = job.estimate_ns(shape) if job and shape else None
    last_heal = max((fault.end_ns for fault in parts.faults.values()), default=0)
    limit = parts.time_limit_ns or (default_time_limit_ns(estimate, last_heal) if estimate is not None else None)
    if estimate and parts.time_limit_ns and parts.time_limit_ns < estimate:
        about = f"{_rough(estimate)}, the time that the workload takes without faults"
        yield Mistake(("time_limit",), f"is shorter than {about}")
    for index, fault in parts.faults.items():
        if estimate is not None and fault.at_ns > LATEST_START * estimate:
            late = f"begins at {format_duration(fault.at_ns)}, but the workload takes about {_rough(estimate)} in all"
            yield Mistake(("faults", index, "at"), late + "; begin earlier or make the workload longer")
        elif limit is not None and fault.end_ns > limit:
            over = f"ends at {format_duration(fault.end_ns)}, after the time limit of {format_duration(limit)}"
            yield Mistake(("faults", index, "at"), over)


def _rough(value_ns: int) -> str:
    return f"{value_ns / 1e9:.1f}s"


def _flaps(faults: dict[int, Fault]) -> Iterator[Mistake]:
    for index, fault in faults.items():
        if not isinstance(fault, LinkFlap):
            continue
        down = fault.outages[0].up_ns - fault.at_ns
        shortest = min(down, fault.period_ns - down)
        if shortest < SHORTEST_OUTAGE_NS:
            cycle = f"{format_duration(down)} down and {format_duration(fault.period_ns - down)} up"
            yield Mistake(("faults", index, "period"), f"makes {cycle}; both must be at least 1ms")


def _overlaps(faults: dict[int, Fault], plan: Plan | None) -> Iterator[Mistake]:
    """Two faults may not take the ports of a link down, or change its rate, at once: the first to heal would mend what
    the other broke. Rules of the port program stand side by side.
    """
    for (_, first), (index, second) in combinations(faults.items(), 2):
        if first.at_ns < second.end_ns and second.at_ns < first.end_ns:
            shared = _shared(first, second, plan)
            if shared:
                when = f"{format_duration(first.at_ns)} to {format_duration(first.end_ns)}"
                what = f"overlaps {first.name!r} ({when}) on {shared[0]}"
                yield Mistake(("faults", index), f"{what}; {_ONE_AT_A_TIME[second.changes]}")


def _shared(first: Fault, second: Fault, plan: Plan | None) -> Sequence[str]:
    if first.changes is not second.changes or first.changes not in _ONE_AT_A_TIME:
        return ()
    if plan is None or first.changes is Changes.RATE:
        return [name for name in second.targets if name in first.targets]
    broken = set(first.broken_links(plan))
    return [name for name in second.broken_links(plan) if name in broken]


def _names(faults: dict[int, Fault]) -> Iterator[Mistake]:
    seen: dict[str, int] = {}
    for index, fault in faults.items():
        if fault.name in seen:
            yield Mistake(("faults", index, "name"), f"{fault.name!r} is the name of fault {seen[fault.name]} already")
        seen.setdefault(fault.name, index)
