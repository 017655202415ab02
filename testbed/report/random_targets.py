"""What the patterns and random targets of a scenario resolve to, for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mrc_testbed.testbed.scenario import Occurrence, Scenario
from mrc_testbed.testbed.scenario.faults import Chaos, Entry, Fault
from mrc_testbed.testbed.scenario.faults.occurrence import titled
from mrc_testbed.testbed.scenario.faults.selection import Form
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.units import some

MAX_EVENTS_SHOWN = 8
MAX_NAMES_SHOWN = 8


def random_target_lines(scenario: Scenario) -> Iterator[str]:
    """A line per fault whose targets are not plain names, and one for each of the first events of chaos. With times as
    they are written, whatever the scale."""
    scenario = scenario.as_written
    for entry in scenario.faults:
        occurrences = [occurrence for occurrence in scenario.occurrences if occurrence.fault == entry.name]
        if isinstance(entry, Chaos):
            yield from _chaos(entry, occurrences)
        elif isinstance(entry, Fault) and any(aim.draw or aim.form is not Form.NAME for aim in entry.aims):
            names = list(dict.fromkeys(name for occurrence in occurrences for name in occurrence.targets))
            written = ", ".join(aim.text for aim in entry.aims)
            yield f"{entry.name}: {written}: {some(names, MAX_NAMES_SHOWN)}"


def fault_title(entry: Entry | None, occurrences: Sequence[Occurrence]) -> str:
    """A fault in words: kind, targets and the rest; of chaos, or of several kinds, the number of occurrences of
    each."""
    kinds = Counter(occurrence.kind for occurrence in occurrences)
    if isinstance(entry, Chaos) or len(kinds) != 1:
        counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "nothing drawn"
        return f"{entry.kind if entry else 'several'}: {counted}"
    targets = tuple(dict.fromkeys(name for occurrence in occurrences for name in occurrence.targets))
    return titled(occurrences[0].kind, targets, occurrences[0].parameters.words)


def _chaos(entry: Chaos, occurrences: Sequence[Occurrence]) -> Iterator[str]:
    if occurrences:
        yield f"{entry.name}: {fault_title(entry, occurrences)}"
    for occurrence in occurrences[:MAX_EVENTS_SHOWN]:
        length = format_duration(round(occurrence.end_ns - occurrence.begin_ns, -6))
        yield f"{entry.name}: at {format_duration(round(occurrence.begin_ns, -6))} for {length}: {occurrence.title}"
    if len(occurrences) > MAX_EVENTS_SHOWN:
        yield f"{entry.name}: and {len(occurrences) - MAX_EVENTS_SHOWN} more cycles"
