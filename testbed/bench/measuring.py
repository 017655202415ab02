"""The values of KPIs in the runs of a test, and their statistics over the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from mrc_testbed.testbed.bench.catalogue import BenchTest, Kpi
from mrc_testbed.testbed.bench.document import KpiResult
from mrc_testbed.testbed.bench.formulas import spread
from mrc_testbed.testbed.bench.measures import FORMULAS
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.scenario.cells.axes import SEED
from mrc_testbed.testbed.scenario.model.matrix import VARIANT
from mrc_testbed.testbed.scenario.text.units import SIZE

_UNITS = {"Gb/s": "gbit", "us": "us", "ms": "ms"}
"""Of the language of expectations, by what a KPI shows; others are plain numbers there."""
Parameters = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class KpiValues:
    """Of one run. `values` None: the figure does not exist for its transport. Empty: not measured, because of `why`."""

    values: tuple[float, ...] | None = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class BenchRun:
    """A run of a test: its settings with variant and seed, and its values for each KPI of the test, in order."""

    settings: Mapping[str, Any]
    measured: tuple[KpiValues, ...]

    @property
    def transport(self) -> str:
        """What its variant is called."""
        return str(self.settings[VARIANT])

    @property
    def parameters(self) -> dict[str, Any]:
        """All axes but transport and seed."""
        return {key: value for key, value in self.settings.items() if key not in (VARIANT, SEED)}


def measure_run(test: BenchTest, record: RunRecord) -> tuple[KpiValues, ...]:
    """Each KPI of the test in one run; what is over another run is not divided yet."""
    return tuple(_measured(kpi, record) for kpi in test.kpis)


def not_measured(test: BenchTest, why: str) -> tuple[KpiValues, ...]:
    """Of a run that has no result."""
    return tuple(KpiValues((), why) for _ in test.kpis)


def results_of(test: BenchTest, runs: Sequence[BenchRun]) -> list[KpiResult]:
    """The statistics of each KPI, by transport and parameters."""
    return [one for place, kpi in enumerate(test.kpis) for one in _of_kpi(kpi, place, runs)]


def _measured(kpi: Kpi, record: RunRecord) -> KpiValues:
    if kpi.figure and not parse_figure(kpi.figure).metric.known_with(record.scenario.transport.known):
        return KpiValues(None)
    try:
        if kpi.formula:
            return KpiValues(tuple(FORMULAS[kpi.formula](record)))
        found = ask(record, kpi.figure, None if kpi.longest else _UNITS.get(kpi.unit))
    except NoData as lacking:
        return KpiValues((), str(lacking))
    except ScenarioError:  # it makes no sense in this scenario
        return KpiValues(None)
    return KpiValues((), found.why) if found.value is None else KpiValues((found.value,))


def _of_kpi(kpi: Kpi, place: int, runs: Sequence[BenchRun]) -> Iterator[KpiResult]:
    for (transport, parameters), group in _grouped(runs, without=kpi.longest).items():
        if kpi.over and all(dict(parameters).get(key) == value for key, value in kpi.over.items()):
            continue
        if kpi.longest:
            found = [_longest(kpi, place, each) for each in _by_seed(group)]
        elif kpi.over:
            found = [_divided(kpi, place, one, runs) for one in group]
        else:
            found = [one.measured[place] for one in group]
        known = [one for one in found if one.values is not None]
        if known:
            yield _result(kpi, transport, dict(parameters), known)


def _grouped(runs: Iterable[BenchRun], without: str) -> dict[tuple[str, Parameters], list[BenchRun]]:
    found: dict[tuple[str, Parameters], list[BenchRun]] = {}
    for run in runs:
        parameters = tuple((key, value) for key, value in run.parameters.items() if key != without)
        found.setdefault((run.transport, parameters), []).append(run)
    return found


def _by_seed(runs: Iterable[BenchRun]) -> list[list[BenchRun]]:
    found: dict[Any, list[BenchRun]] = {}
    for run in runs:
        found.setdefault(run.settings[SEED], []).append(run)
    return list(found.values())


def _longest(kpi: Kpi, place: int, runs: Sequence[BenchRun]) -> KpiValues:
    """The greatest value of the axis up to which the figure is 0 in every run; 0 if it never is."""
    longest = 0.0
    for run in sorted(runs, key=lambda one: axis_number(one.settings[kpi.longest])):
        found = run.measured[place]
        if found.values is None or not found.values:
            return found
        if found.values[0] > 0:
            break
        longest = axis_number(run.settings[kpi.longest])
    return KpiValues((longest,))


def _divided(kpi: Kpi, place: int, run: BenchRun, runs: Sequence[BenchRun]) -> KpiValues:
    """Over the mean of the run with the other settings."""
    wanted = {**run.settings, **kpi.over}
    base = next(
        (one.measured[place] for one in runs if dict(one.settings) == wanted), KpiValues((), "no run to compare")
    )
    mine = run.measured[place]
    lacking = next((one for one in (mine, base) if not one.values), None)
    if lacking:
        return lacking
    mean = fmean(base.values or ())
    if not mean:
        return KpiValues((), "it is 0 in the run to compare with")
    return KpiValues(tuple(value / mean for value in mine.values or ()))


def _result(kpi: Kpi, transport: str, parameters: dict[str, Any], found: Sequence[KpiValues]) -> KpiResult:
    by_run = [one.values for one in found if one.values]
    why = "; ".join(dict.fromkeys(one.why for one in found if not one.values and one.why))
    about: dict[str, Any] = {"name": kpi.name, "unit": kpi.unit, "transport": transport, "parameters": parameters}
    if not by_run:
        return KpiResult(**about, n=0, runs=0, mean=None, p50=None, p95=None, p99=None, cv=None, why=why)
    whole = spread([value for values in by_run for value in values])
    cv = spread([fmean(values) for values in by_run]).cv
    statistics: dict[str, Any] = {"mean": whole.mean, "p50": whole.p50, "p95": whole.p95, "p99": whole.p99, "cv": cv}
    return KpiResult(**about, n=whole.n, runs=len(by_run), **statistics, why=why)


def axis_number(value: Any) -> float:
    """A value of an axis as a number: of a size its bytes."""
    if isinstance(value, int | float):
        return float(value)
    return float(SIZE.parse(str(value)))
