"""A student's scenario beside its starter: as the files are written, and each cell beside the one it came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from testbed.scenario import Cell, Scenario, load_cells, load_scenario


class Beside(NamedTuple):
    """Two scenarios that are compared. `settings`: of the student's cell; empty for the file without its matrix."""

    mine: Scenario
    starter: Scenario
    settings: tuple[str, ...] = ()


def beside(mine: Path, starter: Path) -> Iterator[Beside]:
    """The files, then every cell that would be run: a matrix or a variant changes what the file says. Raises
    ScenarioError, UsageError."""
    base = load_scenario(starter)
    yield Beside(load_scenario(mine), base)
    theirs = load_cells(starter)
    for cell in load_cells(mine):
        if cell.settings:
            settings = _words(cell)
            yield Beside(cell.scenario, _origin(settings, theirs) or base, settings)


def _origin(settings: Sequence[str], starters: Sequence[Cell]) -> Scenario | None:
    """The starter's cell that has no other settings; with further axes of the student's own it is still that one."""
    return next((one.scenario for one in starters if one.settings and set(_words(one)) <= set(settings)), None)


def _words(cell: Cell) -> tuple[str, ...]:
    return tuple(map(str, cell.settings))
