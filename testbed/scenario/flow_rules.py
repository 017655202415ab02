"""Rules of flows that look at more than one key: hosts, pairs, memory, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.checks.expect import did_you_mean
from testbed.scenario.units import format_duration, format_size
from testbed.scenario.wording import Mistake
from testbed.scenario.workloads import VICTIMS, Ends, FlowEntry, Incast
from testbed.workloads.steady import settle_ns
from topos.plan import Plan

MIN_MESSAGE_BYTES = 1
MAX_MESSAGE_BYTES = 1 << 20
MAX_QPS_IN_ALL = 1024
MAX_MEMORY_BYTES = 1 << 30
"""All regions together: the machine holds every host's."""


def broken_flow_rules(entries: Mapping[int, FlowEntry], plan: Plan) -> Iterator[Mistake]:
    """Every rule that the readable entries break."""
    seen: dict[tuple[str, str], int] = {}
    sound: list[FlowEntry] = []
    for index, entry in entries.items():
        where = ("workload", index, entry.kind)
        wrong = [*_times(entry, plan, where), *_message(entry, where)]
        for ends in entry.ends(plan.shape):
            wrong += _ends(ends, entry, index, plan, seen)
        yield from wrong
        if not wrong:
            sound.append(entry)
    if len(sound) == len(entries):
        yield from _amount(entries, plan)


def _times(entry: FlowEntry, plan: Plan, where: tuple[str | int, ...]) -> Iterator[Mistake]:
    settle = settle_ns(plan.shape)
    if entry.for_ns is not None and entry.for_ns < 2 * settle:
        told = f"{format_duration(entry.for_ns)} is too short: the first {format_duration(settle)} are not measured"
        yield Mistake((*where, "for"), f"{told}; at least {format_duration(2 * settle)}")
    if entry.total_bytes == 0:
        yield Mistake((*where, "bytes"), "must be more than 0, such as 64MiB")


def _message(entry: FlowEntry, where: tuple[str | int, ...]) -> Iterator[Mistake]:
    size = entry.message_bytes
    if not MIN_MESSAGE_BYTES <= size <= MAX_MESSAGE_BYTES:
        limits = f"{format_size(MIN_MESSAGE_BYTES)} to {format_size(MAX_MESSAGE_BYTES)}"
        yield Mistake((*where, "message"), f"{format_size(size)} is outside {limits}")


def _ends(ends: Ends, entry: FlowEntry, index: int, plan: Plan, seen: dict[tuple[str, str], int]) -> Iterator[Mistake]:
    where = ("workload", index, entry.kind)
    unknown = [
        end for end in ((ends.src, ends.src_place), (ends.dst, ends.dst_place)) if end[0] not in plan.host_by_name
    ]
    for name, place in unknown:
        yield Mistake((*where, *place), _no_host(name, list(plan.host_by_name)))
    if unknown:
        return
    place = (*where, *ends.src_place)
    pair = (ends.src, ends.dst)
    if ends.src == ends.dst:
        yield Mistake(place, f"{ends.src} cannot send to itself")
    elif pair in seen:
        there = "this entry" if seen[pair] == index else f"workload.{seen[pair]}"
        yield Mistake(place, f"{ends.src}->{ends.dst} is in {there} already; for more of it write `qps`")
    elif isinstance(entry, Incast) and ends.group == VICTIMS and ends.dst == entry.to:
        yield Mistake(place, f"goes to {ends.dst} itself, so it is no victim; put {ends.src} into `from`")
    seen.setdefault(pair, index)


def _no_host(name: str, known: list[str]) -> str:
    return f"there is no host {name!r}{did_you_mean(name, known) or f'; there are {known[0]}..{known[-1]}'}"


def _amount(entries: Mapping[int, FlowEntry], plan: Plan) -> Iterator[Mistake]:
    flows = [entry.flow(ends) for entry in entries.values() for ends in entry.ends(plan.shape)]
    qps = sum(flow.qps for flow in flows)
    if qps > MAX_QPS_IN_ALL:
        yield Mistake(("workload",), f"{qps} QPs in all are more than {MAX_QPS_IN_ALL}")
    memory = sum(flow.qps * flow.region_bytes(plan.shape) for flow in flows)
    if memory > MAX_MEMORY_BYTES:
        needs = f"the flows need {memory >> 20} MiB of registered memory, the limit is {MAX_MEMORY_BYTES >> 20} MiB"
        yield Mistake(("workload",), f"{needs}; use fewer QPs or smaller messages")
