"""What the mapper says of a run by what its endpoints have seen, and how right that is by the truth of the folder.
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log

from mrc_testbed.testbed.checks.answers import Answer, AnswerState, answers_of_map
from mrc_testbed.testbed.checks.broken import BrokenSpan, broken_spans
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.fabric_places import FabricPlaces
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.locating import LocatingScore, score
from mrc_testbed.testbed.checks.path_evidence import GRACE, KEPT, evidence, period_ns
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.route_times import RouteTimes
from mrc_testbed.testbed.checks.spans_met import SpansMet
from mrc_testbed.testbed.checks.windows import workload_ns
from mrc_testbed.testbed.evidence.endpoints import SETTLE
from mrc_testbed.testbed.mapper.locate import MOST_LOSS, NOISE, WHOLE, gate_of
from mrc_testbed.testbed.mapper.mapper import MapChange, PathMapper
from mrc_testbed.testbed.mapper.suspects import SuspectTable

LEAST_PERIODS = SETTLE + 1
"""What was broken for less need not be named: it is well again before its losses have settled and a period is over."""


@dataclass(frozen=True, slots=True)
class FabricMap:
    """What the mapper says of a run. `routes`: ways of packets that were told of; `periods`: how many there were, each
    of `period_ns`; `late`, `stalled`: rows of evidence left out (`PathMapper`); `expected`: what was broken, and asked
    for as far as packets could show it."""

    changes: tuple[MapChange, ...]
    routes: RouteTimes
    period_ns: int
    periods: int
    late: int
    stalled: int
    expected: tuple[BrokenSpan, ...]


@derived
def fabric_map(record: RunRecord) -> FabricMap:
    """Let the mapper hear what endpoints told, period by period. Raises RecordError."""
    table = SuspectTable(record.plan)
    length_ns = period_ns(record)
    mapper = PathMapper(table, length_ns, SETTLE)
    met = SpansMet(broken_spans(record), table)
    changes: list[MapChange] = []
    routes = RouteTimes(KEPT * length_ns)
    periods = 0
    for end_ns, rows in evidence(record, table):
        met.add(rows)
        routes.add(rows)
        changes += mapper.turn(end_ns, rows)
        periods += 1
    gate = gate_of(table) + WHOLE
    expected = met.expected(LEAST_PERIODS * length_ns, lambda share: packets_to_show(share, gate))
    return FabricMap(tuple(changes), routes, length_ns, periods, mapper.late, mapper.stalled, tuple(expected))


def packets_to_show(share: float, gate: float) -> int:
    """How many packets something must meet until its losses show, by the gate over the divergence of what it loses from
    what chance loses, each packet's."""
    share = min(max(share, 2 * NOISE), MOST_LOSS)
    divergence = share * log(share / NOISE) + (1 - share) * log((1 - share) / (1 - NOISE))
    return ceil(gate / divergence)


def map_answers(record: RunRecord) -> list[Answer]:
    """What the mapper says, as answers; where no link was seen, or hosts do not choose paths, it is not sure that
    nothing is broken. Raises NoData where the workload never began."""
    sees = record.scenario.transport.names_paths and fabric_map(record).routes
    quiet = AnswerState.HEALTHY if sees else AnswerState.UNSURE
    return answers_of_map(fabric_map(record).changes, workload_ns(record)[0], quiet)


def score_answers(record: RunRecord, answers: Sequence[Answer]) -> LocatingScore:
    """Answers of anybody against the truth of a run. Raises NoData where the workload never began."""
    found = fabric_map(record)
    places = FabricPlaces(record.plan, SuspectTable(record.plan), found.routes)
    return score(found.expected, answers, places, Interval(*workload_ns(record)), GRACE * found.period_ns)


def unseen_links(record: RunRecord) -> list[str]:
    """Links that no packet surely crossed, of those that hosts told of: nothing can be said of them."""
    table = SuspectTable(record.plan)
    crossed = {element for route in fabric_map(record).routes for element in route}
    return [name for name in record.plan.link_by_name if not table.named(name).elements & crossed]
