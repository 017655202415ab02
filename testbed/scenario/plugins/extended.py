"""Scenario models extended by plugins: the same keys and messages, plus the plugins' names."""

from __future__ import annotations

import dataclasses
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import AfterValidator, Field, PlainValidator, Strict, WithJsonSchema, create_model
from pydantic.fields import FieldInfo

from mrc_testbed.hosts.mrc.cc import ALGORITHMS
from mrc_testbed.hosts.mrc.evselect import SELECTIONS
from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
from mrc_testbed.testbed.scenario.model.fabric import FabricSettings
from mrc_testbed.testbed.scenario.model.families import family_choice
from mrc_testbed.testbed.scenario.model.models import Scenario, some_work
from mrc_testbed.testbed.scenario.model.offered import Offered
from mrc_testbed.testbed.scenario.model.step_models import Alone, Over, Sized, StepItem, StepPart, Train
from mrc_testbed.testbed.scenario.model.transports import AS_WORD
from mrc_testbed.testbed.scenario.model.workloads import WorkloadItem
from mrc_testbed.testbed.scenario.text.fields import CONTROL_NOUN, SELECTION_NOUN, Model, one_of, refuse
from mrc_testbed.testbed.transports import registry
from mrc_testbed.testbed.transports.base import Transport
from mrc_testbed.testbed.workloads.collective import Collective, Terms
from mrc_testbed.topos.families.registry import FAMILIES

M = TypeVar("M", bound=Model)
_STRICT = (bool, int, float, str)
_Fields = dict[str, tuple[Any, FieldInfo]]


@cache
def scenario_model(offered: Offered) -> type[Scenario]:
    """`Scenario` for files that have these plugins."""
    if not offered.plugins and offered.whole:
        return Scenario
    endpoint, item = _endpoint(offered), _workload_item(offered)
    entries: Any = Annotated[tuple[item, ...], AfterValidator(some_work)]  # type: ignore[valid-type]
    return _with(
        Scenario,
        {
            "fabric": _fabric(offered),
            "endpoint": (endpoint, _again(Scenario, "endpoint", default_factory=endpoint)),
            "workload": (entries, _again(Scenario, "workload")),
            "transport": (_transport(offered), _again(Scenario, "transport", default_factory=lambda: registry.USUAL)),
        },
    )


def _fabric(offered: Offered) -> tuple[Any, FieldInfo]:
    families = {**FAMILIES, **offered.named("family")}
    family: Any = family_choice(families)
    given_family = (family | None, _again(FabricSettings, "given_family"))
    fabric = _with(FabricSettings, {"given_family": given_family})
    fabric.families = families
    return fabric, _again(Scenario, "fabric", default_factory=fabric)


def _transport(offered: Offered) -> Any:
    known = {**registry.TRANSPORTS, **offered.named("transport")}
    word = one_of("a transport", list(known), offered.whole)
    read = PlainValidator(lambda value: known.get(word(value), registry.USUAL))
    return Annotated[Transport, read, AS_WORD, WithJsonSchema({"enum": list(known)})]


def _endpoint(offered: Offered) -> type[EndpointSettings]:
    def choice(kind: str, noun: str, ours: Any) -> tuple[Any, FieldInfo]:
        known = [*ours, *offered.named(kind)]
        read = PlainValidator(one_of(noun, known, offered.whole))
        return Annotated[str, read, WithJsonSchema({"enum": known})], _again(EndpointSettings, kind)

    own = {one.name: _section(one.name, one.made) for one in offered.plugins if one.has_keys}
    endpoint = _with(
        EndpointSettings,
        {
            "congestion_control": choice("congestion_control", CONTROL_NOUN, ALGORITHMS),
            "ev_selection": choice("ev_selection", SELECTION_NOUN, SELECTIONS),
            **own,
        },
    )
    endpoint.plugins = tuple(own)
    return endpoint


def _section(name: str, made: Any) -> tuple[Any, FieldInfo]:
    """The own keys of a congestion control or an EV selection, which are also checked by its `Keys`."""

    def accepted(keys: Model) -> Model:
        try:
            made.Keys(**keys.model_dump())
        except ValueError as error:
            raise refuse(str(error)) from error
        except Exception as error:
            raise refuse(f"cannot be read by the plugin: {type(error).__name__}: {error}") from error
        return keys

    own = _with(Model, _own_keys(made), name)
    shown: Any = Field(default_factory=own, description=f"keys of the plugin {name}", examples=["{}"])
    return Annotated[own, AfterValidator(accepted)], shown


def _workload_item(offered: Offered) -> type[WorkloadItem]:
    sized = {name: _sized(name, made) for name, made in offered.named("workload").items()}
    over = {
        name: _optional(_joined(f"{name} in a step", Over, model), "{size: 64KiB}") for name, model in sized.items()
    }
    alone = {name: _optional(_alone(name, model), "{size: 64KiB, iterations: 20}") for name, model in sized.items()}
    item = _with(StepItem, over)
    part = _with(StepPart, {**over, "together": (tuple[item, ...] | None, _again(StepPart, "together"))})  # type: ignore[valid-type]
    train = _with(Train, {"step": (tuple[part, ...], _again(Train, "step"))})  # type: ignore[valid-type]
    return _with(WorkloadItem, {**alone, "train": (train | None, _again(WorkloadItem, "train"))})


def _sized(name: str, made: type[Collective]) -> type[Sized]:
    """The keys of all collectives, and those of a plugin's."""
    own = _own_keys(made)

    def terms(self: Any) -> Terms:
        keys = made.Keys(**{key: getattr(self, key) for key in own}) if made.Keys else None
        return Terms(self.size_bytes, self.qps, self.message_bytes, own=keys)

    model = _with(Sized, own, name)
    model.plugin = made
    model.terms = terms  # type: ignore[method-assign]
    return model


def _own_keys(made: Any) -> _Fields:
    """The fields of the `Keys` of a plugin's class, if it has some."""
    if made.Keys is None:
        return {}
    hints, usual = get_type_hints(made.Keys, include_extras=True), made.Keys()
    return {one.name: _own_key(hints[one.name], one, getattr(usual, one.name)) for one in fields(made.Keys)}


def _own_key(hint: Any, one: dataclasses.Field[Any], usual: Any) -> tuple[Any, FieldInfo]:
    shown: FieldInfo = Field(default=usual, description=one.metadata.get("description"))
    return Annotated[hint, Strict()] if hint in _STRICT else hint, shown


def _alone(name: str, sized: type[Sized]) -> type[Alone]:
    model: type[Alone] = _joined(f"{name} by itself", Alone, sized)
    model.kind = name
    return model


def _optional(model: type[Model], example: str) -> tuple[Any, FieldInfo]:
    shown: Any = Field(default=None, description="collective of a plugin", examples=[example])
    return model | None, shown


def _joined(name: str, *bases: type[Model]) -> Any:
    return create_model(name, __base__=bases)


def _with(model: type[M], changed: _Fields, name: str = "") -> type[M]:
    """A model with replaced or added fields."""
    made: type[M] = create_model(name or model.__name__, __base__=model, **changed)  # type: ignore[call-overload]
    return made


def _again(model: type[Model], name: str, **changed: Any) -> FieldInfo:
    """The description of a field, for another type."""
    field = model.model_fields[name]
    documented = {"alias": field.alias, "description": field.description, "examples": field.examples}
    default = {} if field.is_required() or field.default_factory else {"default": field.default}
    extra = {"json_schema_extra": field.json_schema_extra} if field.json_schema_extra else {}
    made: FieldInfo = Field(**{**documented, **default, **extra, **changed})
    return made
