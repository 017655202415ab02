"""Rules about faults by the port program: it must be available, and a port holds a limited number of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from mrc_testbed.testbed.scenario.faults import Entry, LinkEnd
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.rules.fault_rules import Occurrences, each_part
from mrc_testbed.testbed.scenario.text.mistake import Mistake

MAX_RULES = 8
"""Rules per port."""


def lacking_program(scenario: Scenario, faults: Mapping[int, Entry]) -> Iterator[Mistake]:
    """Faults that the port program makes, in a fabric without it."""
    for _, kind_path, fault in each_part(faults):
        if fault.effect.needs_program and scenario.fabric.switch.use == "plain":
            needs = f"{fault.kind} needs the port program, and fabric.switch is plain; remove that key"
            yield Mistake(kind_path, needs, at_key=True)


def too_many_rules(occurrences: Occurrences) -> Iterator[Mistake]:
    """Counts rules at each addition, by time and then in file order."""
    by_rule = [(occurrence, index) for index, each in occurrences.items() for occurrence in each if occurrence.places]
    held: Counter[LinkEnd] = Counter()
    on: list[tuple[int, int]] = []
    reported: set[int] = set()
    by_rule.sort(key=lambda item: item[0].begin_ns)
    for number, (occurrence, index) in enumerate(by_rule):
        while on and on[0][0] <= occurrence.begin_ns:  # what heals at this moment goes first
            held.subtract(by_rule[heappop(on)[1]][0].places)
        held.update(occurrence.places)
        heappush(on, (occurrence.end_ns, number))
        full = next((place for place in occurrence.places if held[place] > MAX_RULES), None)
        if full and index not in reported:
            reported.add(index)
            what = f"needs rule {held[full]} at the {full.toward} end of {full.link}"
            yield Mistake(("faults", index), f"{what} at the same time; the limit of a port is {MAX_RULES}")
