"""chaos: faults of several kinds at random times with given average rates, all drawn before the run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    WithJsonSchema,
    create_model,
    model_validator,
)

from mrc_testbed.testbed.scenario.faults.base import (
    SHORTEST_OUTAGE_NS,
    Entry,
    Fault,
    PlacedFault,
    UnsettledError,
    limited,
)
from mrc_testbed.testbed.scenario.faults.chance import Chance
from mrc_testbed.testbed.scenario.faults.occurrence import Occurrence, in_order
from mrc_testbed.testbed.scenario.faults.registry import Registered, known_kinds
from mrc_testbed.testbed.scenario.faults.selection import Selector, Targets, candidates, too_few
from mrc_testbed.testbed.scenario.text.fields import FaultBegin, LaterStart, Model, PositiveDuration, refuse
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.testbed.scenario.text.units import DURATION
from mrc_testbed.topos.plan import Plan

MAX_EVENTS = 1000
"""Of one kind in one chaos, on average."""

_OFTEN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*/\s*(s|min|h)", re.ASCII)
_OFTEN_SCHEMA = {"type": "string", "pattern": r"^\d+(\.\d+)?\s*/\s*(s|min|h)$"}
_EXAMPLE = "{link-flap: 6/min, switch-reboot: 20/h}"


class Often(NamedTuple):
    """An average rate of events."""

    text: str
    mean_ns: float


def _often(value: object) -> Often:
    match = _OFTEN.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise refuse(f"must be how often on average, such as 6/min or 20/h; got {value!r}")
    if float(match[1]) == 0:
        raise refuse("must be more than 0, such as 6/min")
    return Often(match[0], DURATION.units[match[2]] / float(match[1]))


def _one_or_other(aims: tuple[Selector, ...]) -> tuple[Selector, ...]:
    if len(aims) > 1 and any(aim.draw for aim in aims):
        raise refuse("each event hits one item of this list; remove `any`, or write `any 2 of` with one pattern")
    return aims


class ChaosPart(Model):
    """One kind in chaos: its rate, its targets, and its own keys."""

    model: ClassVar[type[Fault]]

    times: Annotated[Often, PlainValidator(_often), WithJsonSchema(_OFTEN_SCHEMA)] = Field(
        description="how often on average", examples=["6/min"]
    )
    of: Annotated[Targets, AfterValidator(_one_or_other)] = Field(
        description="each event hits one of these, or as many as it says", examples=["any 2 of T0-T1 links"]
    )

    def fault(self, name: str, at_ns: int) -> Fault:
        """One event at that time, with undrawn targets."""
        own = {key: getattr(self, key) for key in type(self).model_fields if key not in ChaosPart.model_fields}
        return self.model.model_construct(at=FaultBegin(at_ns), name=name, aims=self.of, **own)

    def events(self, name: str, begin_ns: int, end_ns: int, plan: Plan, chance: Chance) -> Iterator[Occurrence]:
        """All drawn occurrences of this kind. Raises UnsettledError."""
        pool = self._pool(plan)
        at_ns, number = begin_ns + chance.gap_ns(self.times.mean_ns), 0
        while at_ns < end_ns:
            event = chance.of(str(number))
            targets = tuple(event.choose(pool, self._at_once))
            yield from self.fault(name, at_ns).done_to(targets, plan, event.of("times"))
            at_ns, number = at_ns + chance.gap_ns(self.times.mean_ns), number + 1

    @property
    def _at_once(self) -> int:
        return max(1, self.of[0].draw)

    def _pool(self, plan: Plan) -> list[str]:
        pool: dict[str, None] = {}
        wrong: list[tuple[KeyPath, str]] = []
        for number, aim in enumerate(self.of):
            found, message = candidates(aim, self.model.kind, self.model.target, plan)
            message = message or too_few(aim, len(found))
            if message:
                wrong.append((("of", number) if len(self.of) > 1 else ("of",), message))
            pool |= dict.fromkeys(found)
        if wrong:
            raise UnsettledError(wrong)
        return list(pool)


def parts() -> dict[str, type[ChaosPart]]:
    """The models of the kinds allowed in chaos."""
    return {model.kind: _part(model) for model in _accidents()}


def _accidents() -> tuple[type[Fault], ...]:
    """The kinds with chaos defaults."""
    return tuple(model for model in known_kinds().values() if model.chaos is not None)


@cache
def _part(fault: type[Fault]) -> type[ChaosPart]:
    """The model of a kind inside chaos: its keys without time, targets and name."""
    common = {"at", "name", "aims"}
    fields = fault.model_fields.items()
    own: dict[str, Any] = {key: (field.annotation, field) for key, field in fields if key not in common}
    model = create_model("Chaos" + fault.__name__, __base__=ChaosPart, __doc__=fault.__doc__, **own)
    model.model = fault
    return model


def _filled(kind: str, raw: Any) -> Any:
    return {**(known_kinds()[kind].chaos or {}), **(raw if isinstance(raw, dict) else {"times": raw})}


class ChaosKinds(Model):
    """The content of chaos: for each kind its rate, or a mapping with more."""

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        known = parts()
        return {key: _filled(key, value) if key in known else value for key, value in raw.items()}

    @model_validator(mode="after")
    def _not_empty(self) -> ChaosKinds:
        if not any(self.written()):
            raise refuse(f"needs fault kinds and their rates, such as {_EXAMPLE}; there are {', '.join(parts())}")
        return self

    def written(self) -> Iterator[ChaosPart]:
        """The kinds that are present."""
        yield from (part for key in type(self).model_fields if (part := getattr(self, key)) is not None)


def _entry(fault: type[Fault]) -> Any:
    defaults, part = fault.chaos or {}, _part(fault)
    about = f"how often, such as 6/min; of {defaults['of']} by default"

    def refine(schema: dict[str, Any]) -> None:
        keys = part.model_json_schema(by_alias=True)
        keys["required"] = [key for key in keys["required"] if key not in defaults]
        schema.clear()
        schema |= {"description": about, "anyOf": [_OFTEN_SCHEMA, keys]}

    return part | None, Field(default=None, alias=fault.kind, json_schema_extra=refine)


def chaos_model() -> type[ChaosKinds]:
    """`ChaosKinds` with a field for each kind."""
    return _model(_accidents())


@lru_cache(maxsize=1)
def _model(kinds: tuple[type[Fault], ...]) -> type[ChaosKinds]:
    fields: dict[str, Any] = {fault.kind.replace("-", "_"): _entry(fault) for fault in kinds}
    return create_model("ChaosKinds", __base__=ChaosKinds, **fields)


def _any_chaos() -> TypeAdapter[Any]:
    return _adapter(chaos_model())


@lru_cache(maxsize=1)
def _adapter(model: type[ChaosKinds]) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _untitled(schema: dict[str, Any]) -> None:
    schema["properties"]["chaos"].pop("title", None)


class Chaos(Entry):
    """Faults of several kinds at random times, each at its given rate; everything is healed at the end of `for`.

    Longer faults are cut off there, and faults that would begin less than a millisecond before are left out.
    """

    model_config = ConfigDict(json_schema_extra=_untitled)

    kind: ClassVar[str] = "chaos"

    at: LaterStart = Field(description="when it begins, after the workload's start", examples=["6s"])
    for_ns: PositiveDuration = Field(alias="for", description="how long it lasts", examples=["60s"])
    kinds: Annotated[ChaosKinds, Registered(_any_chaos)] = Field(
        alias="chaos",
        description="kinds of faults, and how often each",
        examples=[_EXAMPLE],
    )

    @property
    def end_ns(self) -> int:
        """The heal of all occurrences."""
        return self.at_ns + self.for_ns

    @property
    def drawn(self) -> bool:
        """Always."""
        return True

    def parts(self) -> Iterator[PlacedFault]:
        """One fault per kind that it draws from."""
        for part in self.kinds.written():
            path = ("chaos", part.model.kind)
            yield PlacedFault(path, path, part.fault(self.name, self.at_ns))

    def occurrences(self, plan: Plan, seed: int) -> tuple[Occurrence, ...]:
        """Every kind has its own random stream."""
        found: list[Occurrence] = []
        wrong: list[tuple[KeyPath, str]] = []
        settled = True
        for part in self.kinds.written():
            where = ("chaos", part.model.kind)
            try:
                found += limited(self._drawn(part, plan, Chance(seed, self.name, part.model.kind)), ())
            except UnsettledError as error:
                settled = False
                wrong += [((*where, *path), message) for path, message in error.mistakes]
        if wrong or not settled:
            raise UnsettledError(wrong)
        return in_order(limited(iter(found), ("chaos",)))

    def _drawn(self, part: ChaosPart, plan: Plan, chance: Chance) -> Iterator[Occurrence]:
        events = self.for_ns / part.times.mean_ns
        if events > MAX_EVENTS:
            raise UnsettledError([(("times",), f"expects about {events:.0f} events; the limit is {MAX_EVENTS}")])
        for one in part.events(self.name, self.at_ns, self.end_ns, plan, chance):
            if one.begin_ns + SHORTEST_OUTAGE_NS <= self.end_ns:
                yield replace(one, end_ns=min(one.end_ns, self.end_ns))
