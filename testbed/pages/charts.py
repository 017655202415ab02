"""The charts over time that pages share: what a template must be given to use them.

`Testbed.timeView`, `Testbed.frame` and `Testbed.lineChart` are described where they are made.
"""

from __future__ import annotations

CHART_STYLES = ("pages/charts.css",)
CHART_SCRIPTS = (
    "pages/svg.js",
    "pages/numbers.js",
    "pages/time_view.js",
    "pages/fault_lane.js",
    "pages/frame.js",
    "pages/frame_reading.js",
    "pages/frame_input.js",
    "pages/series.js",
    "pages/line_rows.js",
    "pages/charts.js",
    "pages/toolbar.js",
)
"""In this order."""
