"""The P99 of slowdown by size of flows, of each group of runs. Pure."""

from __future__ import annotations

from markupsafe import Markup

from mrc_testbed.testbed.checks.flow_times import by_size
from mrc_testbed.testbed.compare.comparison import Comparison
from mrc_testbed.testbed.pages.comparison.curves import MOST_LINES, colour_of
from mrc_testbed.testbed.pages.slowdown import SlowdownLine, slowdown_drawing


def slowdown_curves(comparison: Comparison) -> Markup | None:
    """Of the first run of each group, of the first MOST_LINES; None where none has flows of a trace."""
    lines = []
    for number, column in enumerate(comparison.columns[:MOST_LINES]):
        run = (column.counted or column.runs)[0]
        bins = by_size(run.record) if run.has_record else []
        if bins:
            points = [((one.least * one.most) ** 0.5, one.p99) for one in bins]
            lines.append(SlowdownLine(column.short, points, colour_of(number)))
    return slowdown_drawing(lines) if lines else None
