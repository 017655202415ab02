"""Rules of flows across keys: hosts, pairs, names, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.model.arrival_models import Arriving, PoissonEntry
from mrc_testbed.testbed.scenario.model.flow_models import VICTIMS, Ends, FlowEntry, Greedy, Incast
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.units import format_duration, format_size
from mrc_testbed.testbed.workloads.steady import settle_ns
from mrc_testbed.testbed.workloads.trace import MOST_FLOWS
from mrc_testbed.topos.plan import Plan

MIN_MESSAGE_BYTES = 1
MAX_MESSAGE_BYTES = 512 << 20


def broken_flow_rules(entries: Mapping[int, FlowEntry], plan: Plan, streams: bool = False) -> Iterator[Mistake]:
    """All violations in the readable entries. `streams`: messages are parts of a stream of bytes, whose packets the
    kernel cuts."""
    seen: dict[tuple[str, str], int] = {}
    names: dict[str, int] = {}
    for index, entry in entries.items():
        where = ("workload", index, entry.kind)
        if isinstance(entry, Greedy):
            yield from _times(entry, plan, where)
        yield from _message(entry.message_bytes, where)
        if isinstance(entry, Arriving):
            yield from _names(entry, index, entries)
            yield from () if streams else _packets(entry, plan, where)
        if isinstance(entry, PoissonEntry):
            yield from _number(entry, plan, where)
        for ends in entry.ends(plan.shape):
            yield from _ends(ends, entry, index, plan, seen)
        if entry.name and entry.name in names:
            yield Mistake((*where, "name"), f"duplicate name {entry.name!r}; workload.{names[entry.name]} has it")
        names.setdefault(entry.name, index)


def _times(entry: Greedy, plan: Plan, where: tuple[str | int, ...]) -> Iterator[Mistake]:
    settle = settle_ns(plan.shape)
    idle, least = max(settle, entry.warm_up_ns), max(2 * settle, entry.warm_up_ns + settle)
    if entry.for_ns is not None and entry.for_ns < least:
        problem = f"{format_duration(entry.for_ns)} is too short: the first {format_duration(idle)} are not measured"
        yield Mistake((*where, "for"), f"{problem}; at least {format_duration(least)}")
    if entry.total_bytes == 0:
        yield Mistake((*where, "bytes"), "must be more than 0, such as 64MiB")


def _message(size: int, where: tuple[str | int, ...]) -> Iterator[Mistake]:
    if not MIN_MESSAGE_BYTES <= size <= MAX_MESSAGE_BYTES:
        limits = f"{format_size(MIN_MESSAGE_BYTES)} to {format_size(MAX_MESSAGE_BYTES)}"
        yield Mistake((*where, "message"), f"{format_size(size)} is outside {limits}")


def _packets(entry: Arriving, plan: Plan, where: tuple[str | int, ...]) -> Iterator[Mistake]:
    """A flow in messages of other sizes takes more packets than its bytes need."""
    payload, size = plan.shape.payload_bytes, entry.message_bytes
    if size % payload:
        nearest = format_size(max(round(size / payload), 1) * payload)
        wrong = f"{format_size(size)} do not fill packets of {payload} B of data; write a multiple, such as {nearest}"
        yield Mistake((*where, "message"), wrong)


def _number(entry: PoissonEntry, plan: Plan, where: tuple[str | int, ...]) -> Iterator[Mistake]:
    """How many flows will be drawn: known before any is."""
    expected = entry.terms(plan.shape).expected_flows
    if expected > MOST_FLOWS:
        wrong = f"about {expected:.0f} flows would begin, more than {MOST_FLOWS}; write a shorter time or a lower load"
        yield Mistake((*where, "for"), wrong)
    elif expected < 1:
        yield Mistake((*where, "for"), f"about {expected:.2g} flows would begin; write a longer time or a higher load")


def _names(entry: Arriving, index: int, entries: Mapping[int, FlowEntry]) -> Iterator[Mistake]:
    others = {name for other, one in entries.items() if other != index for name in one.names()}
    if shared := next((name for name in entry.names() if name in others), None):
        wrong = f"flows of another entry are called {shared!r} too; give each entry a `name` of its own"
        yield Mistake(("workload", index, entry.kind), wrong)


def _ends(ends: Ends, entry: FlowEntry, index: int, plan: Plan, seen: dict[tuple[str, str], int]) -> Iterator[Mistake]:
    where = ("workload", index, entry.kind)
    unknown = [
        end for end in ((ends.src, ends.src_place), (ends.dst, ends.dst_place)) if end[0] not in plan.host_by_name
    ]
    for name, place in unknown:
        yield Mistake((*where, *place), f"{ends.said}{no_host(name, list(plan.host_by_name))}")
    if unknown:
        return
    place = (*where, *ends.src_place)
    pair = (ends.src, ends.dst)
    if ends.src == ends.dst:
        yield Mistake(place, f"{ends.src} cannot send to itself")
    elif pair in seen:
        there = "this entry" if seen[pair] == index else f"workload.{seen[pair]}"
        taken = f"{ends.src}->{ends.dst} is already in {there}"
        instead = "; put its flows into one trace" if isinstance(entry, Arriving) else "; for more QPs use `qps`"
        yield Mistake(place, f"{ends.said}{taken}{instead}")
    elif isinstance(entry, Incast) and ends.group == VICTIMS and ends.dst == entry.to:
        yield Mistake(place, f"goes to {ends.dst} itself, so it is no victim; put {ends.src} into `from`")
    seen.setdefault(pair, index)


def no_host(name: str, known: list[str]) -> str:
    """The message for an unknown host."""
    return f"there is no host {name!r}{did_you_mean(name, known) or f'; there are {known[0]}..{known[-1]}'}"
