"""Evaluates figures in a run. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.metrics import measure
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import unit_factor
from mrc_testbed.testbed.checks.scope import members
from mrc_testbed.testbed.checks.windows import NoData, NoPart, NotApplicable
from mrc_testbed.testbed.expect import ExpectError, Figure, parse_figure, with_metrics
from mrc_testbed.testbed.expect.vocabulary import DEFAULT_UNITS, Job
from mrc_testbed.testbed.scenario.rules.expect_rules import FigureContext, require_figure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Observed:
    """A figure of a run in `unit`. `value` None: unknown, for the reason `why`."""

    value: float | None
    unit: str = ""
    why: str = ""

    def __str__(self) -> str:
        return f"not known: {self.why}" if self.value is None else f"{self.value:g} {self.unit}".rstrip()


def ask(record: RunRecord, text: str, unit: str | None = None) -> Observed:
    """The figure that `text` names.

    Raises ValueError for an unreadable text or unit, ScenarioError for a figure that makes no sense in the scenario of
    the run.
    """
    try:
        with with_metrics(record.scenario.metrics):
            figure = parse_figure(text)
    except ExpectError as error:
        raise ValueError(f"{text}: {error}") from None
    if unit is not None and (wrong := figure.metric.unit_error(unit)):
        raise ValueError(f"{text}: {wrong}")
    require_figure(figure, figure_context(record), text)
    return evaluate_figure(record, figure, unit)


@derived
def figure_context(record: RunRecord) -> FigureContext:
    """The faults, hosts and flows that figures can name in the scenario of the run."""
    return FigureContext.of_scenario(record.scenario)


def evaluate_figure(record: RunRecord, figure: Figure, unit: str | None = None) -> Observed:
    """A figure in `unit`; without one in seconds, bytes, bytes per second or as a plain number. For each host or flow:
    the greatest.

    Raises ValueError for a unit that the metric does not have. Names are not checked here: `ask` refuses unknown ones.
    """
    metric = figure.metric
    unit = DEFAULT_UNITS[metric.dimension] if unit is None else unit
    if error := metric.unit_error(unit):
        raise ValueError(error)
    try:
        value = _value(record, figure)
        factor = unit_factor(metric.dimension, unit, record)
    except NoData as lacking:
        return Observed(None, unit, str(lacking))
    return Observed(value if factor == 1 else value / factor, unit)


def _value(record: RunRecord, figure: Figure) -> float:
    metric, job = figure.metric, record.scenario.job
    there = {Job.TRAIN: job.jobs, Job.FLOWS: job.flows}
    if metric.job and not there[metric.job]:
        raise NoData(f"{metric.name} is only defined for {metric.job.value}")
    return _greatest(record, figure) if figure.scope.each else measure(record, figure)


def _greatest(record: RunRecord, figure: Figure) -> float:
    found = of_each(record, figure, lambda one: measure(record, one))
    if found.lacking or not found.values:
        raise NoData(found.reason)
    return max(found.values)


@dataclass(slots=True)
class OfEach(Generic[T]):
    """Results for each member of a scope.

    `lacking`: why it is unknown for others; `apart`: why the remaining ones have no such figure.
    """

    values: list[T] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """Why nothing is known, if so."""
        return (self.lacking or self.apart or ["no host, pair or flow to measure"])[0]


def of_each(record: RunRecord, figure: Figure, find: Callable[[Figure], T]) -> OfEach[T]:
    """Evaluate the figure for each host or flow of its scope. Raises NotApplicable."""
    found: OfEach[T] = OfEach()
    for member in members(record, figure.metric, figure.scope):
        try:
            found.values.append(find(figure.of(member)))
        except NotApplicable:
            raise
        except NoPart as reason:
            found.apart.append(str(reason))
        except NoData as reason:
            found.lacking.append(f"{member.name}: {reason}")
    return found
