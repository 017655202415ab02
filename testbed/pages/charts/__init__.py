"""The charts over time that pages share: what a template must be given to use them.

`Testbed.timeView`, `Testbed.frame` and `Testbed.lineChart` are described where they are made.
"""

from __future__ import annotations

CHART_STYLES = ("charts/charts.css",)
CHART_SCRIPTS = (
    "charts/svg.js",
    "charts/numbers.js",
    "charts/time_view.js",
    "charts/fault_lane.js",
    "charts/frame.js",
    "charts/frame_reading.js",
    "charts/frame_input.js",
    "charts/series.js",
    "charts/line_rows.js",
    "charts/charts.js",
    "charts/toolbar.js",
)
"""In this order."""
