"""Rules of jobs of steps across keys: hosts, axes, sizes, length of programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from mrc_testbed.hosts.operations import PARAMETERS, TOGETHER, ProgramError, read_operations, require
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.model.graph_model import GraphEntry
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.model.step_models import PlacedExchange, StepEntry
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.rules.flow_rules import MAX_MESSAGE_BYTES, no_host
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.testbed.scenario.text.units import format_size
from mrc_testbed.testbed.workloads.steps import ALL, Exchange
from mrc_testbed.topos.plan import Plan

MAX_OPERATIONS = {WorldKind.KERNEL: 500_000, WorldKind.VIRTUAL: 4_000_000}
"""Operations of all programs of an entry: about 1.2 kB of memory each. In virtual time an all-reduce of 256 hosts with
all the QPs that there may be (1024) is within it."""


def broken_step_rules(
    entries: Mapping[int, StepEntry], plan: Plan, world: WorldKind = WorldKind.KERNEL
) -> Iterator[Mistake]:
    """All violations in the readable entries."""
    for index, entry in entries.items():
        where = ("workload", index, entry.kind)
        wrong = [*_hosts(entry, plan, where), *_ranks(entry, plan, where), *_axes(entry, plan, where)]
        for placed in entry.placed():
            wrong += _exchange(entry, placed, plan, where)
        if not wrong:
            wrong += _length(entry, plan, world, where)
        yield from wrong
        if not wrong and any(placed.exchange.plugin for placed in entry.placed()):
            yield from _programs(entry, plan, where)


def _hosts(entry: StepEntry, plan: Plan, where: KeyPath) -> Iterator[Mistake]:
    for index, name in enumerate(entry.hosts):
        if name not in plan.host_by_name:
            yield Mistake((*where, "hosts", index), no_host(name, list(plan.host_by_name)))
        elif name in entry.hosts[:index]:
            yield Mistake((*where, "hosts", index), f"duplicate host {name}")
    if len(entry.host_names(plan.shape)) < 2 and not isinstance(entry, Programs):
        yield Mistake(where, "needs at least 2 hosts, and the fabric has 1")


def _ranks(entry: StepEntry, plan: Plan, where: KeyPath) -> Iterator[Mistake]:
    if isinstance(entry, GraphEntry) and entry.ranks != (hosts := len(entry.host_names(plan.shape))):
        place = (*where, "hosts") if entry.hosts else (*where, "file")
        yield Mistake(place, f"{entry.file} has {entry.ranks} ranks, and there are {hosts} hosts for them")


def _axes(entry: StepEntry, plan: Plan, where: KeyPath) -> Iterator[Mistake]:
    ranks, product = len(entry.host_names(plan.shape)), prod(size for _, size in entry.axes)
    if entry.axes and product != ranks:
        problem = f"{' x '.join(str(size) for _, size in entry.axes)} is {product}, and there are {ranks} hosts"
        yield Mistake((*where, "parallel"), f"{problem}; the product must be the number of hosts")


def _exchange(entry: StepEntry, placed: PlacedExchange, plan: Plan, where: KeyPath) -> Iterator[Mistake]:
    exchange, axes = placed.exchange, dict(entry.axes)
    message = exchange.terms.message_bytes
    if not 1 <= message <= MAX_MESSAGE_BYTES:
        limits = f"1B to {format_size(MAX_MESSAGE_BYTES)}"
        yield Mistake((*where, *placed.place, "message"), f"{format_size(message)} is outside {limits}")
    if exchange.axis != ALL and exchange.axis not in axes:
        yield Mistake((*where, *placed.place, "over"), _unknown(exchange.axis, axes))
        return
    ranks = axes.get(exchange.axis, len(entry.host_names(plan.shape)))
    if exchange.axis != ALL and ranks < 2:
        yield Mistake(
            (*where, *placed.place, "over"), f"along {exchange.axis!r} there is only one host; remove this entry"
        )
    if exchange.local != ALL:
        yield from _local(exchange, axes, ranks, (*where, *placed.place, "local"))
    least = exchange.collective.least_bytes(ranks)
    if exchange.terms.size_bytes < least:
        needs = f"a byte for each of {ranks} hosts" if least > 1 else "1B"
        yield Mistake((*where, *placed.size_place), f"{format_size(exchange.terms.size_bytes)} is less than {needs}")


def _unknown(axis: str, axes: Mapping[str, int]) -> str:
    hint = did_you_mean(axis, axes) or f"; `parallel` has {', '.join(axes) or 'none'}"
    return f"unknown axis {axis!r}{hint}"


def _local(exchange: Exchange, axes: Mapping[str, int], ranks: int, where: KeyPath) -> Iterator[Mistake]:
    """Of the axis whose ranks are one node."""
    if exchange.axis != ALL:
        yield Mistake(where, "says which ranks of all hosts are one node; leave it or `over` out")
    elif exchange.local not in axes:
        yield Mistake(where, _unknown(exchange.local, axes))
    elif axes[exchange.local] == ranks:
        yield Mistake(where, f"along {exchange.local!r} are all hosts: one node, which needs no network")


def _length(entry: StepEntry, plan: Plan, world: WorldKind, where: KeyPath) -> Iterator[Mistake]:
    operations = entry.job(plan.shape).operations
    if operations > MAX_OPERATIONS[world]:
        problem = f"the programs of all hosts would have {operations} operations; the limit is {MAX_OPERATIONS[world]}"
        elsewhere = ", or `world: virtual`" if operations <= MAX_OPERATIONS[WorldKind.VIRTUAL] else ""
        yield Mistake(where, f"{problem}; use fewer hosts, QPs or micro-batches{elsewhere}")


def _programs(entry: StepEntry, plan: Plan, where: KeyPath) -> Iterator[Mistake]:
    """Validates a plugin's programs as the hosts will, including writes past a region's end."""
    job = entry.job(plan.shape).plan()
    regions = {qp.id: qp.region_bytes for qp in job.qps}
    for host, tracks in job.programs.items():
        own = {qp.id: qp.region_bytes if qp.dst == host else 0 for qp in job.qps_of(host)}
        try:
            for number, track in enumerate(tracks):
                read_operations(track, f"track {number}", own.__getitem__)
                _require_room(track, regions)
        except ProgramError as error:
            yield Mistake(where, f"the program of {plan.hosts[host].name} cannot be run: {error}")
            return


def _require_room(operations: Sequence[Any], regions: Mapping[str, int]) -> None:
    """Raises ProgramError for a write past the end of a region."""
    for name, *values in operations:
        if name in ("put", "forward"):
            arguments = dict(zip(PARAMETERS[name], values, strict=True))
            end, size = arguments["remote_offset"] + arguments["length"], regions[arguments["qp"]]
            require(end <= size, f"{[name, *values]!r} ends at byte {end}, but the region has {size} bytes")
        for inner in values if name == TOGETHER else values[-1:] if name == "repeat" else ():
            _require_room(inner, regions)
