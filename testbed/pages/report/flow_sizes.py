"""Slowdown by size of the flows of a trace: a picture and its numbers. Pure."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.checks.flow_times import by_size
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.pages.slowdown import SlowdownLine, slowdown_drawing

_LINES = (
    ("P99", "p99", "var(--plane-1)", "2 3"),
    ("P95", "p95", "var(--plane-2)", "6 3"),
    ("median", "p50", "var(--plane-0)", ""),
)


def flow_sizes(record: RunRecord) -> dict[str, Any] | None:
    """`drawing` and `rows` (sizes, flows, median, P95, P99, worst); None without flows that ended."""
    bins = by_size(record)
    if not bins:
        return None
    lines = [
        SlowdownLine(name, [((one.least * one.most) ** 0.5, getattr(one, stat)) for one in bins], colour, dash)
        for name, stat, colour, dash in _LINES
    ]
    rows = [
        (f"{one.least:,} to {one.most:,} B", one.flows, *map(number, (one.p50, one.p95, one.p99, one.worst)))
        for one in bins
    ]
    return {"drawing": slowdown_drawing(lines), "rows": rows}
