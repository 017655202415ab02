"""Rules about faults: existing targets, times that fit into the run, unique names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mrc_testbed.testbed.scenario.faults import Entry, Occurrence, PlacedFault, UnsettledError
from mrc_testbed.testbed.scenario.faults.base import Surroundings
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.topos.plan import Plan

Occurrences = Mapping[int, tuple[Occurrence, ...]]
"""The resolved entries of `faults`, by index; impossible ones are left out."""


def settled(file: Readable, plan: Plan) -> tuple[dict[int, tuple[Occurrence, ...]], list[Mistake]]:
    """Every entry resolved to targets and times, and the mistakes of the others."""
    found: dict[int, tuple[Occurrence, ...]] = {}
    wrong: list[Mistake] = []
    for index, entry in file.faults.items():
        try:
            found[index] = entry.occurrences(plan, file.scenario.seed)
        except UnsettledError as error:
            wrong += [Mistake(("faults", index, *path), message) for path, message in error.mistakes]
    return found, wrong


def each_part(faults: Mapping[int, Entry]) -> Iterator[PlacedFault]:
    """Every fault of one kind, alone or in chaos, with its paths from the root."""
    for index, entry in faults.items():
        for path, kind_path, fault in entry.parts():
            yield PlacedFault(("faults", index, *path), ("faults", index, *kind_path), fault)


def misfits(faults: Mapping[int, Entry], around: Surroundings) -> Iterator[Mistake]:
    """Impossible keys of each fault."""
    for path, kind_path, fault in each_part(faults):
        for key, message in fault.misfits(around):
            yield Mistake((*path, key), message) if key else Mistake(kind_path, message, at_key=True)


def name_mistakes(faults: Mapping[int, Entry]) -> Iterator[Mistake]:
    """Names of several entries that leave something to the seed: all of a name would draw the same."""
    seen: dict[str, int] = {}
    for index, fault in faults.items():
        first = seen.setdefault(fault.name, index)
        if first != index and (fault.drawn or faults[first].drawn):
            fix = "only entries that draw nothing can be one fault"
            yield Mistake(("faults", index, "name"), f"duplicate name {fault.name!r}; fault {first} has it, and {fix}")
