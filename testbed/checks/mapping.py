"""How right the mapper was that looked on while the run went on: the metrics of the section `mapper`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from mrc_testbed.testbed.checks.answers import answers_of_map
from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.fabric_map import score_answers
from mrc_testbed.testbed.checks.locating import FaultFound, LocatingScore
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import KnownBetween, NoPart, NotApplicable, moments, workload_ns
from mrc_testbed.testbed.expect import Window


@derived
def live_score(record: RunRecord) -> LocatingScore:
    """What the mapper of the run said, held against the truth of its folder. Raises NotApplicable without a mapper,
    NoData where the workload never began."""
    if record.scenario.mapper is None:
        raise NotApplicable("the scenario has no `mapper`")
    return score_answers(record, answers_of_map(record.mapped.changes, workload_ns(record)[0]))


@computes("located")
def located(record: RunRecord, window: Window) -> Sequence[float]:
    """Times in ns from when a fault was in place until the mapper had accused all of it."""
    return _known(record, _faults(record, window), lambda one: one.located_ns, lambda one: one.span.placed_ns)


@computes("cleared")
def cleared(record: RunRecord, window: Window) -> Sequence[float]:
    """Times in ns from the heal of a fault that was located until the mapper accused nothing of it; none of one that
    broke again before."""
    score, end_ns = live_score(record), workload_ns(record)[1]
    mended = [
        one
        for one in (*score.faults, *score.beside)
        if window.fault in ("", one.span.fault) and one.located_ns is not None and one.span.end_ns < end_ns
    ]
    found = [one for one in mended if one.cleared_ns is not None or not _broke_again(one, score)]
    if not found:
        raise NoPart("nothing was located and mended")
    return _known(record, found, lambda one: one.cleared_ns, lambda one: one.span.end_ns)


@computes("map_precision")
def map_precision(record: RunRecord, window: Window) -> float:
    """The part of the accusations in the window that was right."""
    said = [one.right for one in live_score(record).accusations if moments(record, window)(one.t_ns)]
    if not said:
        raise NoPart("the mapper accused nothing")
    return sum(said) / len(said)


@computes("map_recall")
def map_recall(record: RunRecord, window: Window) -> float:
    """The part of the faults that began in the window, and that packets could show, that was located before the
    heal."""
    found = [one for one in live_score(record).faults if moments(record, window)(one.span.begin_ns)]
    if not found:
        raise NoPart("nothing was broken that packets could show")
    return sum(one.located_ns is not None for one in found) / len(found)


@computes("falsely_accused")
def falsely_accused(record: RunRecord, window: Window) -> float:
    """Accusations in the window of what was whole."""
    return sum(not one.right and moments(record, window)(one.t_ns) for one in live_score(record).accusations)


def _faults(record: RunRecord, window: Window) -> Sequence[FaultFound]:
    found = [one for one in live_score(record).faults if window.fault in ("", one.span.fault)]
    if not found:
        raise NoPart(f"{window.fault or 'nothing'} was not broken so that packets could show it")
    return found


def _broke_again(one: FaultFound, score: LocatingScore) -> bool:
    spans = (other.span for other in (*score.faults, *score.beside))
    return any(span.begin_ns > one.span.end_ns and span.links & one.span.links for span in spans)


def _known(
    record: RunRecord,
    found: Sequence[FaultFound],
    took: Callable[[FaultFound], int | None],
    since: Callable[[FaultFound], float],
) -> Sequence[float]:
    """How long each took. Raises KnownBetween where it did not happen in the time in which it counts."""
    times = [took(one) for one in found]
    known = [time for time in times if time is not None]
    if len(known) == len(times):
        return known
    end_ns = workload_ns(record)[1]
    least = [
        max(min(one.span.end_ns if one.located_ns is None else inf, end_ns) - since(one), 0) if time is None else time
        for one, time in zip(found, times, strict=True)
    ]
    lacking = ", ".join(dict.fromkeys(one.span.fault for one, time in zip(found, times, strict=True) if time is None))
    raise KnownBetween(f"not seen of {lacking}", least, [inf if time is None else time for time in times])
