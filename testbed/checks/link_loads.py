"""How evenly links were used, from the interface counters of all ports. Reads samples.csv."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.flows import LEAST_PACKETS
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.windows import Interval, in_words, nothing, stretches, workload_ns
from mrc_testbed.testbed.expect import Window
from mrc_testbed.testbed.rundir.packed import read_rows
from mrc_testbed.testbed.rundir.tables import SAMPLES
from mrc_testbed.topos.names import parse_switch

LEAST_PART = 0.1
"""Uplinks of a T0 that carry less than this part of what those of the busiest do have acknowledgements alone: how they
are shared says nothing."""

Port = tuple[str, str]
"""A node and its port."""


@dataclass(slots=True)
class SentBytes:
    """`times_ns`: when ports were read, all at once. `sent`: what each had sent by then."""

    times_ns: list[int] = field(default_factory=list)
    sent: dict[Port, array[int]] = field(default_factory=dict)


@computes("link_load")
def link_loads(record: RunRecord, window: Window) -> Sequence[float]:
    """Bits per second that each port sent, over its rate."""
    rate_bps = record.scenario.shape().port_rate_bps
    carried, seconds = _carried(record, window)
    return [8 * count / seconds / rate_bps for count in carried.values()]


@computes("uplink_share")
def uplink_shares(record: RunRecord, window: Window) -> Sequence[float]:
    """What each uplink of a T0 sent over the mean of the uplinks of that T0."""
    carried, _ = _carried(record, window)
    uplinks: dict[str, list[int]] = {}
    for (node, port), count in carried.items():
        if (switch := parse_switch(node)) and switch[1] == 0 and port.startswith("up"):
            uplinks.setdefault(node, []).append(count)
    busiest = max(map(fmean, uplinks.values()), default=0.0)
    if not busiest:
        nothing(f"no uplink of a T0 carried anything{in_words(window)}")
    if busiest < (least := LEAST_PACKETS * record.scenario.shape().wire_bytes):
        nothing(f"uplinks carried {number(busiest / least * LEAST_PACKETS)} packets each{in_words(window)}: too few")
    used = [counts for counts in uplinks.values() if fmean(counts) >= LEAST_PART * busiest]
    return [count / fmean(counts) for counts in used for count in counts]


def _carried(record: RunRecord, window: Window) -> tuple[Mapping[Port, int], float]:
    """Bytes by port, and in how many seconds. Raises NoData if ports were not read twice in the window."""
    begin, end = workload_ns(record)
    inside, found = stretches(record, window), sent_bytes(record)
    counted = [
        place
        for place, (since, until) in enumerate(pairwise(found.times_ns))
        if begin <= since and until <= end and inside(Interval(since, until))
    ]
    if not counted:
        nothing(f"the counters of ports were read less than twice{in_words(window)}; they are five times a second")
    spent_ns = sum(found.times_ns[place + 1] - found.times_ns[place] for place in counted)
    carried = {port: sum(sent[one + 1] - sent[one] for one in counted) for port, sent in found.sent.items()}
    return carried, spent_ns / 1e9


@derived
def sent_bytes(record: RunRecord) -> SentBytes:
    """All readings; a last one that lacks ports is left out. Raises RecordError."""
    found = SentBytes()
    for row in read_rows(record.folder, SAMPLES):
        if not found.times_ns or found.times_ns[-1] != row.t_ns:
            found.times_ns.append(row.t_ns)
        found.sent.setdefault((row.node, row.port), array("q")).append(row.tx_bytes)
    whole = min(map(len, found.sent.values()), default=0)
    del found.times_ns[whole:]
    for readings in found.sent.values():
        del readings[whole:]
    return found
