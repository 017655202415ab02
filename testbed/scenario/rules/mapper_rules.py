"""Rules about `mapper`: its probes must come back within a period, what it denies must leave hosts a path, and nobody
else may deny beside it."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.scenario.faults.kinds.withdrawn import Deny
from mrc_testbed.testbed.scenario.model.mapper import LEAST_RTTS, TIMEOUT_RTTS, MapperSettings
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.units import format_duration


def mapper_mistakes(file: Readable) -> Iterator[Mistake]:
    """Of a file with a mapper."""
    mapper = file.scenario.mapper
    if mapper is None:
        return
    yield from _probing_mistakes(file, mapper)
    if not mapper.acts:
        return
    where = ("mapper", "deny")
    if file.whole_fabric and file.scenario.fabric.planes == 1:
        yield Mistake(where, "would leave hosts no path, with one plane; write `deny: nothing`, or more planes")
    beside = ["endpoint.denylist"] if file.scenario.endpoint.denylist else []
    beside += [f"the fault {fault.name}" for fault in file.faults.values() if isinstance(fault, Deny)]
    if beside:
        why = f"{beside[0]} denies paths too, which the mapper might allow again"
        yield Mistake(where, f"{why}; leave it out, or write `deny: nothing`")


def _probing_mistakes(file: Readable, mapper: MapperSettings) -> Iterator[Mistake]:
    if not file.whole_fabric or not mapper.probes:
        return
    shape = file.scenario.shape()
    least_ns, period_ns = LEAST_RTTS * shape.rtt_ns, mapper.period_ns(shape.rtt_ns)
    if not period_ns:
        yield Mistake(("mapper", "period"), "must be a time of more than 0, such as 200ms, where fabric.rtt is 0")
    elif period_ns < least_ns:
        why = f"a probe is answered after one rtt and given up after {TIMEOUT_RTTS}"
        yield Mistake(("mapper", "period"), f"{why}: at least {LEAST_RTTS} rtt ({format_duration(least_ns)})")
    most = max(map(len, shape.family.below))
    if mapper.owners > most and "owners" in mapper.model_fields_set:
        yield Mistake(("mapper", "owners"), f"at most {most}, the hosts below a T0")
