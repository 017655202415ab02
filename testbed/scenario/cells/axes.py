"""The axes of a scenario file and the command line: `matrix` varies one key each, `variants` and `cases` several at
once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.scenario.load.loader import bad_option, changed_data, load_source
from mrc_testbed.testbed.scenario.model.matrix import CASE, CASES, MATRIX, NAMED, VARIANT, MatrixAxes
from mrc_testbed.testbed.scenario.model.variants import VariantSet, read_variants, variant_set
from mrc_testbed.testbed.scenario.text.keys import key_path, value_text
from mrc_testbed.testbed.scenario.text.source import KeyPath, Override, Source, dotted
from mrc_testbed.testbed.scenario.text.yaml_text import parse_value

SEED = "seed"
MINE = "mine"
"""What is the file's own beside a set: as a case its cases, or what it has without any; as a variant the file."""
_AXES: TypeAdapter[dict[str, tuple[Any, ...]]] = TypeAdapter(MatrixAxes)


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of an axis, and all that it changes."""

    value: Any
    changes: tuple[Override, ...]


@dataclass(frozen=True, slots=True)
class AxisOfCells:
    """A key that varies; one of NAMED for names."""

    key: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What the command line asks for besides the file: `matrix` are `KEY=V1,V2,...`, which replace the file's axis of
    the same key or add one; `against`: a set of variants in place of the file's, and of its cases if the set has any;
    `variants`, `cases`: which of them, in this order, separated by commas; empty: all. The case MINE of a set is what
    the file has."""

    matrix: tuple[str, ...] = ()
    variants: str = ""
    against: str = ""
    cases: str = ""


NO_SWEEP = Sweep()


def axes_of(source: Source, changes: Sequence[Override], sweep: Sweep) -> tuple[list[AxisOfCells], VariantSet | None]:
    """The axes, variants first, then cases; and the whole set of variants, picked or not. Raises ScenarioError,
    UsageError."""
    written = changed_data(source, changes)
    matrix = _matrix(source, changes, written, sweep.matrix)
    known = variant_set(sweep.against) if sweep.against else _own(source, changes, written, VARIANT)
    if known and sweep.against and MINE in _listed(sweep.variants):
        known = _with_mine(known)
    own = _own(source, changes, written, CASE)
    cases = (known.cases if known else None) or own
    if sweep.against and MINE in _listed(sweep.cases) and MINE not in (cases.changes if cases else ()):
        cases = own if own and _listed(sweep.cases) == [MINE] else _with_mine(cases)
        sweep = replace(sweep, cases="") if cases is own else sweep
    asked = ((VARIANT, known, sweep.variants), (CASE, cases, sweep.cases))
    return [*(axis for one in asked if (axis := _named(source, *one))), *matrix], known


def _named(source: Source, key: str, known: VariantSet | None, wanted: str) -> AxisOfCells | None:
    """The names of `known` that are `wanted`, as an axis; None without any."""
    if known is None:
        if wanted:
            add = "baselines" if key == VARIANT else "today"
            raise UsageError(f"--{NAMED[key]} {wanted}: {source.file} has none; add `--against {add}`")
        return None
    chosen = known.picked(_listed(wanted)) if wanted else known
    return AxisOfCells(key, tuple(Choice(name, chosen.overrides(name)) for name in chosen.changes))


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


def _with_mine(names: VariantSet | None) -> VariantSet:
    """The names of a set, and one more that changes nothing."""
    known = names or VariantSet({}, CASE, prefix=(CASES,))
    return replace(known, changes={**known.changes, MINE: {}})


def combined(axes: Sequence[AxisOfCells]) -> Iterator[Mapping[str, Choice]]:
    """One choice of each axis, by its key. Seeds change most slowly, because they repeat the other cells."""
    ordered = sorted(axes, key=lambda axis: axis.key != SEED)
    for chosen in product(*(axis.choices for axis in ordered)):
        yield {axis.key: choice for axis, choice in zip(ordered, chosen, strict=True)}


def _own(source: Source, changes: Sequence[Override], written: Mapping[str, Any], axis: str) -> VariantSet | None:
    if NAMED[axis] not in written:
        return None
    try:
        return VariantSet(read_variants(written[NAMED[axis]]), axis, prefix=(NAMED[axis],))
    except ValidationError:
        load_source(source, changes)  # tells it with all other mistakes
        raise


def _matrix(
    source: Source, changes: Sequence[Override], data: Mapping[str, Any], options: Sequence[str]
) -> list[AxisOfCells]:
    """The axes of the file, then those of options alone. Raises ScenarioError."""
    written = data.get(MATRIX)
    try:
        read = _AXES.validate_python(written) if written is not None or MATRIX in source.data else {}
    except ValidationError:
        load_source(source, changes)  # tells it with all other mistakes
        raise
    by_key = {key: AxisOfCells(key, _of_file(key, values)) for key, values in read.items()}
    by_key |= {axis.key: axis for axis in map(_of_option, options)}
    try:
        _AXES.validate_python({key: [one.value for one in axis.choices] for key, axis in by_key.items()} or None)
    except ValidationError as error:
        if by_key:
            raise bad_option("--matrix", MATRIX, error.errors()[0]["msg"]) from None
    return list(by_key.values())


def _of_file(key: str, values: Sequence[Any]) -> tuple[Choice, ...]:
    return tuple(
        Choice(value, (Override(key_path(key), value, f"matrix {key}", (MATRIX, key, number)),))
        for number, value in enumerate(values)
    )


def _of_option(option: str) -> AxisOfCells:
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
    made = (Override(key_path(key), value, f"--matrix {key}={value_text(value)}") for value in values)
    return AxisOfCells(key, tuple(Choice(change.value, (change,)) for change in made))


def refuse_both(changes: Sequence[Override], axes: Sequence[AxisOfCells]) -> None:
    """Refuses a key that is both set and varied, or varied twice. Raises ScenarioError."""
    for change in changes:
        for axis in axes:
            if axis.key not in NAMED and _holds(key_path(axis.key), change.path):
                raise bad_option(change.option, dotted(change.path), _varied(axis.key, change))
    named = [axis for axis in axes if axis.key in NAMED]
    for one in named:
        for choice in one.choices:
            for own in choice.changes:
                _refuse_own(own, one.key, str(choice.value), changes, axes)
    if len(named) > 1:
        _refuse_both_named(*named)


def _varied(key: str, change: Override) -> str:
    """Each value of the axis replaces what was set. What was set above the axis stays, but for that part."""
    if change.path == key_path(key):
        return f"the matrix varies this key; leave one out, or write --matrix {key}={value_text(change.value)}"
    return f"the matrix varies {key}, which this key is a part of; leave one out"


def _refuse_own(own: Override, kind: str, name: str, changes: Sequence[Override], axes: Sequence[AxisOfCells]) -> None:
    pick = f"pick others by --{NAMED[kind]}"
    for change in changes:
        if _meet(own.path, change.path):
            raise bad_option(change.option, dotted(change.path), f"the {kind} {name} changes this key; {pick}")
    for axis in axes:
        if axis.key not in NAMED and _meet(own.path, key_path(axis.key)):
            why = f"the {kind} {name} changes {dotted(own.path)}; leave one out, or {pick}"
            raise bad_option(f"matrix {axis.key}", axis.key, why)


def _refuse_both_named(variants: AxisOfCells, cases: AxisOfCells) -> None:
    """A variant and a case that change one key: which of them counts, nobody could tell."""
    for variant, case in product(variants.choices, cases.choices):
        for one, other in product(variant.changes, case.changes):
            if _meet(one.path, other.path):
                why = f"the variant {variant.value} changes {dotted(one.path)} as well; leave it out of one of them"
                raise bad_option(f"case {case.value}", dotted(other.path), why)


def _meet(one: KeyPath, other: KeyPath) -> bool:
    """One is the other, or inside it."""
    return _holds(one, other) or _holds(other, one)


def _holds(outer: KeyPath, inner: KeyPath) -> bool:
    """The second is the first, or inside it."""
    return inner[: len(outer)] == outer
