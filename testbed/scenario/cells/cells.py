"""A scenario file, its matrix, variants and cases -> one scenario per cell, or all mistakes of all cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import Problem, ScenarioError, UsageError
from mrc_testbed.testbed.scenario.cells.axes import (
    MINE,
    NO_SWEEP,
    AxisOfCells,
    Choice,
    Sweep,
    axes_of,
    combined,
    refuse_both,
)
from mrc_testbed.testbed.scenario.load.loader import changed_data, load_source, read_changes
from mrc_testbed.testbed.scenario.load.shipped import scenario_file
from mrc_testbed.testbed.scenario.model.matrix import JUDGE, NAMED, VARIANT, VARIANTS
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.presets import ENDPOINT_VALUES, PRESET, USUAL_PRESET
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.model.variants import SETS, VariantSet
from mrc_testbed.testbed.scenario.rules.company import Company
from mrc_testbed.testbed.scenario.text.keys import distinct_texts, short_names, value_text, whole_value
from mrc_testbed.testbed.scenario.text.source import Override, Source, dotted
from mrc_testbed.testbed.scenario.text.yaml_text import read_source
from mrc_testbed.testbed.transports import registry
from mrc_testbed.testbed.transports.base import Transport
from mrc_testbed.topos.units import some

ICRC = "icrc"
MOST_CELLS = 1000
"""Limit of cells; each costs some ten milliseconds to check and some ten seconds to run."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of a cell and its value; `short` and `shown` are what is displayed of them, of a variant or case its
    name."""

    key: str
    short: str
    value: Any
    shown: str

    def __str__(self) -> str:
        return str(self.value) if self.key in NAMED else f"{self.short}={self.shown}"


_Settings = tuple[Setting, ...]


class SettingNames:
    """What is displayed of the keys of some cells and of their values, so that no two are the same."""

    def __init__(self, values: Mapping[str, Iterable[Any]]) -> None:
        """`values`: those that each key has in these cells."""
        self._shorts = short_names(list(values))
        self._texts = {key: distinct_texts(some) for key, some in values.items()}

    def setting(self, key: str, value: Any) -> Setting:
        """One of them."""
        return Setting(key, self._shorts[key], value, self._texts[key][whole_value(value)])


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of values, as a scenario of its own; without a matrix the scenario itself."""

    scenario: Scenario
    settings: tuple[Setting, ...] = ()


def in_brackets(settings: Sequence[Setting]) -> str:
    """`[planes=2, seed=3]`, `[roce-16]`; empty without settings."""
    return f"[{', '.join(map(str, settings))}]" if settings else ""


def load_cells(
    path: str | Path,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    sweep: Sweep = NO_SWEEP,
    most: int = MOST_CELLS,
) -> tuple[Cell, ...]:
    """The cells of a scenario file, grouped by seed, else in the order of its variants, then of its cases, then of its
    matrix with its last key changing first.

    Raises ScenarioError as `load_scenario`, with the mistakes of all cells; UsageError for more than `most` cells, and
    for variants and cases that are not there.
    """
    source = read_source(scenario_file(Path(path)))
    changes = read_changes(overrides, seed)
    axes, variants = axes_of(source, changes, sweep)
    if not axes:
        return (Cell(load_source(source, changes)),)
    refuse_both(changes, axes)
    if (count := prod(len(axis.choices) for axis in axes)) > most:
        raise UsageError(f"{path}: its matrix has {count} cells; {_limit(most)}")
    possible, left_out = _possible(source, changes, axes, sweep)
    cells = _loaded(source, changes, possible, variants)
    told = (*left_out, *_in_no_row(changed_data(source, changes), axes, sweep.against))
    for cell in cells:
        cell.scenario.note_left_out(told)
    return cells


def _in_no_row(data: Mapping[str, Any], axes: Sequence[AxisOfCells], against: str) -> Iterator[str]:
    """A line of what the file sets and each row of a set replaces by something else."""
    rows = [
        dict((one.path, one.value) for one in row.changes)
        for axis in axes
        if axis.key == VARIANT
        for row in axis.choices
    ]
    lost = [
        key
        for key in data
        if rows and all(_as_section(row.get((key,), data[key])) != _as_section(data[key]) for row in rows)
    ]
    if against and lost:
        shown = ", ".join(f"{key}: {value_text(data[key])}" for key in lost)
        yield f"no row of --against {against} has {shown} of the file; `--variants {MINE},...` adds the file as it is"


def _as_section(value: Any) -> Any:
    """A section whose preset is named; the ICRC is left out, because rows keep it."""
    if isinstance(value, str) and value in ENDPOINT_VALUES:
        return {PRESET: value}
    usual = {PRESET: USUAL_PRESET}
    return {**usual, **{key: one for key, one in value.items() if key != ICRC}} if isinstance(value, dict) else value


def _possible(
    source: Source, changes: Sequence[Override], axes: Sequence[AxisOfCells], sweep: Sweep
) -> tuple[list[AxisOfCells], tuple[str, ...]]:
    """Virtual time has no kernel TCP, and verbs have no QPs over it: variants that speak it are left out, unless they
    were picked. A line about each of these too."""
    if sweep.variants or not _without_kernel(changed_data(source, changes)):
        return list(axes), ()
    speaking = {
        choice.value
        for axis in axes
        if axis.key == VARIANT
        for choice in axis.choices
        if _is_of_kernel(_transport(source, [*changes, *choice.changes]))
    }
    left = [
        replace(axis, choices=tuple(one for one in axis.choices if one.value not in speaking))
        if axis.key == VARIANT
        else axis
        for axis in axes
    ]
    told = tuple(
        f"variant {name} is left out: it speaks the kernel's TCP, and virtual time has no kernel"
        for name in sorted(speaking)
    )
    return (left, told) if all(axis.choices for axis in left) else (list(axes), ())


def _without_kernel(data: Mapping[str, Any]) -> bool:
    entries = data.get("workload")
    programs = [entry.get(Programs.kind) for entry in entries if isinstance(entry, dict)] if entries else []
    verbs = any(isinstance(each, dict) and each.get("verbs") for each in programs)
    return verbs or data.get("world") == WorldKind.VIRTUAL


def _limit(most: int) -> str:
    return f"the limit is {most}" if most == MOST_CELLS else f"for more than {most} use --many"


def _loaded(
    source: Source, changes: Sequence[Override], axes: Sequence[AxisOfCells], variants: VariantSet | None
) -> tuple[Cell, ...]:
    names = SettingNames({axis.key: [choice.value for choice in axis.choices] for axis in axes})
    company = _company(source, changes, axes, variants)
    own = _transport(source, changes)
    cells: list[Cell] = []
    tried: list[_Settings] = []
    found: dict[Problem, list[_Settings]] = {}
    for chosen in combined(axes):
        settings = tuple(names.setting(axis.key, chosen[axis.key].value) for axis in axes)
        tried.append(settings)
        try:
            cells.append(Cell(load_source(source, _changes(source, changes, chosen, own), company), settings))
        except ScenarioError as error:
            for problem in error.problems:
                found.setdefault(_with_advice(problem, variants), []).append(settings)
    if found:
        raise ScenarioError([_in_cells(problem, ill, tried) for problem, ill in found.items()])
    if variants and (wrong := list(dict.fromkeys(_other_hosts(cells, source, variants)))):
        raise ScenarioError(wrong)
    return tuple(cells)


def _with_advice(problem: Problem, variants: VariantSet | None) -> Problem:
    """Cases that come with a set are made for other fabrics than some files have."""
    if not (variants and variants.cases and variants.cases.source and problem.file == variants.cases.source.file):
        return problem
    advice = f"; for the faults and the workload of your own file add --cases {MINE}"
    return replace(problem, message=problem.message + advice)


def _other_hosts(cells: Sequence[Cell], source: Source, variants: VariantSet) -> Iterator[Problem]:
    """Variants that have not the hosts of the first one in what is otherwise the same cell."""
    first: dict[_Settings, tuple[str, int]] = {}
    for cell in cells:
        name = str(next(one.value for one in cell.settings if one.key == VARIANT))
        hosts = cell.scenario.written_shape().hosts
        other, wanted = first.setdefault(tuple(one for one in cell.settings if one.key != VARIANT), (name, hosts))
        if hosts != wanted:
            said = f"has {hosts} hosts and {other} {wanted}; variants are compared on the same hosts"
            file, path = variants.source or source, (*variants.prefix, name)
            place = file.key_position(path)
            yield Problem(file.file, place.line, place.column, dotted(path), said)


def _changes(
    source: Source, changes: Sequence[Override], chosen: Mapping[str, Choice], own: Transport | None
) -> list[Override]:
    """All that a cell changes. One that speaks another transport than the file is not judged, unless it says so."""
    mine = [*changes, *(change for choice in chosen.values() for change in choice.changes)]
    if own and _transport(source, mine) not in (own, None) and JUDGE not in changed_data(source, changes):
        mine.append(Override((JUDGE,), [own.word], JUDGE))
    return [*mine, *_icrc(source, changes, mine)]


def _icrc(source: Source, changes: Sequence[Override], mine: Sequence[Override]) -> Iterator[Override]:
    """Faults that corrupt packets need the ICRC of their file, whatever endpoint a row of a shipped set has."""
    own = changed_data(source, changes).get("endpoint")
    replaced = any(one.path == ("endpoint",) and one.source and Path(one.source.file).parent == SETS for one in mine)
    if replaced and isinstance(own, dict) and ICRC in own:
        yield Override(("endpoint", ICRC), own[ICRC], ICRC)


def _company(
    source: Source, changes: Sequence[Override], axes: Sequence[AxisOfCells], variants: VariantSet | None
) -> Company:
    """What the cells are called and speak, those that were not picked included."""
    names = tuple(variants.changes) if variants else ()
    spoken = {name: _transport(source, [*changes, *variants.overrides(name)]) for name in names} if variants else {}
    varied = next((axis for axis in axes if axis.key == "transport"), None)
    if varied:
        spoken = {str(one.value): _transport(source, [*changes, *one.changes]) for one in varied.choices}
    own = {} if spoken else {"": _transport(source, changes)}
    written = changed_data(source, changes).get(VARIANTS)
    absent = tuple(name for name in written if name not in names) if isinstance(written, dict) else ()
    return Company(names, {name: kind for name, kind in {**own, **spoken}.items() if kind}, absent=absent)


def _transport(source: Source, changes: Sequence[Override]) -> Transport | None:
    """What the hosts speak; None if it is unreadable."""
    word = changed_data(source, changes).get("transport", registry.USUAL)
    return registry.known().get(word) if isinstance(word, str) else None


def _is_of_kernel(transport: Transport | None) -> bool:
    return transport is not None and transport.of_kernel


def _in_cells(problem: Problem, ill: Sequence[_Settings], tried: Sequence[_Settings]) -> Problem:
    """Mistakes with their cells, named by the shared values; a mistake of all cells is one of the scenario."""
    if len(ill) == len(tried):
        return problem
    common = tuple(one for one in ill[0] if all(one in settings for settings in ill))
    alike = sum(all(one in settings for one in common) for settings in tried)
    named = [common] if alike == len(ill) else ill
    where = some([in_brackets(one) for one in named], 1)
    return replace(problem, message=f"{problem.message} (in {where})")
