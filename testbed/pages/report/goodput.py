"""Goodput over time: in all, by host, by flow, by plane. Pure.

What flows delivered is in flows.csv, in stretches of 100 ms. A job of steps reports bytes only when a step is over, so
there NIC ports speak: all that they received, headers and answers too. Each view says which of the two it is.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import GBPS, GBPS_FROM, MBPS
from mrc_testbed.testbed.checks.windows import outages
from mrc_testbed.testbed.pages.report.clock import Clock
from mrc_testbed.testbed.pages.report.downsample import downsampled, group_size, groups, rounded
from mrc_testbed.testbed.pages.report.samples import PortSamples
from mrc_testbed.testbed.rundir.packed import PackedRows
from mrc_testbed.testbed.rundir.tables import Received
from mrc_testbed.topos.names import parse_host, port_of_plane

GRAIN_NS = 100_000_000
BEFORE_NS = 500_000_000
AFTER_NS = 2_500_000_000
"""So long before and after something broke or was mended each value is shown by itself, however long the run was."""
MOST_LINES = 16
"""Most lines that can still be told apart; of more, the median and the range from least to most are shown."""
_LIMIT_IN_SIGHT = 0.5
"""A line rate is drawn where the highest value comes to this share of it; else it would press all lines flat."""
FROM_FLOWS = "delivered in order to the receiving programs, from flows.csv"
FROM_PORTS = "received at NIC ports, headers and answers included, from samples.csv; nothing comes while all compute"

View = dict[str, Any]
LineValues = list[float | None]


def goodput_views(record: RunRecord, samples: PortSamples, clock: Clock) -> list[View]:
    """The views that this run has figures for, the total first."""
    flows = _of_flows(record, clock) if record.received else []
    views = [*flows, *_of_ports(record, samples, clock, bool(flows))]
    return [_in_gbps(view) for view in views] if record.scenario.shape().port_rate_bps >= GBPS_FROM * 1e9 else views


def _in_gbps(view: View) -> View:
    """A view in Mb/s in the unit of real ports."""
    series = [
        {key: _thousandth(value) if key in ("v", "lo", "hi") else value for key, value in line.items()}
        for line in view["series"]
    ]
    limit = view["limit"] and {**view["limit"], "value": rounded(view["limit"]["value"] / 1000)}
    return {**view, "series": series, "limit": limit, "unit": GBPS}


def _thousandth(values: LineValues) -> LineValues:
    return [None if value is None else rounded(value / 1000) for value in values]


def _of_flows(record: RunRecord, clock: Clock) -> list[View]:
    shape = record.scenario.shape()
    by_flow = _rates(record.received, clock, shape.least_ns(GRAIN_NS))
    by_host = _summed(by_flow, lambda flow: flow.partition("->")[2])
    limit = shape.planes * shape.port_rate_bps / 1e6, "line rate of a host"
    count = len(next(iter(by_flow.values())))
    grain_ns = shape.least_ns(GRAIN_NS)
    times_ns = [clock.start_ns + cell * grain_ns for cell in range(count + 1)]
    ends = groups(count, near_faults(record, times_ns))
    put = partial(_even, times_ns=times_ns, ends=ends, clock=clock)
    views = [_view("total", "Total", FROM_FLOWS, put({"total": _sum(list(by_flow.values()))}))]
    if len(by_host) > 1:
        views.append(_view("hosts", "By receiving host", FROM_FLOWS, put(by_host), limit))
    if len(by_flow) > len(by_host):
        views.append(_view("flows", "By flow", FROM_FLOWS, put(by_flow), limit))
    return views


def _rates(rows: PackedRows[Received], clock: Clock, grain_ns: int) -> dict[str, LineValues]:
    """By flow the Mb/s in each stretch of `grain_ns` from the workload's start; None before it began and after."""
    count = max(0, -(-(max(rows.column("end_ns")) - clock.start_ns) // grain_ns))
    found: dict[str, LineValues] = {}
    for row in rows:
        line = found[row.flow] if row.flow in found else found.setdefault(row.flow, [None] * count)
        cell = (row.begin_ns - clock.start_ns) // grain_ns
        length_ns = row.end_ns - row.begin_ns
        if 0 <= cell < count and 2 * length_ns >= grain_ns:  # of a short last one a rate would be noise
            line[cell] = (line[cell] or 0.0) + row.bytes * 8e3 / length_ns
    return found


def _summed(lines: Mapping[str, LineValues], key: Callable[[str], str]) -> dict[str, LineValues]:
    groups: dict[str, list[LineValues]] = {}
    for name, line in lines.items():
        groups.setdefault(key(name), []).append(line)
    return {name: _sum(groups[name]) for name in sorted(groups, key=_host_order)}


def _sum(lines: Sequence[LineValues]) -> LineValues:
    """What is known of each stretch; None where nothing is."""
    columns = ([value for value in column if value is not None] for column in zip(*lines, strict=True))
    return [sum(column) if column else None for column in columns]


def _host_order(name: str) -> tuple[bool, int, str]:
    index = parse_host(name)
    return index is None, index or 0, name


def _even(
    rates: Mapping[str, LineValues], times_ns: Sequence[int], ends: Sequence[int], clock: Clock
) -> dict[str, Any]:
    lines = [{"name": name, **downsampled(line, ends)} for name, line in rates.items()]
    if len(ends) == len(times_ns):
        return {"from": 0, "grain": (times_ns[1] - times_ns[0]) / 1e9, "series": lines}
    return {**_placed(times_ns, ends, clock), "series": lines}


def _placed(times_ns: Sequence[int], ends: Sequence[int], clock: Clock) -> dict[str, Any]:
    """Where in time values are that are not all of one length. `step`: what most of them are the mean of, in s, and
    `finer`: those near faults."""
    usual_s = statistics.median(end - begin for begin, end in pairwise(times_ns)) / 1e9
    size = group_size(len(times_ns) - 1)
    placed = {"t": [clock.at(times_ns[turn]) for turn in ends[:-1]], "to": clock.at(times_ns[-1])}
    uneven = len(ends) - 1 > -(-(len(times_ns) - 1) // size)
    digits = 3 if clock.speed == 1 else 9
    return {**placed, "step": round(usual_s * size, digits), **({"finer": round(usual_s, digits)} if uneven else {})}


def near_faults(record: RunRecord, times_ns: Sequence[int]) -> Iterator[range]:
    """The stretches between `times_ns` in which something broke or was mended: first those of the first occurrence of
    each fault, then of the second ones, so that none goes short."""
    before_ns, after_ns = map(record.scenario.shape().least_ns, (BEFORE_NS, AFTER_NS))
    for outage in sorted(outages(record), key=lambda outage: (outage.number, outage.invoked_ns)):
        for moment_ns in (outage.invoked_ns, outage.healed_ns):
            if moment_ns is not None:
                begin = bisect_right(times_ns, moment_ns - before_ns) - 1
                yield range(begin, bisect_left(times_ns, moment_ns + after_ns))


def _of_ports(record: RunRecord, samples: PortSamples, clock: Clock, beside_flows: bool) -> list[View]:
    planes, port_rate = record.scenario.shape().planes, record.scenario.shape().port_rate_bps / 1e6
    taking_part = set(record.scenario.host_names)
    counts = {key: line for key, line in samples.received.items() if key[0] in taking_part}
    if len(samples.times_ns) < 2 or not counts:
        return []
    hosts = sorted({host for host, _ in counts}, key=_host_order)
    ports = {f"plane {plane}": port_of_plane(plane) for plane in range(planes)}
    by_plane = {name: _of(line for (_, own), line in counts.items() if own == port) for name, port in ports.items()}
    by_host = {name: _of(line for (host, _), line in counts.items() if host == name) for name in hosts}
    total = {"total": _of(counts.values())}
    of_plane, of_host = len(hosts) * port_rate, planes * port_rate
    ends = groups(len(samples.times_ns) - 1, near_faults(record, samples.times_ns))
    put = partial(_stepped, times_ns=samples.times_ns, ends=ends, clock=clock)
    views = [
        _view("port-total", "Total", FROM_PORTS, put(total), (planes * of_plane, "line rate")),
        _view("planes", "By plane", FROM_PORTS, put(by_plane), (of_plane, "line rate of a plane")),
        _view("port-hosts", "By host", FROM_PORTS, put(by_host), (of_host, "line rate of a host")),
    ]
    return views[1:2] if beside_flows else views


def _of(lines: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*lines, strict=True)]


def _stepped(
    lines: Mapping[str, Sequence[int]], times_ns: Sequence[int], ends: Sequence[int], clock: Clock
) -> dict[str, Any]:
    """Mb/s between readings; where several become one, the mean is that from the first to the last of them."""
    made = []
    for name, line in lines.items():
        rates = [
            (line[turn + 1] - line[turn]) * 8e3 / (times_ns[turn + 1] - times_ns[turn]) for turn in range(len(line) - 1)
        ]
        means = [(line[b] - line[a]) * 8e3 / (times_ns[b] - times_ns[a]) for a, b in pairwise(ends)]
        extremes = {key: value for key, value in downsampled(rates, ends).items() if key != "v"}
        made.append({"name": name, "v": [rounded(mean) for mean in means], **extremes})
    return {**_placed(times_ns, ends, clock), "series": made}


def _view(key: str, label: str, source: str, placed: dict[str, Any], limit: tuple[float, str] | None = None) -> View:
    """`placed`: series, and where in time their values are. `limit`: a rate in Mb/s, and what it is. `range`: of what
    the least and greatest are."""
    crowded = len(placed["series"]) > MOST_LINES
    series = [_crowd(placed["series"])] if crowded else placed["series"]
    highest = max((value for line in series for value in line.get("hi", line["v"]) if value), default=0)
    shown = limit if limit and highest >= _LIMIT_IN_SIGHT * limit[0] else None
    drawn = {"value": rounded(shown[0]), "label": shown[1]} if shown else None
    described = {"key": key, "label": label, "source": source, "unit": MBPS, "limit": drawn}
    return {**described, **placed, "series": series, "range": "of all of them" if crowded else "in each stretch"}


def _crowd(series: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Many lines as one: the median, and from the least to the most."""
    columns = [
        [value for value in column if value is not None] for column in zip(*(s["v"] for s in series), strict=True)
    ]
    picks: dict[str, Callable[[list[float]], float]] = {"v": statistics.median, "lo": min, "hi": max}
    lines = {key: [rounded(pick(column)) if column else None for column in columns] for key, pick in picks.items()}
    return {"name": f"median of {len(series)}", **lines}
