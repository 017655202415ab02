"""A scenario at another scale: all rates are multiplied, and all times divided, by one factor.

What is written stays as it is, and every check is made of that; only then each number that is a time or a rate is
scaled, by the type of its field or by the unit that an expectation gives it. The schedule is settled first and scaled
then, so draws are the same at every scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from math import log2
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

from pydantic import PlainValidator, WithJsonSchema
from pydantic.fields import FieldInfo

from mrc_testbed.testbed.expect import Absolute, Expectation
from mrc_testbed.testbed.expect.vocabulary import UNITS, Dimension
from mrc_testbed.testbed.expect.window import Length, Moment
from mrc_testbed.testbed.scenario.faults import Occurrence
from mrc_testbed.testbed.scenario.model.arrival_models import TraceEntry
from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
from mrc_testbed.testbed.scenario.model.expectations import LinesOfCells
from mrc_testbed.testbed.scenario.model.graph_model import GraphEntry
from mrc_testbed.testbed.scenario.text.fields import FaultBegin, Model, refuse
from mrc_testbed.testbed.scenario.text.units import DURATION, RATE, Quantity
from mrc_testbed.testbed.transports.roce import RoceSettings

if TYPE_CHECKING:
    from mrc_testbed.testbed.scenario.model.models import Scenario

REAL = "real"
REAL_RATE_BPS = 100_000_000_000
"""Of a port of a plane at `scale: real`."""
MOST = 1_000_000
_SHOWN_UNITS = (("min", "s", "ms", "us", "ns"), ("GiB/s", "MiB/s", "KiB/s", "B/s"), ("gbit", "mbit", "kbit", "bit"))
"""Of bounds that were scaled, the largest first: in those that it was written in."""


class ScaleFactor(NamedTuple):
    """How many times faster than written; None: as many as make a port of a plane one of REAL_RATE_BPS."""

    times: int | None = 1

    def speed(self, port_rate_bps: int) -> int:
        """For ports that are written with this rate; at least 1."""
        return max(REAL_RATE_BPS // max(port_rate_bps, 1), 1) if self.times is None else self.times


def read_scale(value: object) -> ScaleFactor:
    """`real` or a whole number. Raises a ValueError with the words for the user."""
    if value == REAL:
        return ScaleFactor(None)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise refuse(f"must be `real` or a whole number from 1 to {MOST}, such as 8000")
    return ScaleFactor(value)


def speed_words(speeds: Iterable[int]) -> str:
    """`, 8000 times as fast`, or `, 10 to 20 times as fast`; empty where all is as fast as written."""
    known = sorted({*speeds})
    if known in ([], [1]):
        return ""
    return f", {' to '.join(str(speed) for speed in dict.fromkeys((known[0], known[-1])))} times as fast"


_SCHEMA = {"anyOf": [{"const": REAL}, {"type": "integer", "minimum": 1, "maximum": MOST}]}
ScaleWord = Annotated[ScaleFactor, PlainValidator(read_scale), WithJsonSchema(_SCHEMA)]


def scaled_ns(value_ns: int, speed: int) -> int:
    """A time, to the nearest ns; none becomes 0."""
    whole = (2 * abs(value_ns) + speed) // (2 * speed) or (1 if value_ns else 0)
    return whole if value_ns >= 0 else -whole


def scaled_fields(scenario: Scenario, speed: int) -> dict[str, Any]:
    """The fields of a scenario that is `speed` times faster."""
    return _fields(scenario, speed)


def scaled_occurrence(occurrence: Occurrence, speed: int) -> Occurrence:
    """An occurrence `speed` times sooner and shorter."""
    return replace(
        occurrence,
        begin_ns=scaled_ns(occurrence.begin_ns, speed),
        end_ns=max(scaled_ns(occurrence.end_ns, speed), scaled_ns(occurrence.begin_ns, speed) + 1),
        parameters=occurrence.parameters.at_speed(speed),
    )


def _fields(model: Model, speed: int) -> dict[str, Any]:
    kinds = _kinds(type(model))
    return {name: _scaled(getattr(model, name), kind, speed) for name, kind in kinds.items()}


@cache
def _kinds(model: type[Model]) -> dict[str, Quantity | None]:
    """What each of its fields is, where that is scaled."""
    return {name: next(_scaled_kinds(field), None) for name, field in model.model_fields.items()}


def _scaled_kinds(field: FieldInfo) -> Iterator[Quantity]:
    """Of a type, and of what an optional one is when it is there."""
    inside = (part for kind in get_args(field.annotation) for part in get_args(kind))
    return (part for part in (*field.metadata, *inside) if part is DURATION or part is RATE)


def _scaled(value: Any, kind: Quantity | None, speed: int) -> Any:
    match value:
        case FaultBegin():
            return value._replace(ns=scaled_ns(value.ns, speed))
        case Expectation():
            return scaled_expectation(value, speed)
        case LinesOfCells():
            return LinesOfCells(tuple(scaled_expectation(line, speed) for line in value.lines))
        case Model():
            return _model(value, speed, **_own(value, speed))
        case int() if kind is DURATION:
            return scaled_ns(value, speed)
        case int() if kind is RATE:
            return value * speed
        case tuple() if type(value) is tuple:
            return tuple(_scaled(one, kind, speed) for one in value)
    return value


def _own(model: Model, speed: int) -> dict[str, Any]:
    """Fields that scale in their own way."""
    match model:
        case RoceSettings():
            return {"timeout": _shorter(model.timeout, speed)}
        case TraceEntry() | GraphEntry():
            return {"stretch": model.stretch / speed}
        case EndpointSettings() if model.keeps_timeout:
            return {"timeout_ns": model.timeout_ns}
    return {}


def _model(model: Model, speed: int, **more: Any) -> Model:
    """A copy without what its properties have cached, which is of the numbers as they were."""
    copy = model.model_copy()
    changed = _fields(model, speed) | more
    for name in [*copy.__dict__]:
        if name not in changed:
            del copy.__dict__[name]
    copy.__dict__.update(changed)
    return copy


def _shorter(code: int, speed: int) -> int:
    """An InfiniBand timeout lasts 2^code units, so the nearest code is what can be had."""
    return max(round(code - log2(speed)), 0)


def scaled_expectation(line: Expectation, speed: int) -> Expectation:
    """The same with times and rates of its bound and its window scaled; then it is said in canonical words."""
    window = line.window
    begin, end = (moment and _moment(moment, speed) for moment in (window.begin, window.end))
    length = window.length and _length(window.length, speed)
    figure = replace(line.figure, window=replace(window, begin=begin, end=end, length=length))
    bound = _bound(line.bound, line.metric.dimension, speed) if isinstance(line.bound, Absolute) else line.bound
    if figure == line.figure and bound == line.bound:
        return line
    changed = replace(line, figure=figure, bound=bound)
    column = len(f"{figure.subject} {line.op} ")
    return replace(changed, text=str(changed), bound_column=column)


def _moment(moment: Moment, speed: int) -> Moment:
    return replace(moment, offset=_length(moment.offset, speed))


def _length(length: Length, speed: int) -> Length:
    return replace(length, ns=scaled_ns(length.ns, speed))


def _bound(bound: Absolute, dimension: Dimension, speed: int) -> Absolute:
    shown = next((units for units in _SHOWN_UNITS if bound.unit in units), None)
    if shown is None or not bound.number:
        return bound
    units = UNITS[dimension]
    base = bound.number * units[bound.unit] * (speed if dimension is Dimension.RATE else 1 / speed)
    unit = next((unit for unit in shown if base >= units[unit]), shown[-1])
    return Absolute(float(f"{base / units[unit]:.9g}"), unit)
