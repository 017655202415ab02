"""Validation errors in plain words, each with its path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.faults import entry_models
from mrc_testbed.testbed.scenario.faults.chaos import chaos_model, parts
from mrc_testbed.testbed.scenario.model.matrix import AXES
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.text.fields import PLAIN, Model
from mrc_testbed.testbed.scenario.text.meant import meant
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.one_key import model_within
from mrc_testbed.testbed.scenario.text.source import KeyPath

KEY = "[key]"
"""Marks that the validator means the key itself."""


def mistake_of(error: ErrorDetails, root: type[Model] = Scenario) -> Mistake:
    """Converts one validation error of a scenario of model `root`."""
    path = user_path(error["loc"])
    context: Mapping[str, Any] = error.get("ctx", {})
    if error["type"] == PLAIN:
        if "key" in context:
            return Mistake((*path, context["key"]), context["message"], at_key=True)
        below = context.get("below", ())
        below = below if isinstance(below, tuple) else (below,)
        about_key = error["loc"][-1:] == (KEY,)
        return Mistake((*path, *below), context["message"], about_key, context.get("column", 0))
    if error["type"] == "extra_forbidden":
        return Mistake(path, _unknown_key(error["loc"], root), at_key=True)
    if error["type"] == "missing":
        return Mistake(path[:-1], _missing_key(error["loc"], root), at_key=True)
    return Mistake(path, _plain(error, context, root))


def user_path(loc: tuple[int | str, ...]) -> KeyPath:
    """The path without the validator's additions, such as the fault kind behind the index of a fault."""
    if loc[:1] in [(key,) for key in AXES] and loc[2:] == (KEY,):
        return loc[:2]
    return loc[:2] + loc[3:] if loc[:1] == ("faults",) and len(loc) > 2 else loc


def model_at(loc: tuple[int | str, ...], root: type[Model]) -> type[BaseModel] | None:
    """The model of the keys at `loc`, in a scenario of model `root`."""
    if loc[:1] == ("faults",):
        return _fault_model(loc[2:])
    found: type[Model] | None = root
    for key in loc:
        field = keys_of(found).get(key) if found and isinstance(key, str) else None
        found = found if isinstance(key, int) else model_within(field.annotation) if field else None
    return found


def _fault_model(inside: tuple[int | str, ...]) -> type[BaseModel] | None:
    match inside:
        case (str(kind),):
            return entry_models().get(kind)
        case ("chaos", "chaos"):
            return chaos_model()
        case ("chaos", "chaos", str(kind)):
            return parts().get(kind)
    return None


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their YAML key."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _unknown_key(loc: tuple[int | str, ...], root: type[Model]) -> str:
    model = model_at(loc[:-1], root)
    known = keys_of(model) if model else {}
    advice = meant(str(loc[-1])) if loc[:1] == ("fabric",) else ""
    hint = f"; {advice}" if advice else did_you_mean(str(loc[-1]), known) or f"; known here: {', '.join(known)}"
    return f"unknown key {str(loc[-1])!r}{hint}"


def _missing_key(loc: tuple[int | str, ...], root: type[Model]) -> str:
    key = str(loc[-1])
    example = _example(loc, root)
    return f"the key {key!r} is missing" + (f"; write for example `{key}: {example}`" if example else "")


def _example(loc: tuple[int | str, ...], root: type[Model]) -> str:
    model = model_at(loc[:-1], root)
    field = keys_of(model).get(str(loc[-1])) if model else None
    return str(field.examples[0]) if field and field.examples else ""


def _plain(error: ErrorDetails, context: Mapping[str, Any], root: type[Model]) -> str:
    words = _WORDS.get(error["type"])
    if words is None:
        return "is not valid here"
    example = _example(error["loc"], root)
    got = _shown(error["input"])
    return words(context) + (f", such as {example}" if example else "") + (f"; got {got}" if got else "")


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:40]}..."
    return "a mapping" if isinstance(value, Mapping) else ""


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), lambda _: "must be a whole number"),
    "int_parsing_size": lambda _: "is too large",
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), lambda _: "must be a number"),
    "bool_type": lambda _: "must be true or false",
    "string_type": lambda _: "must be text",
    **dict.fromkeys(("tuple_type", "list_type"), lambda _: "must be a list"),
    **dict.fromkeys(("model_type", "dict_type", "model_attributes_type"), lambda _: "must be a mapping of keys"),
    "greater_than": lambda ctx: f"must be more than {ctx['gt']}",
    "greater_than_equal": lambda ctx: f"must be at least {ctx['ge']}",
    "less_than": lambda ctx: f"must be less than {ctx['lt']}",
    "less_than_equal": lambda ctx: f"must be at most {ctx['le']}",
    "literal_error": lambda ctx: f"must be {ctx['expected']}",
}
