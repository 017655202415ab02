"""Mappings with exactly one key, such as an entry of `workload`: the key gives the kind."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

from pydantic import ConfigDict, model_validator

from mrc_testbed.testbed.scenario.text.fields import Model, refuse, without_null


def _exactly_one(schema: dict[str, Any]) -> None:
    """For the JSON Schema: one key."""
    schema |= {"minProperties": 1, "maxProperties": 1}
    without_null(schema)


def model_within(annotation: Any) -> type[Model] | None:
    """The first model in a type such as `Train | None` or `tuple[Denial, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((model for part in get_args(annotation) if (model := model_within(part))), None)


class OneKey(Model):
    """Every field is optional, and exactly one is present. `empty` is the message for a mapping without any, `several`
    says what to write in place of two."""

    model_config = ConfigDict(json_schema_extra=_exactly_one)

    empty: ClassVar[str]
    several: ClassVar[str] = "write two entries"

    @classmethod
    def kinds(cls) -> dict[str, str]:
        """Attribute by key."""
        return {field.alias or name: name for name, field in cls.model_fields.items()}

    @classmethod
    def models(cls) -> dict[str, type[Model]]:
        """The model below each key."""
        found = {key: model_within(cls.model_fields[name].annotation) for key, name in cls.kinds().items()}
        return {key: model for key, model in found.items() if model}

    @model_validator(mode="before")
    @classmethod
    def _one_kind(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        names = cls.kinds()
        kinds = [key for key in raw if key in names]
        if len(kinds) > 1:
            raise refuse(f"has two kinds, {kinds[0]} and {kinds[1]}; {cls.several}", key=kinds[1])
        for key in kinds:
            if raw[key] is None:
                example = (cls.model_fields[names[key]].examples or [])[:1]
                raise refuse(f"{key} needs its keys, such as {key}: {''.join(map(str, example))}", key=key)
        if not raw:
            raise refuse(f"{cls.empty}; one of {', '.join(names)}")
        return raw

    @property
    def chosen(self) -> tuple[str, Any]:
        """The present key and its value."""
        return next((key, value) for key, name in self.kinds().items() if (value := getattr(self, name)) is not None)
