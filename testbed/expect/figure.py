"""A figure: `METRIC[.STAT] [of WHOM] [WINDOW]`. Pure.

step_time.p100 during reboot
goodput of h3 clean
recovery.p50
packets_lost after reboot heals + 10 rtt
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mrc_testbed.testbed.expect.metrics import PROGRAM, known_metrics
from mrc_testbed.testbed.expect.scanner import Scanner
from mrc_testbed.testbed.expect.scope import Scope, read_scope
from mrc_testbed.testbed.expect.spelling import did_you_mean
from mrc_testbed.testbed.expect.vocabulary import Metric
from mrc_testbed.testbed.expect.window import FORMS, WHOLE_RUN, Window, read_window

UNKNOWN_METRIC = "unknown metric"
STAT = r"\.\s*([A-Za-z0-9_]*(?:\.\d+)?)"
"""How a statistic follows a metric, or `clean`: `.median`, `.p99.9`."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run. `stat` is None if the metric is one number; `window` includes the scope."""

    metric: Metric
    stat: str | None = None
    window: Window = WHOLE_RUN

    def __str__(self) -> str:
        return f"{self.subject} {self.window}".rstrip()

    @property
    def subject(self) -> str:
        """Everything except the window: `goodput of h3`."""
        name = self.metric.name + (f".{self.stat}" if self.stat else "")
        return f"{name} {self.scope}".rstrip()

    @property
    def scope(self) -> Scope:
        """The hosts or flows that it is about."""
        return self.window.scope

    def of(self, scope: Scope) -> Figure:
        """The same figure with another scope."""
        return replace(self, window=replace(self.window, scope=scope))


def parse_figure(text: str) -> Figure:
    """Parse one figure. Raises ExpectError with the column of the mistake, and nothing else."""
    scan = Scanner(text)
    figure = read_window_of(scan, read_subject(scan))
    if scan.rest:
        scan.fail(f"{scan.rest!r} is unexpected; only a window can follow a figure: {FORMS}")
    return figure


def read_subject(scan: Scanner) -> Figure:
    """Parse a figure without its window. Raises ExpectError."""
    metric = _metric(scan)
    stat = _stat(scan, metric)
    return Figure(metric, stat, Window(scope=read_scope(scan, metric)))


def read_window_of(scan: Scanner, figure: Figure) -> Figure:
    """The same with the next window. Raises ExpectError."""
    return replace(figure, window=replace(read_window(scan, figure.metric), scope=figure.scope))


def _metric(scan: Scanner) -> Metric:
    word = scan.take(rf"({re.escape(PROGRAM)})?[A-Za-z_][A-Za-z0-9_-]*")
    if word is None:
        scan.fail("must begin with a metric, as in `qp_errors == 0`")
    known = known_metrics()
    metric = known.get(word[0])
    if metric is None and any(word[0] in each.stats for each in known.values()):
        scan.fail(f"{word[0]} is a statistic; it comes after the metric, as in `step_time.{word[0]}`", word.start())
    if metric is None:
        hint = did_you_mean(word[0], known) or f"; metrics: {', '.join(known)}"
        scan.fail(f"{UNKNOWN_METRIC} {word[0]!r}{hint}", word.start())
    return metric


def _stat(scan: Scanner, metric: Metric) -> str | None:
    word = scan.take(STAT)
    if word is None:
        if metric.stats:
            scan.fail(f"{metric.name} needs a statistic, such as {metric.example} (one of {' '.join(metric.stats)})")
        return None
    return known_stat(scan, metric, word[1], word.start(1))


def known_stat(scan: Scanner, metric: Metric, stat: str, column: int) -> str:
    """`stat`, if the metric has it. Raises ExpectError."""
    if not metric.stats:
        scan.fail(f"{metric.name} is one number and has no statistic {stat!r}", column)
    if stat not in metric.stats:
        hint = did_you_mean(stat, metric.stats) or f"; one of {' '.join(metric.stats)}"
        scan.fail(f"unknown statistic {stat!r} of {metric.name}{hint}", column)
    return stat
