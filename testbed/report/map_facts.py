"""What the mapper of a run found, for the summary: a line for each fault, and what it did. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mrc_testbed.testbed.checks.locating import FaultFound, LocatingScore
from mrc_testbed.testbed.checks.mapping import live_score
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount, with_rtts
from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.topos.units import plural


def mapper_lines(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Rows of a heading and a text; none without a mapper."""
    if record.scenario.mapper is None:
        return
    try:
        score = live_score(record)
    except NoData as lacking:
        yield "mapper", f"not known: {lacking}"
        return
    by_fault = gathered((one.span.fault, one) for one in score.faults)
    texts = [_fault_words(record, fault, found) for fault, found in by_fault.items()]
    for number_of_line, text in enumerate([*texts, _totals(record, score)]):
        yield ("" if number_of_line else "mapper"), text


def _fault_words(record: RunRecord, fault: str, found: Sequence[FaultFound]) -> str:
    """`located lossy after 410 ms, 19 rtt; cleared 1.8 s after its heal`; of several cycles the longest times."""
    located = [one.located_ns for one in found if one.located_ns is not None]
    if not located:
        return f"did not locate {fault}"
    some = f" {len(located)} of {len(found)} times," if len(found) > 1 else ""
    took = with_rtts(max(located), record.base_rtt_ns or record.scenario.shape().rtt_ns)
    text = f"located {fault}{some} after {took}"
    cleared = [one.cleared_ns for one in found if one.cleared_ns is not None]
    return f"{text}; cleared {amount(Dimension.TIME, max(cleared))} after its heal" if cleared else text


def _totals(record: RunRecord, score: LocatingScore) -> str:
    said = plural(len(score.accusations), "accusation")
    false = f", {score.falsely_accused} of what was whole" if score.accusations else ""
    done = [one.name for one in record.mapped.decisions if one.op == "deny"]
    times = ", ".join(f"{name} {plural(done.count(name), 'time')}" for name in dict.fromkeys(done))
    return f"{said}{false}{f'; denied {times}' if done else ''}"
