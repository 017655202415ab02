"""Evidence for the mapper from the fabric of a run that is over. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from heapq import merge

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recorded_paths import reckoned, tells_paths, told
from mrc_testbed.testbed.evidence.endpoints import RunEvidence, hears_endpoints, period_of
from mrc_testbed.testbed.mapper.evidence import Observation, Witness
from mrc_testbed.testbed.mapper.mapper import SCALES
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.scenario.model.mapper import MapperSettings

GRACE = 10
"""Periods that endpoints may take until they know that something is well again: their probes come less often then."""
KEPT = SCALES[-1]
"""Periods for which what was seen is remembered."""


def period_ns(record: RunRecord) -> int:
    """The period of the mapper in a run that is over."""
    return period_of(record.scenario, record.probe_period_ns)


def witnesses(record: RunRecord) -> list[Witness]:
    """Who is heard of a run that is over."""
    heard = [Witness.ENDPOINTS] if hears_endpoints(record.scenario) else []
    return [*heard, Witness.PROBES] if record.probes and record.probe_period_ns else heard


def heard_alone(record: RunRecord, witness: Witness) -> RunRecord:
    """The same run with the evidence of this witness alone."""
    mapper = record.scenario.mapper or MapperSettings()
    only = mapper.model_copy(update={"evidence": (witness,)})
    return replace(record, scenario=record.scenario.model_copy(update={"mapper": only}))


def evidence(record: RunRecord, table: SuspectTable) -> Iterator[tuple[int, list[Observation]]]:
    """Period by period: when it ends, and what became known in it. Empty where endpoints told nothing."""
    length_ns = period_ns(record)
    source = RunEvidence(record.scenario, record.plan, table)
    seen = merge(*_told(record, source), key=lambda each: each[0])
    end_ns = last_ns = 0
    for t_ns, take in seen:
        end_ns = end_ns or max(t_ns, record.start_ns or 0) + length_ns
        while t_ns > end_ns:
            yield end_ns, source.turn(end_ns)
            end_ns += length_ns
        last_ns = t_ns
        take()
    if end_ns:
        source.end()
        yield max(end_ns, last_ns), source.turn(end_ns)


def _told(record: RunRecord, source: RunEvidence) -> Iterator[Iterable[tuple[int, Callable[[], None]]]]:
    """Moments, each with what hands over what was told then: of snapshots, of ports, of probes."""
    endpoints, probes = source.endpoints, source.probes
    if hears_endpoints(record.scenario):
        shots = (told if tells_paths(record) else reckoned)(record)
        yield ((shot.t_ns, partial(endpoints.counted, shot, rows)) for shot, rows in shots)
        changes = sorted(record.port_changes, key=lambda change: change.t_ns)
        yield ((change.t_ns, partial(endpoints.port, change)) for change in changes)
    if probes is not None:
        yield ((one.t_ns, partial(probes.take, one)) for one in sorted(record.probes, key=lambda one: one.t_ns))
