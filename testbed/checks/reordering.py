"""How much of the data came out of order. Pure.

RFC 4737, Type-P-Reordered: a packet is reordered if one with a higher sequence number came before it; the figure is its
ratio of reordered packets. A packet of MRC says that it is sent again, and then does not count. One of RoCE does not:
of those that came late, as many as were lost on the way may have been sent again. Where switches keep the order and
nothing is lost, or nothing came late, that leaves nothing open.
"""

from __future__ import annotations

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.counting import counted, final_counters
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import KnownBetween, nothing
from mrc_testbed.testbed.expect import EVERYBODY, Window


@computes("out_of_order")
def out_of_order(record: RunRecord, window: Window) -> float:
    """Data packets that came after one of a higher PSN over all that came, each PSN once. Raises KnownBetween where
    some may have been lost and sent again, NoData where none came."""
    late, came = (counted(record, window, name) for name in ("reordered", "data_received"))
    if not came:
        nothing("no data packet arrived")
    unsure = 0.0 if record.scenario.transport.has_paths else min(late, _lost_at_most(record, late))
    if unsure:
        reason = f"{late:g} packets came late, and up to {unsure:g} of them may have been lost and sent again"
        raise KnownBetween(reason, [(late - unsure) / came], [late / came])
    return late / came


def _lost_at_most(record: RunRecord, late: float) -> float:
    """Data packets of all hosts that did not arrive, as far as endpoints counted; packets that a fault copied would
    hide lost ones."""
    if record.copied_links:
        return late
    scenario = record.scenario
    arrived = ["data_received", "duplicates"]
    if scenario.transport.resends_all(scenario.own):
        arrived.append("out_of_order")
    everyone = final_counters(record, EVERYBODY).values()
    sent = sum(counters["data_sent"] for counters in everyone)
    return max(sent - sum(counters[name] for counters in everyone for name in arrived), 0)
