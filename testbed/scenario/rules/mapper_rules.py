"""Rules about `mapper` and `controller`: probes must come back within a period, what is denied must leave hosts a path,
and nobody else may deny beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mrc_testbed.testbed.scenario.faults.kinds.withdrawn import Deny
from mrc_testbed.testbed.scenario.model.mapper import LEAST_RTTS, TIMEOUT_RTTS, MapperSettings
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.units import format_duration


def mapper_mistakes(file: Readable) -> Iterator[Mistake]:
    """Of a file with a mapper or a controller."""
    mapper, controller = file.scenario.mapper, file.scenario.controller
    if mapper is not None:
        yield from _probing_mistakes(file, mapper)
    if mapper is not None and mapper.acts:
        beside = ["the controller"] if controller else []
        yield from _wrong_denier(file, ("mapper", "deny"), "write `deny: nothing`", beside)
    if controller is None:
        return
    yield from _wrong_denier(file, ("controller",), "remove this key")
    if not file.scenario.transport.names_paths:
        why = f"hosts choose no paths over {file.scenario.transport}, so there is nothing to deny"
        yield Mistake(("controller",), f"{why}; write `transport: mrc`, or remove this key")


def _wrong_denier(
    file: Readable, where: tuple[str, ...], instead: str, beside: Iterable[str] = ()
) -> Iterator[Mistake]:
    if file.whole_fabric and file.scenario.fabric.planes == 1 and where[0] == "mapper":
        yield Mistake(where, f"would leave hosts no path, with one plane; {instead}, or more planes")
    others = [*beside, *(["endpoint.denylist"] if file.scenario.endpoint.denylist else ())]
    others += [f"the fault {fault.name}" for fault in file.faults.values() if isinstance(fault, Deny)]
    if others:
        why = f"{others[0]} denies paths too, which the {where[0]} might allow again"
        yield Mistake(where, f"{why}; leave it out, or {instead}")


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
