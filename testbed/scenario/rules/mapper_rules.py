"""Rules about `mapper`: what it denies must leave hosts a path, and nobody else may deny beside it."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.scenario.faults.kinds.withdrawn import Deny
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake


def mapper_mistakes(file: Readable) -> Iterator[Mistake]:
    """Of a file with a mapper."""
    mapper = file.scenario.mapper
    if mapper is None or not mapper.acts:
        return
    where = ("mapper", "deny")
    if file.whole_fabric and file.scenario.fabric.planes == 1:
        yield Mistake(where, "would leave hosts no path, with one plane; write `deny: nothing`, or more planes")
    beside = ["endpoint.denylist"] if file.scenario.endpoint.denylist else []
    beside += [f"the fault {fault.name}" for fault in file.faults.values() if isinstance(fault, Deny)]
    if beside:
        why = f"{beside[0]} denies paths too, which the mapper might allow again"
        yield Mistake(where, f"{why}; leave it out, or write `deny: nothing`")
