"""Draws panels of grafana/mrc.json from what a Prometheus scraped of a run that ended in the last minutes:
`dashboard_picture.py http://127.0.0.1:9090 OUT.svg TITLE...`."""

from __future__ import annotations

import json
import math
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from make_dashboard import panels
from svg_chart import Panel, Point, Series, drawing

STEP_S, RATE, BACK_S = 1, "3s", 900
"""Between points, as a run hands over its metrics once a second; the interval of rates; how far back the run may have
begun."""
UNITS = {"bps": ("Mb/s", 1e-6), "pps": ("packets/s", 1.0), "percentunit": ("%", 100.0)}
"""By Grafana's unit the name of ours, and the factor."""


class Scraped:
    """What a Prometheus knows, in seconds of the run."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.end = time.time() // 1
        self.clock: dict[float, float] = {}
        self.clock = dict(self.ask("max(mrc_run_clock_seconds_total)")[0][1])

    def ask(self, query: str) -> list[tuple[dict[str, str], list[Point]]]:
        """Labels and points of each series; points at times of the wall until the run's clock is known."""
        query = query.replace("$__rate_interval", RATE).replace("$plane", ".*")
        words = {"query": query, "start": self.end - BACK_S, "end": self.end, "step": STEP_S}
        with urllib.request.urlopen(f"{self.url}/api/v1/query_range?{urllib.parse.urlencode(words)}") as answer:
            found = json.loads(answer.read())["data"]["result"]
        return [(one["metric"], self._placed(one["values"])) for one in found]

    def _placed(self, values: Sequence[tuple[float, str]]) -> list[Point]:
        read = [(at, float(value)) for at, value in values if math.isfinite(float(value))]
        return [(self.clock[at], value) for at, value in read if at in self.clock] if self.clock else read

    def bands(self) -> list[tuple[float, float]]:
        """When a fault was active, one band a fault."""
        active = [[x for x, value in points if value] for _, points in self.ask("mrc_fault_active")]
        return [(xs[0], xs[-1]) for xs in active if xs]


def main(url: str, out: str, *titles: str) -> None:
    """The panels with these titles, below each other."""
    scraped = Scraped(url)
    named = {panel["title"]: panel for panel in panels()}
    bands = scraped.bands()
    drawn = [_drawn(scraped, named[title], bands) for title in titles]
    Path(out).write_text(drawing(drawn), encoding="utf-8")


def _drawn(scraped: Scraped, panel: dict[str, Any], bands: Sequence[tuple[float, float]]) -> Panel:
    """Without series that stay 0."""
    named, factor = UNITS.get(panel["fieldConfig"]["defaults"]["unit"], ("", 1.0))
    series = []
    for target in panel["targets"]:
        for labels, points in scraped.ask(target["expr"]):
            if any(y for _, y in points):
                name = " ".join(labels.values()) or target["legendFormat"]
                series.append(_over_the_run(scraped, name, [(x, y * factor) for x, y in points]))
    title = panel["title"] + (f": {series[0].name}" if len(series) == 1 else "")
    return Panel(title, "seconds of the run", named, series, bands)


def _over_the_run(scraped: Scraped, name: str, points: Sequence[Point]) -> Series:
    """A series whose chart is as wide as the run, with gaps where the query has no value."""
    clock = sorted(scraped.clock.values())
    around = [(clock[0], 0.0), *points, (clock[-1], 0.0)]
    gaps = {number for number in range(2, len(points) + 1) if around[number][0] - around[number - 1][0] > 2 * STEP_S}
    return Series(name, around, cuts={1, len(points) + 1} | gaps)


if __name__ == "__main__":
    main(*sys.argv[1:])
