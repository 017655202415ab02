"""A student's scenario beside its starter: as the files are written, and each cell beside the one it came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mrc_testbed.testbed.inputs import input_bytes
from mrc_testbed.testbed.scenario import Cell, Scenario, load_cells, load_scenario
from mrc_testbed.testbed.scenario.model.matrix import VARIANT
from mrc_testbed.testbed.scenario.text.keys import whole_value


class Beside(NamedTuple):
    """Two scenarios that are compared, as written, at whatever scale they are run. `settings`: of the student's cell;
    empty for the file without its matrix. `handed_out`: the keys that a variant of the starter's own sets there."""

    mine: Scenario
    starter: Scenario
    settings: tuple[str, ...] = ()
    handed_out: tuple[str, ...] = ()


def beside(mine: Path, starter: Path) -> Iterator[Beside]:
    """The files, then every cell that would be run: a matrix or a variant changes what the file says. Raises
    ScenarioError, UsageError."""
    own, base = load_scenario(mine).as_written, load_scenario(starter).as_written
    yield Beside(own, base)
    theirs = load_cells(starter)
    for cell in load_cells(mine):
        if cell.settings:
            origin = _origin(cell, theirs) or base
            settings = tuple(map(str, cell.settings))
            yield Beside(cell.scenario.as_written, origin.as_written, settings, _handed_out(cell, own, base))


def _origin(cell: Cell, starters: Sequence[Cell]) -> Scenario | None:
    """The starter's cell that has no other settings; with further axes of the student's own it is still that one."""
    mine = _settings(cell)
    return next((one.scenario for one in starters if one.settings and _settings(one) <= mine), None)


def _settings(cell: Cell) -> frozenset[tuple[str, str]]:
    """Whatever name a cell is shown by, which depends on the others of its axis."""
    return frozenset((setting.key, whole_value(setting.value)) for setting in cell.settings)


def _handed_out(cell: Cell, own: Scenario, base: Scenario) -> tuple[str, ...]:
    """Keys of the cell's variant, if the starter has just this variant."""
    name = next((str(setting.value) for setting in cell.settings if setting.key == VARIANT), "")
    changes = (base.variants or {}).get(name)
    return tuple(changes) if changes and (own.variants or {}).get(name) == changes else ()


def same_bytes(mine: Path, other: Path) -> bool:
    """Two files that are there hold the same."""
    try:
        return input_bytes(mine) == input_bytes(other)
    except OSError:
        return False
