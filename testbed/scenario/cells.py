"""A scenario file and its matrix -> one scenario per cell, or all mistakes of all cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from testbed.errors import Problem, ScenarioError, UsageError
from testbed.scenario.keys import key_path, short_names, value_text
from testbed.scenario.loader import bad_option, changed_data, load_source, read_changes
from testbed.scenario.matrix import MATRIX, MatrixAxes
from testbed.scenario.models import Scenario
from testbed.scenario.shipped import scenario_file
from testbed.scenario.source import Override, Source, dotted
from testbed.scenario.yaml_text import parse_value, read_source

MOST_CELLS = 1000
"""Limit of cells; each costs some ten milliseconds to check and some ten seconds to run."""
SEED = "seed"
_AXES: TypeAdapter[dict[str, tuple[Any, ...]]] = TypeAdapter(MatrixAxes)


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of a cell and its value; `short` is the displayed key."""

    key: str
    short: str
    value: Any

    def __str__(self) -> str:
        return f"{self.short}={value_text(self.value)}"


_Settings = tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of values, as a scenario of its own; without a matrix the scenario itself."""

    scenario: Scenario
    settings: tuple[Setting, ...] = ()


def in_brackets(settings: Sequence[Setting]) -> str:
    """`[planes=2, seed=3]`; empty without settings."""
    return f"[{', '.join(map(str, settings))}]" if settings else ""


@dataclass(frozen=True, slots=True)
class _Axis:
    key: str
    changes: tuple[Override, ...]


def load_cells(
    path: str | Path,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    matrix: Sequence[str] = (),
    most: int = MOST_CELLS,
) -> tuple[Cell, ...]:
    """The cells of a scenario file, grouped by seed, else in matrix order with its last key changing first.

    `matrix` are `KEY=V1,V2,...`, which replace the file's axis of the same key or add one. Raises ScenarioError as
    `load_scenario`, with the mistakes of all cells; UsageError for more than `most` cells.
    """
    source = read_source(scenario_file(Path(path)))
    changes = read_changes(overrides, seed)
    axes = _axes(source, changes, matrix)
    if not axes:
        return (Cell(load_source(source, changes)),)
    _refuse_both(changes, axes)
    if (count := prod(len(axis.changes) for axis in axes)) > most:
        raise UsageError(f"{path}: its matrix has {count} cells; {_limit(most)}")
    return _loaded(source, changes, axes)


def _limit(most: int) -> str:
    return f"the limit is {most}" if most == MOST_CELLS else f"for more than {most} use --many"


def _axes(source: Source, changes: Sequence[Override], options: Sequence[str]) -> list[_Axis]:
    """The axes of the file, then those of options alone. Raises ScenarioError."""
    written = changed_data(source, changes).get(MATRIX)
    try:
        read = _AXES.validate_python(written) if written is not None or MATRIX in source.data else {}
    except ValidationError:
        load_source(source, changes)  # tells it with all other mistakes
        raise
    by_key = {key: _Axis(key, _of_file(key, values)) for key, values in read.items()}
    by_key |= {axis.key: axis for axis in map(_of_option, options)}
    try:
        _AXES.validate_python({key: [change.value for change in axis.changes] for key, axis in by_key.items()} or None)
    except ValidationError as error:
        if by_key:
            raise bad_option("--matrix", MATRIX, error.errors()[0]["msg"]) from None
    return list(by_key.values())


def _of_file(key: str, values: Sequence[Any]) -> tuple[Override, ...]:
    places = ((MATRIX, key, number) for number in range(len(values)))
    return tuple(
        Override(key_path(key), value, f"matrix {key}", place) for value, place in zip(values, places, strict=True)
    )


def _of_option(option: str) -> _Axis:
    """Parses `KEY=V1,V2`; the values are those of a YAML list. Raises ScenarioError."""
    key, equals, text = option.partition("=")
    key, shown = key.strip(), f"--matrix {option}"
    if not equals or not text.strip():
        raise bad_option(shown, key, "must be KEY=V1,V2,... with a dotted key, such as `--matrix fabric.planes=1,2,4`")
    try:
        ((_, values),) = _AXES.validate_python({key: parse_value(f"[{text}]")}).items()
    except ScenarioError as error:
        raise bad_option(shown, key, error.problems[0].message) from None
    except ValidationError as error:
        raise bad_option(shown, key, error.errors()[0]["msg"]) from None
    return _Axis(key, tuple(Override(key_path(key), value, f"--matrix {key}={value_text(value)}") for value in values))


def _refuse_both(changes: Sequence[Override], axes: Sequence[_Axis]) -> None:
    """Refuses a key that is both set and varied. Raises ScenarioError."""
    for change in changes:
        for axis in axes:
            if change.path == key_path(axis.key):
                fix = f"leave one out, or write --matrix {axis.key}={value_text(change.value)}"
                raise bad_option(change.option, dotted(change.path), f"the matrix varies this key; {fix}")


def _loaded(source: Source, changes: Sequence[Override], axes: Sequence[_Axis]) -> tuple[Cell, ...]:
    shorts = short_names([axis.key for axis in axes])
    cells: list[Cell] = []
    tried: list[_Settings] = []
    found: dict[Problem, list[_Settings]] = {}
    for chosen in _combined(axes):
        settings = tuple(Setting(axis.key, shorts[axis.key], chosen[axis.key].value) for axis in axes)
        tried.append(settings)
        try:
            cells.append(Cell(load_source(source, [*changes, *chosen.values()], cell=True), settings))
        except ScenarioError as error:
            for problem in error.problems:
                found.setdefault(problem, []).append(settings)
    if found:
        raise ScenarioError([_in_cells(problem, ill, tried) for problem, ill in found.items()])
    return tuple(cells)


def _combined(axes: Sequence[_Axis]) -> Iterator[Mapping[str, Override]]:
    """Seeds change most slowly, because they repeat the other cells."""
    ordered = sorted(axes, key=lambda axis: axis.key != SEED)
    for chosen in product(*(axis.changes for axis in ordered)):
        yield {axis.key: change for axis, change in zip(ordered, chosen, strict=True)}


def _in_cells(problem: Problem, ill: Sequence[_Settings], tried: Sequence[_Settings]) -> Problem:
    """Mistakes with their cells, named by the shared values; a mistake of all cells is one of the scenario."""
    if len(ill) == len(tried):
        return problem
    common = tuple(one for one in ill[0] if all(one in settings for settings in ill))
    alike = sum(all(one in settings for one in common) for settings in tried)
    named = [common] if alike == len(ill) else ill
    more = f" and {len(named) - 1} more" if len(named) > 1 else ""
    return replace(problem, message=f"{problem.message} (in {in_brackets(named[0])}{more})")
