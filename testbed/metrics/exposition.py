"""Metrics as text: OpenMetrics 1.0, and the older text format of Prometheus (0.0.4). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from math import isinf, isnan
from typing import NamedTuple

from mrc_testbed.testbed.metrics.registry import FAMILIES, SeriesFamily, SeriesKind

OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HELP_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n"})
_OLD_KINDS = {SeriesKind.INFO: "gauge", SeriesKind.STATESET: "gauge"}
"""What the older format has for types that it does not know."""


class SeriesReading(NamedTuple):
    """One sample: the family by name, the values of its labels in their order, the value. `suffix`: of a histogram's
    sample, and `le` its bound."""

    family: str
    labels: tuple[str, ...]
    value: float
    suffix: str = ""
    le: str = ""


def open_metrics(readings: Iterable[SeriesReading]) -> str:
    """The text of OpenMetrics, which ends with `# EOF`."""
    return "".join(_lines(readings, old=False)) + "# EOF\n"


def prometheus_text(readings: Iterable[SeriesReading]) -> str:
    """The text of Prometheus 0.0.4, as node_exporter's textfile collector reads it."""
    return "".join(_lines(readings, old=True))


def preferred(accept: str) -> bool:
    """Whether a request's `Accept` asks for OpenMetrics, before or instead of the older text (RFC 9110, 12.5.1)."""
    best = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for part in accept.split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        if kind.lower() in best:
            best[kind.lower()] = max(best[kind.lower()], _quality(parameters))
    return best["application/openmetrics-text"] > 0 and best["application/openmetrics-text"] >= best["text/plain"]


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _lines(readings: Iterable[SeriesReading], old: bool) -> Iterator[str]:
    order = {name: number for number, name in enumerate(FAMILIES)}
    by_family = sorted(readings, key=lambda reading: order[reading.family])
    for name, group in groupby(by_family, key=lambda reading: reading.family):
        family = FAMILIES[name]
        yield from _head(family, old)
        for reading in group:
            yield f"{_sample_name(family, reading)}{_labels(family, reading)} {number_text(reading.value)}\n"


def _head(family: SeriesFamily, old: bool) -> Iterator[str]:
    name = family.name
    if old:
        name += {SeriesKind.COUNTER: "_total", SeriesKind.INFO: "_info"}.get(family.kind, "")
    kind = _OLD_KINDS.get(family.kind, family.kind.value) if old else family.kind.value
    yield f"# HELP {name} {family.help.translate(_HELP_ESCAPES)}\n"
    yield f"# TYPE {name} {kind}\n"
    if family.unit and not old:
        yield f"# UNIT {name} {family.unit}\n"


def _sample_name(family: SeriesFamily, reading: SeriesReading) -> str:
    if reading.suffix:
        return f"{family.name}_{reading.suffix}"
    return family.name + {SeriesKind.COUNTER: "_total", SeriesKind.INFO: "_info"}.get(family.kind, "")


def _labels(family: SeriesFamily, reading: SeriesReading) -> str:
    pairs = [f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(family.labels, reading.labels, strict=True)]
    if reading.le:
        pairs.append(f'le="{reading.le}"')
    return f"{{{','.join(pairs)}}}" if pairs else ""


def number_text(value: float) -> str:
    """A number as both formats write it."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
