"""The key `matrix`: the same scenario with several values of some keys. Each combination is a cell.

`variants` and `cases` are axes too, whose values are names for changes of several keys: a variant is what is compared,
such as a transport, a case what happens to it, such as a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator, WithJsonSchema

from mrc_testbed.testbed.scenario.text.fields import refuse
from mrc_testbed.testbed.scenario.text.keys import key_path

MATRIX = "matrix"
VARIANTS = "variants"
VARIANT = "variant"
CASES = "cases"
CASE = "case"
JUDGE = "judge"
NAMED = {VARIANT: VARIANTS, CASE: CASES}
"""Axes of names: the key that says which one a cell is, and the key that has them all."""
AXES = (MATRIX, *NAMED.values())
"""Keys whose combinations are the cells; a cell has none of them."""
FIXED = {
    "name": "every cell has the scenario's name",
    **dict.fromkeys(AXES, "a cell has no axes of its own"),
    **{name: f"it is the name of a cell's {name}" for name in NAMED},
    JUDGE: "it is about all cells",
    "paper": "a figure is repeated by one scenario",
}
"""First words of keys that cannot vary, and why."""
EXAMPLE = "{fabric.planes: [1, 2, 4]}"


def _key(value: object) -> str:
    if not isinstance(value, str) or not all(value.split(".")):
        raise refuse(f"{value!r} is not a dotted key, such as fabric.planes")
    why = FIXED.get(value.split(".")[0])
    if why:
        raise refuse(f"{value} cannot vary: {why}")
    return value


def _values(value: object) -> tuple[Any, ...]:
    if not isinstance(value, list) or not value:
        raise refuse("must be a list of at least one value, such as [1, 2, 4]")
    twice = next((place for place, one in enumerate(value) if one in value[:place]), None)
    if twice is not None:
        raise refuse(f"duplicate value {value[twice]!r}; to run a cell again use --repeat", below=twice)
    return tuple(value)


def _axes(value: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    if not value:
        raise refuse(f"must have at least one key with its values, such as {EXAMPLE}")
    clash = next(iter(overlapping(value)), None)
    if clash:
        raise refuse(f"{clash[1]} is a part of {clash[0]}; both cannot vary", key=clash[1])
    return value


def overlapping(keys: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of keys where the second is inside the first."""
    pairs = [pair for both in combinations(keys, 2) for pair in (both, both[::-1])]
    return [(outer, inner) for outer, inner in pairs if key_path(inner)[: len(key_path(outer))] == key_path(outer)]


_SCHEMA = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "array", "minItems": 1, "uniqueItems": True},
}
MatrixAxes = Annotated[
    dict[Annotated[str, PlainValidator(_key)], Annotated[tuple[Any, ...], PlainValidator(_values)]],
    AfterValidator(_axes),
    WithJsonSchema(_SCHEMA),
]
"""Values by dotted key, in file order."""
