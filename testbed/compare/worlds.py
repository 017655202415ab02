"""A scenario in both worlds: do the figures of virtual time agree with those of the kernel? Pure.

The figures and their means are those of every comparison (comparison.py); tolerances.py says how far apart they may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mrc_testbed.testbed.compare.comparison import ComparisonCell, ComparisonRow, compare
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.settings import WORLD, settings_of
from mrc_testbed.testbed.compare.tolerances import TOLERANCES, Tolerance
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.text.keys import short_names

_OF_WORLDS = (WORLD, WorldKind.VIRTUAL.value)
"""First words of the keys `world` and `virtual.*`."""
Twin = tuple[tuple[str, str], ...]
"""What runs of both worlds have in common that did the same."""


class Reads(StrEnum):
    """What comes of comparing: of a figure, and of all figures of a scenario."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class WorldRow:
    """A figure in both worlds. `allowed`: the greatest difference that agrees; None where a world lacks the figure."""

    row: ComparisonRow
    kernel: ComparisonCell
    virtual: ComparisonCell
    tolerance: Tolerance
    allowed: float | None
    reads: Reads


@dataclass(frozen=True)
class Agreement:
    """A scenario, or a cell of one, in both worlds. `zero`: titles of figures that are 0 in both. `why`: the reason if
    nothing is known."""

    name: str
    kernel: tuple[ComparedRun, ...]
    virtual: tuple[ComparedRun, ...]
    rows: tuple[WorldRow, ...] = ()
    zero: tuple[str, ...] = ()
    why: str = ""

    @property
    def reads(self) -> Reads:
        """One figure that differs is a difference; a figure that one world lacks is none."""
        if self.why:
            return Reads.UNKNOWN
        return Reads.DIFFERS if self.differing else Reads.AGREES

    @property
    def differing(self) -> tuple[WorldRow, ...]:
        """The rows beyond their tolerance."""
        return tuple(row for row in self.rows if row.reads is Reads.DIFFERS)


def twin_of(scenario: Scenario) -> Twin:
    """Runs with this in common did the same, in whichever world: all settings but those of the world, and the seed."""
    settings = {key: value for key, value in settings_of(scenario).items() if key.split(".")[0] not in _OF_WORLDS}
    return (("name", scenario.name), ("seed", str(scenario.seed)), *sorted(settings.items()))


def name_of(scenario: Scenario) -> str:
    """The scenario and its variant."""
    return f"{scenario.name} ({scenario.variant})" if scenario.variant else scenario.name


def names_of(found: Mapping[Twin, Scenario]) -> dict[Twin, str]:
    """The name of each, with what sets it apart from others of that name, as in `far-apart [rtt=20ms]`."""
    names = {twin: name_of(scenario) for twin, scenario in found.items()}
    alike = {name: [twin for twin in found if names[twin] == name] for name in names.values()}
    return {twin: f"{name}{_apart(twin, alike[name])}" for twin, name in names.items()}


def _apart(twin: Twin, alike: Sequence[Twin]) -> str:
    common = set(twin).intersection(*alike)
    own = {key: value for key, value in twin if (key, value) not in common}
    short = short_names(list(own))
    return f" [{', '.join(f'{short[key]}={value}' for key, value in own.items())}]" if own else ""


def in_world(runs: Sequence[ComparedRun], world: WorldKind) -> tuple[ComparedRun, ...]:
    """Those of one world."""
    return tuple(run for run in runs if run.world is world)


def agreement(runs: Sequence[ComparedRun]) -> Agreement:
    """Of runs of one scenario and seed, at least one in each world. Inconclusive runs do not count."""
    kernel, virtual = (in_world(runs, world) for world in (WorldKind.KERNEL, WorldKind.VIRTUAL))
    name = name_of(runs[0].record.scenario)
    for world, each in (("kernel", kernel), ("virtual", virtual)):
        if not any(run.believed for run in each):
            reason = each[-1].verdict.reason if each else "it was not run"
            return Agreement(name, kernel, virtual, why=f"{world}: {reason}")
    comparison = compare([replace(run, settings={WORLD: run.settings[WORLD]}) for run in (*kernel, *virtual)])
    rows = tuple(_row(row) for row in comparison.rows if row.figure.key in TOLERANCES)
    zero = tuple(figure.title for figure in comparison.zero if figure.key in TOLERANCES)
    return Agreement(name, kernel, virtual, rows, zero)


def _row(row: ComparisonRow) -> WorldRow:
    kernel, virtual = row.cells
    tolerance = TOLERANCES[row.figure.key]
    if kernel.mean is None or virtual.mean is None:
        return WorldRow(row, kernel, virtual, tolerance, None, Reads.UNKNOWN)
    allowed = tolerance.allowed(kernel.values, virtual.mean)
    if abs(virtual.mean - kernel.mean) > allowed:
        return WorldRow(row, kernel, virtual, tolerance, allowed, Reads.DIFFERS)
    known = kernel.whole and virtual.whole
    return WorldRow(row, kernel, virtual, tolerance, allowed, Reads.AGREES if known else Reads.UNKNOWN)


def worlds_document(agreements: Sequence[Agreement], not_run: Sequence[str] = ()) -> dict[str, Any]:
    """The content of `worlds --json`. Values are in base units, as in compare.json. `not_run`: names of scenarios that
    are still to come; with them the worlds do not agree yet."""
    reads = overall(agreements, complete=not not_run)
    return {"reads": reads.value, "scenarios": [_document(one) for one in agreements], "not_run": list(not_run)}


def overall(agreements: Sequence[Agreement], complete: bool = True) -> Reads:
    """Of all: a difference is a finding and comes before what is not known. Not `complete`: others are to come."""
    found = {one.reads for one in agreements} | (set() if complete and agreements else {Reads.UNKNOWN})
    return next((each for each in (Reads.DIFFERS, Reads.UNKNOWN) if each in found), Reads.AGREES)


def _document(one: Agreement) -> dict[str, Any]:
    scenario = (one.kernel or one.virtual)[0].record.scenario
    return {
        "name": one.name,
        "scenario": scenario.name,
        "variant": scenario.variant or None,
        "seed": scenario.seed,
        "reads": one.reads.value,
        "why": one.why,
        "kernel": _runs(one.kernel),
        "virtual": _runs(one.virtual),
        "figures": [_figure(row) for row in one.rows],
        "zero": list(one.zero),
    }


def _runs(runs: Sequence[ComparedRun]) -> list[dict[str, Any]]:
    return [{"folder": str(run.folder), "verdict": run.verdict.status.value, "counted": run.believed} for run in runs]


def _figure(row: WorldRow) -> Mapping[str, Any]:
    return {
        "key": row.row.figure.key,
        "title": row.row.figure.title,
        "kernel": {"values": list(row.kernel.values), "mean": row.kernel.mean},
        "virtual": {"values": list(row.virtual.values), "mean": row.virtual.mean},
        "allowed": row.allowed,
        "reads": row.reads.value,
    }
