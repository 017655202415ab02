"""How evenly links were used, from the interface counters of all ports. Reads samples.csv."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.flows import LEAST_PACKETS
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.checks.windows import in_words, nothing, stretches, workload_ns
from mrc_testbed.testbed.expect import Window
from mrc_testbed.testbed.rundir.packed import read_rows
from mrc_testbed.testbed.rundir.tables import SAMPLES
from mrc_testbed.topos.names import parse_switch

LEAST_PART = 0.1
"""Uplinks of a switch that carry less than this part of what those of the busiest do have acknowledgements alone: how
they are shared says nothing."""

Port = tuple[str, str]
"""A node and its port."""


@dataclass(slots=True)
class SentBytes:
    """`times_ns`: when ports were read, all at once. `sent`: what each had sent by then."""

    times_ns: list[int] = field(default_factory=list)
    sent: dict[Port, array[int]] = field(default_factory=dict)


@computes("link_load")
def link_loads(record: RunRecord, window: Window) -> Sequence[float]:
    """Bits per second that each port sent, over the rate of its link."""
    rates_bps = _rates_bps(record)
    carried, seconds = _carried(record, window)
    return [8 * count / seconds / rates_bps[port] for port, count in carried.items() if port in rates_bps]


@computes("uplink_share")
def uplink_shares(record: RunRecord, window: Window) -> Sequence[float]:
    """The load of each uplink of a switch over the mean load of its uplinks: what it sent over its rate."""
    return [share for shares in shares_by_switch(record, window) for share in shares]


def shares_by_switch(record: RunRecord, window: Window) -> list[list[float]]:
    """The same of each switch by itself. Raises NoData."""
    carried, _ = _carried(record, window)
    uplinks = _uplinks(carried)
    means = [fmean(carried[port] for port in ports) for ports in uplinks]
    busiest = max(means, default=0.0)
    if not busiest:
        nothing(f"no uplink of a switch carried anything{in_words(window)}")
    if busiest < (least := LEAST_PACKETS * record.scenario.shape().wire_bytes):
        nothing(f"uplinks carried {number(busiest / least * LEAST_PACKETS)} packets each{in_words(window)}: too few")
    used = ((ports, mean) for ports, mean in zip(uplinks, means, strict=True) if mean >= LEAST_PART * busiest)
    rates_bps, found = _rates_bps(record), []
    for ports, mean in used:
        mean_bps = fmean(rates_bps[port] for port in ports)
        found.append([carried[port] / (mean * (rates_bps[port] / mean_bps)) for port in ports])
    return found


def _uplinks(ports: Iterable[Port]) -> list[list[Port]]:
    """Those of each switch that has any."""
    up = ((node, (node, port)) for node, port in ports if parse_switch(node) and port.startswith("up"))
    return list(gathered(up).values())


def _rates_bps(record: RunRecord) -> dict[Port, int]:
    return {(end.node, end.name): link.rate_bps for link in record.plan.links for end in link.ends}


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
