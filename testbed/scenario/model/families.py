"""The families of topologies as keys of a scenario: `family: {clos3: {pods: 2, ...}}`.

The keys of a family are the fields of its dataclass. Those of `clos2` are in `fabric` itself; they are below
`family` where variants differ in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, get_type_hints

from pydantic import Field, Strict, create_model, model_validator

from mrc_testbed.testbed.expect import all_known
from mrc_testbed.testbed.scenario.text.fields import WHOLE, Model, Shares, given, refuse
from mrc_testbed.testbed.scenario.text.one_key import OneKey
from mrc_testbed.testbed.scenario.text.units import format_share
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.registry import FAMILIES
from mrc_testbed.topos.graph import FULL_SPEED, Family, ShapeError, check

FLAT = Clos2
"""The family whose keys are in `fabric` itself."""
UNKNOWN_FAMILY = "unknown family"
_STRICT = (bool, int, float, str)
_SHARES = tuple[float, ...]


class FamilyChoice(OneKey):
    """The family of the fabric, where its keys are not in `fabric` itself."""

    empty = "names no family"
    several = "a fabric has one family"

    offered: ClassVar[Mapping[str, type[Family]]] = {}
    """By their words, those that can be named."""

    @model_validator(mode="before")
    @classmethod
    def _is_known(cls, raw: Any) -> Any:
        for word in raw if isinstance(raw, dict) else ():
            if word not in cls.offered:
                raise refuse(f"{UNKNOWN_FAMILY} {word!r}{all_known(str(word), cls.offered)}", key=word)
        return raw

    def topology(self) -> Family:
        """A plane of the fabric. Raises ShapeError with the path of the key below `fabric`."""
        word, keys = self.chosen
        return topology(self.offered[word], dict(keys), f"family.{word}")


def family_choice(offered: Mapping[str, type[Family]]) -> type[FamilyChoice]:
    """The model of `family` where these can be named."""
    kinds: dict[str, Any] = {word: _kind(word, made) for word, made in offered.items()}
    model = create_model("FamilyChoice", __base__=FamilyChoice, __doc__=FamilyChoice.__doc__, **kinds)
    model.offered = offered
    return model


def keys_of(made: type[Family]) -> tuple[str, ...]:
    """The keys of a family."""
    return tuple(one.name for one in _fields(made))


def family_with(key: object, offered: Mapping[str, type[Family]]) -> str:
    """The first family that has this key, or nothing."""
    return next((word for word, made in offered.items() if key in keys_of(made)), "")


def family_key_field(made: type[Family], name: str, **changed: Any) -> Any:
    """A key of a scenario as the field of a family says it. `changed`: what is said otherwise."""
    return _shown(next(one for one in _fields(made) if one.name == name), **changed)


def examples_of(made: type[Family]) -> dict[str, Any]:
    """A value of each key that has no usual one."""
    return {one.name: one.metadata.get("example") for one in _required(made)}


def wrong_keys_of(made: type[Family]) -> str:
    """Why the fields of a class cannot be keys of a scenario, or nothing."""
    hints = get_type_hints(made)
    for one in _fields(made):
        if one.default_factory is not dataclasses.MISSING:
            return f"has a key {one.name!r} with a default_factory; write a default"
        if one.name.startswith("_") or hasattr(Model, one.name):
            return f"has a key {one.name!r}; choose another name"
        if hints[one.name] not in (*_STRICT, _SHARES):
            return f"has a key {one.name!r} that is no int, float, bool, str, or tuple[float, ...] for shares"
        if one.default is dataclasses.MISSING and "example" not in one.metadata:
            return f"has a key {one.name!r} without an example; write family_key(DESCRIPTION, EXAMPLE)"
    return ""


def topology(made: type[Family], keys: Mapping[str, Any], place: str) -> Family:
    """A plane of this family, checked. Raises ShapeError, whose field begins with `place` unless that is empty."""
    try:
        return _plane(made, tuple(keys.items()))
    except ShapeError as error:
        known = error.field in keys_of(made)
        raise ShapeError(".".join(filter(None, (place, error.field if known else ""))), error.limit) from error
    except ValueError as error:
        raise ShapeError(place, str(error)) from error


@lru_cache(maxsize=256)
def _plane(made: type[Family], keys: tuple[tuple[str, Any], ...]) -> Family:
    """Made once, because what a plane derives from its keys is asked for again and again."""
    plane = made(**dict(keys))
    if made not in FAMILIES.values():  # ours are right for all numbers that they take: tests say so
        check(plane)
    return plane


def _kind(word: str, made: type[Family]) -> tuple[Any, Any]:
    example = "{" + ", ".join(f"{key}: {value}" for key, value in examples_of(made).items()) + "}"
    about = (made.__doc__ or "").partition("\n")[0]
    return Annotated[_model(word, made) | None, given(example)], Field(
        default=None, description=about, examples=[example]
    )


@cache
def _model(word: str, made: type[Family]) -> type[Model]:
    hints = get_type_hints(made)
    keys: dict[str, Any] = {one.name: (_type(hints[one.name]), _shown(one)) for one in _fields(made)}
    return create_model(f"Family {word}", __base__=Model, __doc__=(made.__doc__ or ""), **keys)


def _type(hint: Any) -> Any:
    return Shares if hint == _SHARES else Annotated[hint, Strict()] if hint in _STRICT else hint


def _shown(one: dataclasses.Field[Any], **changed: Any) -> Any:
    usual = {} if one.default is dataclasses.MISSING else {"default": one.default}
    if one.default == FULL_SPEED:
        usual["json_schema_extra"] = {"default": format_share(WHOLE)}
    example = [one.metadata["example"]] if "example" in one.metadata else None
    return Field(**{"description": one.metadata.get("description"), "examples": example, **usual, **changed})


def _required(made: type[Family]) -> list[dataclasses.Field[Any]]:
    return [one for one in _fields(made) if one.default is dataclasses.MISSING]


def _fields(made: type[Family]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(made)  # type: ignore[arg-type]
