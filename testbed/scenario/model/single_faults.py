"""Schedules to be tried: what the faults of a scenario come to with another seed, each outage by itself and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrc_testbed.testbed.scenario.faults import Chaos, Entry, Fault, Occurrence
from mrc_testbed.testbed.scenario.faults.chance import Chance
from mrc_testbed.testbed.scenario.faults.classes import CLASSES, FITTING
from mrc_testbed.testbed.scenario.faults.selection import named
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.text.fields import COLD_START, FaultBegin
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.plan import Plan


@dataclass(frozen=True, slots=True)
class SingleFault:
    """One outage, to be written as an entry of `faults` that leaves nothing to the seed. Times in ns, after the
    workload's start; `cold`: before it. `keys`: its own keys as in YAML, besides time and targets."""

    name: str
    model: type[Fault]
    targets: tuple[str, ...]
    begin_ns: int
    length_ns: int
    cold: bool = False
    keys: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def entry(self) -> dict[str, Any]:
        """The entry of `faults`."""
        at = COLD_START if self.cold else format_duration(self.begin_ns)
        aims = self.targets[0] if len(self.targets) == 1 else list(self.targets)
        when = self.model.once(self.length_ns) or {}
        keys = {**self.keys, **when}
        own = {key: value for key, value in keys.items() if value is not None}
        return {"at": at, self.model.kind: aims, **own, "name": self.name}

    @property
    def title(self) -> str:
        """`at 1.2s for 300ms: link-flap p0-t0-0:p0-t1-1`."""
        at = "from cold start" if self.cold else f"at {format_duration(self.begin_ns)}"
        return f"{at} for {format_duration(self.length_ns)}: {self.model.kind} {', '.join(self.targets)}"


def settled_entries(scenario: Scenario, seed: int, move: bool) -> tuple[Entry, ...]:
    """The entries of `faults`; with `move` each but chaos begins at another time, and hits other targets."""
    if not move:
        return scenario.faults
    plan = scenario.written_plan()
    return tuple(
        _moved(entry, scenario.expected_ns, plan, seed, number) if isinstance(entry, Fault) else entry
        for number, entry in enumerate(scenario.faults)
    )


def occurrences_of(entries: Sequence[Entry], plan: Plan, seed: int) -> tuple[Occurrence, ...]:
    """What they come to. Raises UnsettledError."""
    return tuple(one for entry in entries for one in entry.occurrences(plan, seed))


def single_faults(
    entries: Sequence[Entry], written: Sequence[Mapping[str, Any]], plan: Plan, seed: int
) -> Iterator[SingleFault]:
    """The same, each by itself. `written`: the entries as in YAML, for their own keys."""
    for entry, raw in zip(entries, written, strict=True):
        for one in entry.occurrences(plan, seed):
            (model,) = (part.fault for part in entry.parts() if part.fault.kind == one.kind)
            keys = _own_keys(entry, type(model), raw)
            length_ns = one.end_ns - one.begin_ns
            yield SingleFault(entry.name, type(model), one.targets, one.begin_ns, length_ns, one.cold, keys)


def _own_keys(entry: Entry, model: type[Fault], raw: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(entry, Chaos):
        return {key: value for key, value in raw.items() if key not in ("at", "name", model.kind)}
    part = raw[Chaos.kind][model.kind]
    filled = {**(model.chaos or {}), **(part if isinstance(part, Mapping) else {})}
    return {key: value for key, value in filled.items() if key not in ("times", "of")}


def _moved(fault: Fault, length_ns: int, plan: Plan, seed: int, number: int) -> Fault:
    """At any time at which it ends within `length_ns`, as drawn from the seed, on as many targets of the same class."""
    chance = Chance(seed, fault.name, str(number), "moved")
    latest_ns = length_ns - (fault.end_ns - fault.at_ns)
    at = FaultBegin(chance.up_to(latest_ns)) if latest_ns > 0 and not fault.at.cold else fault.at
    targets = tuple(fault.chosen(plan, seed))
    pool = _class_of(targets, fault, plan)
    aims = tuple(map(named, chance.choose(pool, len(targets))))
    return fault.model_copy(update={"at": at, "aims": aims})


def _class_of(targets: Sequence[str], fault: Fault, plan: Plan) -> list[str]:
    """The smallest class that has all of them: NIC links, T1 switches, planes ..."""
    pools = [CLASSES[name](plan) for name in FITTING[fault.target]]
    return min((pool for pool in pools if set(targets) <= set(pool)), key=len, default=list(targets))
