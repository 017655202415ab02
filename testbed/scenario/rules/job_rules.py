"""Rules of several jobs of steps: each host in one of them, each with a name of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mrc_testbed.testbed.scenario.model.jobs import job_names
from mrc_testbed.testbed.scenario.model.step_models import StepEntry
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.topos.plan import Plan


def broken_job_rules(entries: Mapping[int, StepEntry], plan: Plan) -> Iterator[Mistake]:
    """All violations in the readable entries."""
    yield from _shared_hosts(entries, plan)
    seen: dict[str, int] = {}
    for (index, entry), name in zip(entries.items(), job_names(entries.values()), strict=True):
        if name in seen:
            yield Mistake(_name_place(index, entry), f"duplicate name {name!r}; workload.{seen[name]} has it")
        seen.setdefault(name, index)


def names_of_flows_too(entries: Mapping[int, StepEntry], flow_names: Collection[str]) -> Iterator[Mistake]:
    """Violations against the names of flows: `of NAME` would mean both."""
    for (index, entry), name in zip(entries.items(), job_names(entries.values()), strict=True):
        if name in flow_names:
            yield Mistake(_name_place(index, entry), f"{name!r} is also the name of flows; choose another name")


def _name_place(index: int, entry: StepEntry) -> KeyPath:
    where = ("workload", index, entry.kind)
    return (*where, "name") if entry.name else where


def _shared_hosts(entries: Mapping[int, StepEntry], plan: Plan) -> Iterator[Mistake]:
    """A rank program has one job of steps. The first host of a job that another one has too is named."""
    taken: dict[str, int] = {}
    for index, entry in entries.items():
        names = entry.all_host_names(plan.shape)
        shared = next((place for place, name in enumerate(names) if name in taken), None)
        if shared is not None:
            where: KeyPath = ("workload", index, entry.kind)
            place = (*where, "hosts", shared) if entry.hosts else where
            problem = f"{names[shared]} is already in the job of workload.{taken[names[shared]]}"
            yield Mistake(place, f"{problem}; give each job `hosts` of its own, or write one job with `step: [...]`")
        taken.update((name, index) for name in names if name not in taken)
