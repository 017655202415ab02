"""The registry of fault kinds. Each kind is declared once, by its class; everything that lists kinds uses this."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from mrc_testbed.testbed.scenario.faults.base import Fault
from mrc_testbed.testbed.scenario.faults.traits import TOUCHED, Effect

_KIND = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NEEDED = ("kind", "target", "effect", "drawing")
F = TypeVar("F", bound=Fault)

_KINDS: dict[str, type[Fault]] = {}
KINDS: Mapping[str, type[Fault]] = MappingProxyType(_KINDS)
"""Ours by key, in the order of messages."""

_OF_PLUGINS: ContextVar[Mapping[str, type[Fault]]] = ContextVar("fault kinds of plugins", default=MappingProxyType({}))


def known_kinds() -> Mapping[str, type[Fault]]:
    """Those that a scenario can name: KINDS, and inside of `with_kinds` those of plugins."""
    return {**KINDS, **_OF_PLUGINS.get()}


@contextmanager
def with_kinds(more: Mapping[str, type[Fault]]) -> Iterator[None]:
    """What is read meanwhile can name these kinds too: each scenario has its own plugins."""
    token = _OF_PLUGINS.set(more)
    try:
        yield
    finally:
        _OF_PLUGINS.reset(token)


def declare(model: type[F]) -> type[F]:
    """Class decorator: registers a kind of ours. Raises ValueError for an incomplete class."""
    wrong = wrong_kind(model)
    if wrong:
        raise ValueError(f"fault kind {model.__name__} {wrong}")
    _KINDS[model.kind] = model
    return model


def wrong_kind(model: type[Fault]) -> str:
    """Why the class is no whole kind, or nothing; ours and those of plugins."""
    lacking = [name for name in _NEEDED if not hasattr(model, name)]
    if lacking:
        return f"lacks {', '.join(lacking)}"
    if not _KIND.fullmatch(model.kind) or model.kind == "chaos":
        return f"has the kind {model.kind!r}, which cannot be a key; write for example 'link-down'"
    if model.model_fields["aims"].alias != model.kind:
        return f"has an `aims` that needs the alias {model.kind!r}"
    if model.drawing.touched not in TOUCHED:
        return f"has a drawing that must be one of {', '.join(TOUCHED)}"
    if model.effect is Effect.RULES and model.places is Fault.places:
        return "has the effect RULES, and needs `places` for the rules"
    return _wrong_chaos(model)


def _wrong_chaos(model: type[Fault]) -> str:
    if model.chaos is None:
        return ""
    known = {"of", *(field.alias or name for name, field in model.model_fields.items())} - {model.kind, "at", "name"}
    if unknown := [key for key in model.chaos if key not in known]:
        return f"has {unknown[0]!r} in `chaos`, which is none of its keys"
    return "" if "of" in model.chaos else "has a `chaos` that needs `of`, the targets that events hit"


class Registered:
    """Annotates a field that is validated by the currently known models, plugins included."""

    def __init__(self, adapter: Callable[[], TypeAdapter[Any]]) -> None:
        self._adapter = adapter

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # A ValidationError that is raised inside keeps its places: pydantic puts them below this field's.
        return core_schema.no_info_plain_validator_function(lambda raw: self._adapter().validate_python(raw))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(self._adapter().core_schema)
