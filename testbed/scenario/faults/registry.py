"""The registry of fault kinds. Each kind is declared once, by its class; everything that lists kinds uses this."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from testbed.scenario.faults.base import Fault
from testbed.scenario.faults.traits import TOUCHED, Effect

_KIND = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NEEDED = ("kind", "target", "effect", "drawing")
F = TypeVar("F", bound=Fault)

KINDS: dict[str, type[Fault]] = {}
"""The kinds by key, in the order of messages."""


def declare(model: type[F]) -> type[F]:
    """Class decorator: registers a kind. Raises ValueError for an incomplete class, or a key that is taken."""
    lacking = [name for name in _NEEDED if not hasattr(model, name)]
    if lacking:
        raise ValueError(f"fault kind {model.__name__} lacks {', '.join(lacking)}")
    if not _KIND.fullmatch(model.kind) or model.kind == "chaos":
        raise ValueError(f"{model.kind!r} cannot be the key of a fault kind; write for example 'link-down'")
    if model.model_fields["aims"].alias != model.kind:
        raise ValueError(f"fault kind {model.kind}: `aims` needs the alias {model.kind!r}")
    if model.drawing.touched not in TOUCHED:
        raise ValueError(f"fault kind {model.kind}: its drawing must be one of {', '.join(TOUCHED)}")
    _refuse_wrong_chaos(model)
    before = KINDS.get(model.kind)
    if before and (before.__module__, before.__qualname__) != (model.__module__, model.__qualname__):
        raise ValueError(f"there is a fault kind {model.kind!r} already: {before.__module__}.{before.__qualname__}")
    KINDS[model.kind] = model
    return model


def _refuse_wrong_chaos(model: type[Fault]) -> None:
    if model.chaos is None:
        return
    known = {"of", *(field.alias or name for name, field in model.model_fields.items())} - {model.kind, "at", "name"}
    if unknown := [key for key in model.chaos if key not in known]:
        raise ValueError(f"fault kind {model.kind}: `chaos` has {unknown[0]!r}, which is none of its keys")
    if "of" not in model.chaos:
        raise ValueError(f"fault kind {model.kind}: `chaos` needs `of`, the targets that events hit")


def effect_of(kind: str) -> Effect:
    """What a kind changes in the fabric. Raises KeyError for an unknown kind."""
    return KINDS[kind].effect


class Registered:
    """Annotates a field that is validated by the currently registered models, plugins included."""

    def __init__(self, adapter: Callable[[], TypeAdapter[Any]]) -> None:
        self._adapter = adapter

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # A ValidationError that is raised inside keeps its places: pydantic puts them below this field's.
        return core_schema.no_info_plain_validator_function(lambda raw: self._adapter().validate_python(raw))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(self._adapter().core_schema)
