"""How long BGP took to have all routes again after a heal, and how much it said. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from mrc_testbed.testbed.checks.amounts import MeasuredDuration
from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.left_behind import missing_routes
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import NoData, NotApplicable, Outage, occurrences, outages
from mrc_testbed.testbed.expect import Window
from mrc_testbed.topos.routes import Routing

STATIC = "switches learn no routes"
NOT_HEALED = "it was not healed"


@computes("route_back")
def times_until_full(record: RunRecord, window: Window) -> Sequence[float]:
    """Per occurrence of a fault the time from its heal until every T0 had all its next hops, in ns; 0 where none was
    missing. Raises NoData if one was not back, NotApplicable where nobody learns routes."""
    if record.scenario.routing is not Routing.BGP:
        raise NotApplicable(STATIC)
    return [_needed(record, outage) for outage in occurrences(record, window.fault)]


@computes("route_updates")
def route_updates(record: RunRecord, window: Window) -> float:
    """UPDATE messages of BGP since all routes were there. Raises NoData, NotApplicable where nobody learns routes."""
    if record.scenario.routing is not Routing.BGP:
        raise NotApplicable(STATIC)
    if record.route_updates is None:
        raise NoData("counters.json has no messages of BGP")
    return record.route_updates


def route_back(record: RunRecord, outage: Outage) -> MeasuredDuration:
    """The same for one occurrence."""
    if record.scenario.routing is not Routing.BGP:
        return MeasuredDuration(None, STATIC)
    try:
        return MeasuredDuration(_needed(record, outage))
    except NoData as lacking:
        return MeasuredDuration(None, str(lacking))


def _needed(record: RunRecord, outage: Outage) -> float:
    if outage.healed_ns is None:
        raise NoData(NOT_HEALED)
    next_ns = min((one.invoked_ns for one in outages(record) if one.invoked_ns > outage.healed_ns), default=inf)
    ends = [end for begin, end in missing_routes(record) if begin < next_ns and end > outage.invoked_ns]
    if not ends:
        return 0.0
    if ends[-1] > next_ns or ends[-1] == inf:
        raise NoData("some routes were still missing when the next fault began or the run ended")
    return max(0.0, ends[-1] - outage.healed_ns)
