"""Selects the model of an entry of `faults`: one of the kinds, or chaos."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Union

from pydantic import BeforeValidator, Discriminator, Tag, TypeAdapter

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.faults.base import Entry
from mrc_testbed.testbed.scenario.faults.chaos import Chaos
from mrc_testbed.testbed.scenario.faults.registry import Registered, known_kinds
from mrc_testbed.testbed.scenario.text.fields import refuse
from mrc_testbed.testbed.scenario.text.meant import meant


def entry_models() -> dict[str, type[Entry]]:
    """The models of an entry of `faults`, by key."""
    return {**known_kinds(), Chaos.kind: Chaos}


def kind_of(raw: Any) -> str | None:
    """The key in `raw` that names the kind; the kind of an Entry."""
    if isinstance(raw, Entry):
        return raw.kind
    known = entry_models()
    return next((key for key in raw if key in known), None) if isinstance(raw, dict) else None


def _one_kind(raw: Any) -> Any:
    if not isinstance(raw, dict):
        raise refuse("must be a mapping such as {at: 6s, link-down: p0-t0-0:p0-t1-2, for: 4s}")
    known = entry_models()
    kinds = [key for key in raw if key in known]
    if len(kinds) > 1:
        raise refuse(f"has two kinds, {kinds[0]} and {kinds[1]}; write two entries", key=kinds[1])
    if not kinds:
        raise _without_kind(raw, ", ".join(known))
    return raw


def _without_kind(raw: dict[str, Any], available: str) -> Exception:
    models = entry_models()
    ordinary = {field.alias or name for model in models.values() for name, field in model.model_fields.items()}
    strange = [key for key in raw if key not in ordinary]
    for key in strange:
        if advice := meant(key):
            return refuse(f"unknown fault kind {key!r}; {advice}", key=key)
        if hint := did_you_mean(key, models):
            return refuse(f"unknown fault kind {key!r}{hint}", key=key)
    if strange:
        return refuse(f"unknown fault kind {strange[0]!r}; there are {available}", key=strange[0])
    return refuse(f"has no fault kind; add one of {available}")


def _any_entry() -> TypeAdapter[Any]:
    return _union(tuple(entry_models().items()))


@lru_cache(maxsize=8)
def _union(models: tuple[tuple[str, type[Entry]], ...]) -> TypeAdapter[Any]:
    # The tag is in the path of each error: there `wording` finds the model whose keys were meant.
    tagged: Any = Union[tuple(Annotated[model, Tag(kind)] for kind, model in models)]  # noqa: UP007
    return TypeAdapter(Annotated[tagged, Discriminator(kind_of), BeforeValidator(_one_kind)])


AnyFault = Annotated[Entry, Registered(_any_entry)]
"""Any entry of `faults`."""
