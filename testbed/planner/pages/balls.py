"""How evenly hashed and sprayed flows load links, as one self-contained page. Pure but for the files of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mrc_testbed.testbed.pages.assemble import assemble
from mrc_testbed.testbed.planner.arithmetic.balls import Crowding
from mrc_testbed.testbed.planner.pages.chart import SCRIPTS, STYLES, Chart, Line, drawing, key, reading_data
from mrc_testbed.testbed.planner.report.balls import HEADS, NOTES, crowding_cells, crowding_document


def balls_page(rows: Sequence[Crowding], command: str) -> str:
    """The text of the page. `command`: what was called."""
    flows = list(dict.fromkeys(row.flows for row in rows))
    charts = [chart for count in flows if (chart := _chart([row for row in rows if row.flows == count]))]
    values: dict[str, Any] = {
        "heads": HEADS,
        "rows": [crowding_cells(row) for row in rows],
        "notes": NOTES,
        "legend": [(key(number), name) for number, name in enumerate(("hashed", "sprayed"))] if charts else [],
        "charts": [("", chart, drawing(chart)) for chart in charts],
        "command": command,
    }
    data = {"balls": crowding_document(rows), **reading_data(charts)}
    return assemble("planner/pages/balls.html", values, data, STYLES, SCRIPTS)


def _chart(rows: Sequence[Crowding]) -> Chart | None:
    """Of one number of flows, over the links; None where there is one number of them."""
    ordered = sorted(rows, key=lambda row: row.links)
    low, high = ordered[0].links, ordered[-1].links
    if low == high:
        return None
    return Chart(f"{ordered[0].flows:,} flows", "", "links", low, high, list(_lines(ordered)), sampled=True)


def _lines(rows: Sequence[Crowding]) -> Iterator[Line]:
    yield Line("hashed", [(row.links, row.mean) for row in rows], band=[(row.low, row.high) for row in rows])
    yield Line("sprayed", [(row.links, row.sprayed) for row in rows])
