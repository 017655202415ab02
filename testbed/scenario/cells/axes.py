"""The axes of a scenario file and the command line: `matrix` varies one key each, `variants` several at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.scenario.load.loader import bad_option, changed_data, load_source
from mrc_testbed.testbed.scenario.model.matrix import MATRIX, VARIANT, VARIANTS, MatrixAxes
from mrc_testbed.testbed.scenario.model.variants import VariantSet, read_variants, variant_set
from mrc_testbed.testbed.scenario.text.keys import key_path, value_text
from mrc_testbed.testbed.scenario.text.source import KeyPath, Override, Source, dotted
from mrc_testbed.testbed.scenario.text.yaml_text import parse_value

SEED = "seed"
_AXES: TypeAdapter[dict[str, tuple[Any, ...]]] = TypeAdapter(MatrixAxes)


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of an axis, and all that it changes."""

    value: Any
    changes: tuple[Override, ...]


@dataclass(frozen=True, slots=True)
class AxisOfCells:
    """A key that varies; VARIANT for variants."""

    key: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What the command line asks for besides the file: `matrix` are `KEY=V1,V2,...`, which replace the file's axis of
    the same key or add one; `against`: a set of variants in place of the file's; `variants`: which of them, in this
    order, separated by commas; empty: all."""

    matrix: tuple[str, ...] = ()
    variants: str = ""
    against: str = ""


NO_SWEEP = Sweep()


def axes_of(source: Source, changes: Sequence[Override], sweep: Sweep) -> tuple[list[AxisOfCells], VariantSet | None]:
    """The axes, variants first; and the whole set of variants, picked or not. Raises ScenarioError, UsageError."""
    written = changed_data(source, changes)
    matrix = _matrix(source, changes, written, sweep.matrix)
    known = variant_set(sweep.against) if sweep.against else _own_variants(source, changes, written)
    if known is None:
        if sweep.variants:
            raise UsageError(f"--variants {sweep.variants}: {source.file} has none; add `--against baselines`")
        return matrix, None
    chosen = known.picked([name.strip() for name in sweep.variants.split(",")]) if sweep.variants else known
    variants = AxisOfCells(VARIANT, tuple(Choice(name, chosen.overrides(name)) for name in chosen.changes))
    return [variants, *matrix], known


def combined(axes: Sequence[AxisOfCells]) -> Iterator[Mapping[str, Choice]]:
    """One choice of each axis, by its key. Seeds change most slowly, because they repeat the other cells."""
    ordered = sorted(axes, key=lambda axis: axis.key != SEED)
    for chosen in product(*(axis.choices for axis in ordered)):
        yield {axis.key: choice for axis, choice in zip(ordered, chosen, strict=True)}


def _own_variants(source: Source, changes: Sequence[Override], written: Mapping[str, Any]) -> VariantSet | None:
    if VARIANTS not in written:
        return None
    try:
        return VariantSet(read_variants(written[VARIANTS]))
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
            if axis.key != VARIANT and _holds(key_path(axis.key), change.path):
                raise bad_option(change.option, dotted(change.path), _varied(axis.key, change))
    variants = next((axis for axis in axes if axis.key == VARIANT), None)
    for choice in variants.choices if variants else ():
        for own in choice.changes:
            _refuse_own(own, str(choice.value), changes, axes)


def _varied(key: str, change: Override) -> str:
    """Each value of the axis replaces what was set. What was set above the axis stays, but for that part."""
    if change.path == key_path(key):
        return f"the matrix varies this key; leave one out, or write --matrix {key}={value_text(change.value)}"
    return f"the matrix varies {key}, which this key is a part of; leave one out"


def _refuse_own(own: Override, name: str, changes: Sequence[Override], axes: Sequence[AxisOfCells]) -> None:
    for change in changes:
        if _meet(own.path, change.path):
            raise bad_option(
                change.option, dotted(change.path), f"the variant {name} changes this key; pick others by --variants"
            )
    for axis in axes:
        if axis.key != VARIANT and _meet(own.path, key_path(axis.key)):
            where = "leave one out, or pick other variants by --variants"
            raise bad_option(f"matrix {axis.key}", axis.key, f"the variant {name} changes {dotted(own.path)}; {where}")


def _meet(one: KeyPath, other: KeyPath) -> bool:
    """One is the other, or inside it."""
    return _holds(one, other) or _holds(other, one)


def _holds(outer: KeyPath, inner: KeyPath) -> bool:
    """The second is the first, or inside it."""
    return inner[: len(outer)] == outer
