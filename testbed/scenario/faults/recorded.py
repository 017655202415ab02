"""The schedule of a run as plan.json holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mrc_testbed.testbed.scenario.faults.base import Fault
from mrc_testbed.testbed.scenario.faults.names import wrong_name
from mrc_testbed.testbed.scenario.faults.occurrence import Occurrence
from mrc_testbed.topos.plan import Plan


def read_occurrences(records: Any, plan: Plan, kinds: Mapping[str, type[Fault]]) -> tuple[Occurrence, ...]:
    """Parses the output of `Occurrence.as_record`, of the `kinds` of their scenario. Raises ValueError
    for the first malformed entry, or a name that `plan` lacks."""
    if not isinstance(records, list):
        raise ValueError("there is none")
    found = []
    for index, record in enumerate(records):
        try:
            one = Occurrence.from_record(record, kinds)
        except ValueError as error:
            raise ValueError(f"cycle {index}: {error}") from None
        wrong = next(_wrong(one, plan), None)
        if wrong:
            raise ValueError(f"cycle {index}: {wrong}")
        found.append(one)
    if len({one.key for one in found}) != len(found):
        raise ValueError("two cycles of a fault have the same number")
    return tuple(found)


def _wrong(one: Occurrence, plan: Plan) -> Iterator[str]:
    links = (*one.links, *(place.link for place in one.places))
    hosts = (*one.hosts, *(name for name in (one.parameters.sender, one.parameters.peer) if name))
    for names, known in ((links, plan.link_by_name), (hosts, plan.host_by_name)):
        yield from (f"{name} is not in this fabric" for name in names if name not in known)
    messages = (wrong_name(name, one.kind, one.model.target, plan) for name in one.targets)
    yield from (message for message in messages if message)
