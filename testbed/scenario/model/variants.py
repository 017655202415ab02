"""The keys `variants` and `cases`, `variant`, `case` and `judge`: the same scenario in named forms; each form
changes several keys.

A set of variants is data: the key `variants` of a scenario, one that is shipped, or a file with the same mapping. Such
a file can have `cases` as well, which every variant is then run in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema

from mrc_testbed.testbed.errors import Problem, ScenarioError, UsageError
from mrc_testbed.testbed.expect import Severity, did_you_mean
from mrc_testbed.testbed.expect.reserved import NAME_PATTERN
from mrc_testbed.testbed.inputs import STANDARD_STREAM
from mrc_testbed.testbed.scenario.model.matrix import CASE, CASES, FIXED, NAMED, VARIANT, VARIANTS, overlapping
from mrc_testbed.testbed.scenario.text.fields import Name, refuse
from mrc_testbed.testbed.scenario.text.keys import key_path
from mrc_testbed.testbed.scenario.text.source import KeyPath, Override, Source
from mrc_testbed.testbed.scenario.text.yaml_text import read_source

EXAMPLE = "{mrc: {transport: mrc}, roce-16: {transport: roce, qps: 16}}"
CASES_EXAMPLE = "{near: {faults: [{at: 4s, link-down: p0-t0-0:p0-t1-2, for: 3s}]}, calm: {faults: []}}"
SETS = Path(__file__).with_name("sets")
"""The shipped sets, a file each."""
SUFFIX = ".yaml"
_FAMILY = "fabric.family"
_SIZES = ("planes", "t0_groups", "t1", "hosts_per_t0")


def _changes(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse("must be a mapping of dotted keys, such as {transport: roce, roce.timeout: 16}, or {}")
    for key in value:
        if not isinstance(key, str) or not all(key.split(".")):
            raise refuse(f"{key!r} is not a dotted key, such as roce.timeout", key=key)
        if wrong := _no_change(key, value):
            raise refuse(wrong, key=key)
    if clash := next(iter(overlapping(value)), None):
        raise refuse(f"{clash[1]} is a part of {clash[0]}; write one of them", key=clash[1])
    return dict(value)


def _variant_name(value: str) -> str:
    if value == Severity.WARNING:
        raise refuse(f"{value!r} is reserved in expectations; choose another name")
    return value


def _no_change(key: str, beside: Mapping[str, Any]) -> str:
    first, _, rest = key.partition(".")
    if first in FIXED:
        return f"{key} cannot vary: {FIXED[first]}"
    if first == "fabric" and (not rest or (rest in _SIZES and _FAMILY not in beside)):
        return (
            f"{key} changes the size of the fabric, and variants are compared on the same hosts; vary it by `matrix`,"
            f" or give the variant a {_FAMILY}"
        )
    return ""


def _not_empty(value: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    if not value:
        raise refuse(f"must have at least one name, such as {EXAMPLE}")
    return value


def _names(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(item, str) and item for item in items):
        raise refuse("must be a list of variants or transports, such as [mrc]")
    return tuple(items)


_NAME_SCHEMA = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
Variants = Annotated[
    dict[Annotated[Name, AfterValidator(_variant_name)], Annotated[dict[str, Any], PlainValidator(_changes)]],
    AfterValidator(_not_empty),
    WithJsonSchema(
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": _NAME_SCHEMA,
            "additionalProperties": {"type": "object"},
        }
    ),
]
"""Values by dotted key, by name of the variant."""
Judged = Annotated[
    tuple[str, ...],
    PlainValidator(_names),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
"""Names of variants or transports."""
_ADAPTER: TypeAdapter[dict[str, dict[str, Any]]] = TypeAdapter(Variants)


@dataclass(frozen=True)
class VariantSet:
    """Named changes. `axis`: of NAMED. `source`: the file that they are in, below `prefix`; `cases`: those of the
    same file, which go with it."""

    changes: Mapping[str, Mapping[str, Any]]
    axis: str = VARIANT
    source: Source | None = None
    prefix: KeyPath = (VARIANTS,)
    cases: VariantSet | None = None

    def overrides(self, name: str) -> tuple[Override, ...]:
        """What one of them changes, and its name."""
        option, place = f"{self.axis} {name}", (*self.prefix, name)
        changed = (
            Override(key_path(key), value, option, (*place, key), self.source)
            for key, value in self.changes[name].items()
        )
        return (*changed, Override((self.axis,), name, option, place, self.source))

    def picked(self, names: Sequence[str]) -> VariantSet:
        """These only, in this order. Raises UsageError for one that is not there."""
        for name in names:
            if name not in self.changes:
                there = did_you_mean(name, self.changes) or f"; there are {', '.join(self.changes)}"
                raise UsageError(f"--{NAMED[self.axis]} {','.join(names)}: there is no {self.axis} {name!r}{there}")
        return replace(self, changes={name: self.changes[name] for name in names})


def read_variants(raw: Any) -> dict[str, dict[str, Any]]:
    """The value of `variants`. Raises ValidationError."""
    return _ADAPTER.validate_python(raw)


def shipped_sets() -> dict[str, Path]:
    """The files of shipped sets by name."""
    return {path.stem: path for path in sorted(SETS.glob(f"*{SUFFIX}"))}


@cache
def shipped_names() -> tuple[str, ...]:
    """The variants of all shipped sets."""
    return tuple(dict.fromkeys(name for known in shipped_sets() for name in variant_set(known).changes))


def variant_set(name: str) -> VariantSet:
    """The set in the file `name`, else the shipped one, with its cases. Raises ScenarioError with all its mistakes,
    UsageError if there is none."""
    known, path = shipped_sets(), Path(name)
    if path != STANDARD_STREAM and not path.is_file():
        path = known.get(name, path)
    if path != STANDARD_STREAM and not path.is_file():
        sets = did_you_mean(name, known) or f"; sets are {', '.join(known)}"
        raise UsageError(f"--against {name}: there is no such file, and no set has that name{sets}")
    source = read_source(path)
    if VARIANTS in source.data:
        place = source.key_position((VARIANTS,))
        fix = "a set has the names of its variants at the left margin; leave out this key, and all but what is below it"
        raise ScenarioError([Problem(source.file, place.line, place.column, VARIANTS, fix)])
    data = dict(source.data)
    written = data.pop(CASES, None)
    cases = None if CASES not in source.data else VariantSet(_of_set(source, written, (CASES,)), CASE, source, (CASES,))
    return VariantSet(_of_set(source, data, ()), VARIANT, source, (), cases)


def _of_set(source: Source, data: Any, prefix: KeyPath) -> dict[str, dict[str, Any]]:
    try:
        return read_variants(data)
    except ValidationError as error:
        raise ScenarioError([_problem(source, each, prefix) for each in error.errors()]) from None


def _problem(source: Source, error: Any, prefix: KeyPath) -> Problem:
    key = error.get("ctx", {}).get("key")
    path = (*prefix, *(part for part in error["loc"] if part != "[key]"), *((key,) if key else ()))
    place = source.key_position(path)
    return Problem(source.file, place.line, place.column, ".".join(map(str, path)) or VARIANTS, error["msg"])
