"""Rules about faults: do their targets exist, do they fit into the run, has each a name of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.scenario.faults import Entry, Flap, Occurrence, Part, TransceiverFlap, UnsettledError
from testbed.scenario.faults.base import SHORTEST_OUTAGE_NS
from testbed.scenario.parts import Parts
from testbed.scenario.units import format_duration
from testbed.scenario.wording import Mistake
from topos.plan import Plan

Cycles = Mapping[int, tuple[Occurrence, ...]]
"""What the entries of `faults` come down to, by their numbers; those that mean nothing in the fabric are left out."""


def settled(parts: Parts, plan: Plan) -> tuple[dict[int, tuple[Occurrence, ...]], list[Mistake]]:
    """Every entry with its targets and times, and what is wrong with the others."""
    found: dict[int, tuple[Occurrence, ...]] = {}
    wrong: list[Mistake] = []
    for index, entry in parts.faults.items():
        try:
            found[index] = entry.cycles(plan, parts.seed)
        except UnsettledError as error:
            wrong += [Mistake(("faults", index, *path), message) for path, message in error.mistakes]
    return found, wrong


def each_part(faults: Mapping[int, Entry]) -> Iterator[Part]:
    """Every fault of one kind, alone or in chaos, with its paths from the root."""
    for index, entry in faults.items():
        for path, kind_path, fault in entry.parts():
            yield Part(("faults", index, *path), ("faults", index, *kind_path), fault)


def flap_mistakes(faults: Mapping[int, Entry]) -> Iterator[Mistake]:
    """Flaps that are too quick, however their times are drawn."""
    for path, _, fault in each_part(faults):
        if isinstance(fault, Flap):
            down_ns, up_ns = fault.down_ns, fault.period_ns - fault.down_ns
            if min(down_ns, up_ns) * (1 - fault.spread) < SHORTEST_OUTAGE_NS:
                cycle = f"{format_duration(down_ns)} down and {format_duration(up_ns)} up"
                less = "both must be at least 1ms" + (", the jitter taken off" if fault.jitter else "")
                yield Mistake((*path, "period"), f"makes {cycle}; {less}")


def transceiver_mistakes(faults: Mapping[int, Entry], plan: Plan) -> Iterator[Mistake]:
    """Ports that a T0 of this fabric does not have."""
    ports = plan.shape.hosts_per_t0
    for path, _, fault in each_part(faults):
        if isinstance(fault, TransceiverFlap):
            has = f"a T0 has host ports 0 to {ports - 1}"
            if fault.first >= ports:
                yield Mistake((*path, "first"), f"there is no port {fault.first}; {has}")
            elif fault.ports is not None and fault.first + fault.ports > ports:
                yield Mistake((*path, "ports"), f"{fault.ports} ports from port {fault.first} on; {has}")


def name_mistakes(faults: Mapping[int, Entry]) -> Iterator[Mistake]:
    """Names that two faults have."""
    seen: dict[str, int] = {}
    for index, fault in faults.items():
        if fault.name in seen:
            yield Mistake(("faults", index, "name"), f"duplicate name {fault.name!r}; fault {seen[fault.name]} has it")
        seen.setdefault(fault.name, index)
