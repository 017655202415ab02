"""Field types of the scenario models: quantities with units, names, lists of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from mrc_testbed.hosts.mrc.cc import ALGORITHMS
from mrc_testbed.hosts.mrc.evselect import SELECTIONS
from mrc_testbed.testbed.expect import all_known, did_you_mean, is_reserved
from mrc_testbed.testbed.expect.reserved import ALL_FAULTS, NAME_PATTERN, WHOLE_RUN
from mrc_testbed.testbed.scenario.text.units import DURATION, RATE, SHARE, SIZE, Quantity, UnitError, format_size

COLD_START = "cold-start"
PAYLOADS = (256, 512, 1024, 2048, 4096)
"""Path MTUs of InfiniBand and of MRC (API)."""
AUTO = "auto"
"""Instead of a value: it follows something else."""
WHOLE = 1_000_000
"""Millionths in a whole."""
PLAIN = "plain"
"""Error type of messages that are shown as they are.

`ctx["column"]`: column inside the text, if known; `ctx["key"]`: the key at fault, if not the mapping itself;
`ctx["below"]`: the same, but its value; a path of several keys is a tuple.
"""


def without_null(schema: dict[str, Any]) -> None:
    """For the JSON Schema: `null` is never a valid value; here it only means that the key is absent."""
    for field in schema.get("properties", {}).values():
        kinds = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
        if len(kinds) < len(field.get("anyOf", ())):
            del field["anyOf"], field["default"]
            field |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


class Model(BaseModel):
    """Base of all scenario models: frozen, unknown keys refused, fields named by their YAML key (`alias`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False, json_schema_extra=without_null)


def refuse(message: str, **context: Any) -> PydanticCustomError:
    """An error whose message is shown to the user unchanged."""
    # The message goes in by context because pydantic treats braces in a template as its own.
    return PydanticCustomError(PLAIN, "{message}", {"message": message, **context})


def given(example: str) -> BeforeValidator:
    """For optional fields: a key without a value is an error, unlike an absent key."""

    def check(value: object) -> object:
        if value is None:
            raise refuse(f"has no value; write one, such as {example}, or leave the key out")
        return value

    return BeforeValidator(check)


def _quantity(kind: Quantity) -> Callable[[object], int]:
    def read(value: object) -> int:
        try:
            return kind.parse(value)
        except UnitError as error:
            raise refuse(str(error)) from None

    return read


def _positive(kind: Quantity) -> Callable[[object], int]:
    def read(value: object) -> int:
        number = _quantity(kind)(value)
        if number == 0:
            raise refuse(f"must be more than 0, such as {kind.example}")
        return number

    return read


def _share(value: object) -> int:
    millionths = _positive(SHARE)(value)
    if millionths > WHOLE:
        raise refuse(f"{value} is above 100%; write {SHARE.noun} up to 100%")
    return millionths


def _shares(value: object) -> tuple[float, ...]:
    if value == []:
        raise refuse(f"needs at least one percentage, such as {SHARE.example}")
    found = []
    for place, one in enumerate(value if isinstance(value, list) else [value]):
        try:
            found.append(_share(one) / WHOLE)
        except PydanticCustomError as error:
            below = {"below": place} if isinstance(value, list) else {}
            raise refuse(str(error), **below) from None
    return tuple(found)


def _json(kind: Quantity) -> dict[str, Any]:
    units = "|".join(kind.units)
    return {"type": "string", "pattern": rf"^\d+(\.\d+)?\s*({units})$", "title": kind.noun}


def _schema(kind: Quantity) -> WithJsonSchema:
    return WithJsonSchema(_json(kind))


class FaultBegin(NamedTuple):
    """Begin of a fault: ns after the workload's start, or (`cold`, with 0 ns) before any endpoint starts."""

    ns: int
    cold: bool = False


def _later(value: object) -> FaultBegin:
    if value == COLD_START:
        raise refuse("must be a time such as 6s; use endpoint.denylist for paths that are denied from the start")
    return FaultBegin(_quantity(DURATION)(value))


def _moment(value: object) -> FaultBegin:
    if value == COLD_START:
        return FaultBegin(0, cold=True)
    hint = did_you_mean(value, [COLD_START]) if isinstance(value, str) else ""
    if hint:
        raise refuse(f"{value!r} is not a time{hint}")
    return _later(value)


def _or_auto(read: Callable[[object], int]) -> Callable[[object], int | None]:
    def check(value: object) -> int | None:
        if value == AUTO:
            return None
        hint = did_you_mean(value, [AUTO]) if isinstance(value, str) and value.isalpha() else ""
        if hint:
            raise refuse(f"unknown word {value!r}{hint}")
        return read(value)

    return check


def _payload(value: object) -> int:
    size = _quantity(SIZE)(value)
    if size not in PAYLOADS:
        raise refuse(f"must be a path MTU, one of {', '.join(map(format_size, PAYLOADS))}")
    return size


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise refuse(f"must be a whole number of 1 or more, or {AUTO}")
    return value


def _auto_schema(schema: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"const": AUTO}, schema]})


# Each type names its kind of quantity: scale.py has to know which fields are times and rates.
Duration = Annotated[int, PlainValidator(_quantity(DURATION)), _schema(DURATION), DURATION]
"""Nanoseconds."""
PositiveDuration = Annotated[int, PlainValidator(_positive(DURATION)), _schema(DURATION), DURATION]
"""Nanoseconds, more than 0."""
DurationOrAuto = Annotated[
    int | None, PlainValidator(_or_auto(_quantity(DURATION))), _auto_schema(_json(DURATION)), DURATION
]
"""Nanoseconds; None: `auto`."""
PositiveDurationOrAuto = Annotated[
    int | None, PlainValidator(_or_auto(_positive(DURATION))), _auto_schema(_json(DURATION)), DURATION
]
"""Nanoseconds, more than 0; None: `auto`."""
WholeOrAuto = Annotated[int | None, PlainValidator(_or_auto(_count)), _auto_schema({"type": "integer", "minimum": 1})]
"""1 or more; None: `auto`."""
Start = Annotated[
    FaultBegin, PlainValidator(_moment), WithJsonSchema({"anyOf": [{"const": COLD_START}, _json(DURATION)]})
]
"""A time after the workload's start, or `cold-start`."""
LaterStart = Annotated[FaultBegin, PlainValidator(_later), _schema(DURATION)]
"""A time after the workload's start."""
Rate = Annotated[int, PlainValidator(_quantity(RATE)), _schema(RATE), RATE]
"""Bits per second."""
PositiveRate = Annotated[int, PlainValidator(_positive(RATE)), _schema(RATE), RATE]
"""Bits per second, more than 0."""
Share = Annotated[int, PlainValidator(_share), _schema(SHARE)]
"""Millionths, more than 0 and at most all."""
_SHARES_SCHEMA = {"anyOf": [_json(SHARE), {"type": "array", "items": _json(SHARE), "minItems": 1}]}
Shares = Annotated[tuple[float, ...], PlainValidator(_shares), WithJsonSchema(_SHARES_SCHEMA)]
"""Parts of a whole, each more than 0 and at most 1: one, or a list."""
Direction = Literal["up", "down", "both"]
"""Of packets on a link: `up` is away from the hosts."""
Size = Annotated[int, PlainValidator(_quantity(SIZE)), _schema(SIZE)]
"""Bytes."""
Payload = Annotated[int, PlainValidator(_payload), _schema(SIZE)]
"""Bytes of payload in a full packet."""
Whole = Annotated[int, Field(strict=True)]
Switchable = Annotated[bool, Field(strict=True)]


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise refuse("must be text, such as t1-reboot")
    if not re.fullmatch(NAME_PATTERN, value):
        raise refuse(f"{value!r} is not a name; use lower-case letters, digits and dashes, such as t1-reboot")
    return value


def _fault_name(value: object) -> str:
    if is_reserved(_name(value)):
        raise refuse(f"{value!r} is reserved in expectations; choose another name")
    if value in (ALL_FAULTS, WHOLE_RUN):
        meaning = "every fault" if value == ALL_FAULTS else "the whole run"
        raise refuse(f"{value!r} means {meaning} in `capture`; choose another name")
    return str(value)


def word(value: object) -> str:
    """A name in the fabric on one line; whether it exists is checked later."""
    if not isinstance(value, str):
        raise refuse("must be text, such as p0-t1-2")
    if not value.isprintable() or not value or " " in value:
        raise refuse(f"{value!r} is not a name, such as p0-t1-2")
    return value


def _hosts(least: int) -> Callable[[object], tuple[str, ...]]:
    """`all` (an empty tuple here) or a list of host names."""

    def read(value: object) -> tuple[str, ...]:
        if value == "all":
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise refuse("must be `all` or a list of hosts, such as [h0, h4]")
        if len(value) < least:
            noun = "hosts" if least > 1 else "host"
            raise refuse(f"needs at least {least} {noun}, such as [h0, h4]; got {len(value)}")
        return tuple(value)

    return read


def one_of(noun: str, known: Sequence[str], whole: bool = True) -> Callable[[object], str]:
    """A name from `known`, described by `noun` with its article. Not `whole`: there may be more names."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise refuse(f"must be the name of {noun}, one of {', '.join(known)}")
        if value not in known and whole:
            what = noun.partition(" ")[2]
            raise refuse(f"unknown {what} {value!r}{all_known(value, known)}")
        return value

    return read


def _plugins(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise refuse("must be a list of Python files or installed packages, such as [my_cc.py]")
    twice = next((place for place, one in enumerate(value) if one in value[:place]), None)
    if twice is not None:
        raise refuse(f"duplicate plugin {value[twice]!r}", below=twice)
    return tuple(value)


def _host(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise refuse("must be the name of a host, such as h0")
    return value


def _host_list(value: object) -> tuple[str, ...]:
    if isinstance(value, str) and value:
        return (value,)
    if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
        raise refuse("must be one host or a list of hosts, such as [h0, h1]")
    return tuple(value)


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    """`h0->h4`, or a list of such, as (from, to)."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items:
        raise refuse("must be a list of pairs of hosts, such as [h0->h4, h1->h5]")
    found = []
    for item in items:
        ends = [end.strip() for end in item.split("->")] if isinstance(item, str) else []
        if len(ends) != 2 or not all(ends):
            raise refuse(f"{item!r} is not a pair of hosts; write for example h0->h4")
        found.append((ends[0], ends[1]))
    return tuple(found)


NAMES_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
_PAIR_SCHEMA = {"type": "string", "pattern": "^h[0-9]+ *-> *h[0-9]+$"}
_PAIRS_SCHEMA = {"anyOf": [_PAIR_SCHEMA, {"type": "array", "items": _PAIR_SCHEMA, "minItems": 1}]}


def _hosts_schema(least: int) -> WithJsonSchema:
    some = {"type": "array", "items": {"type": "string"}, "minItems": least}
    return WithJsonSchema({"anyOf": [{"const": "all"}, some]})


_NAME_SCHEMA = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}

Name = Annotated[str, PlainValidator(_name), WithJsonSchema(_NAME_SCHEMA)]
Word = Annotated[str, PlainValidator(word), WithJsonSchema({"type": "string"})]
FaultName = Annotated[str, PlainValidator(_fault_name), WithJsonSchema(_NAME_SCHEMA)]
HostName = Annotated[str, PlainValidator(_host), WithJsonSchema({"type": "string"})]
HostList = Annotated[tuple[str, ...], PlainValidator(_host_list), WithJsonSchema(NAMES_SCHEMA)]
Pairs = Annotated[tuple[tuple[str, str], ...], PlainValidator(_pairs), WithJsonSchema(_PAIRS_SCHEMA)]
HostNames = Annotated[tuple[str, ...], PlainValidator(_hosts(2)), _hosts_schema(2)]
"""Hosts that work together; empty: all."""
SomeHosts = Annotated[tuple[str, ...], PlainValidator(_hosts(1)), _hosts_schema(1)]
"""Any hosts; empty: all."""
_PLUGINS_SCHEMA = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
PluginNames = Annotated[tuple[str, ...], PlainValidator(_plugins), WithJsonSchema(_PLUGINS_SCHEMA)]
CONTROL_NOUN = "a congestion control"
SELECTION_NOUN = "an EV selection"
Algorithm = Annotated[str, PlainValidator(one_of(CONTROL_NOUN, [*ALGORITHMS])), WithJsonSchema({"enum": [*ALGORITHMS]})]
"""A congestion control of the endpoints."""
Selection = Annotated[
    str, PlainValidator(one_of(SELECTION_NOUN, [*SELECTIONS])), WithJsonSchema({"enum": [*SELECTIONS]})
]
"""An EV selection of the endpoints."""


MAX_QPS = 64
"""Of a flow, and of two ranks."""
MAX_LEVEL_BDP = 100
"""A longer queue would delay more than any timer of the transport waits."""
Level = Annotated[float, Field(strict=True, ge=0, le=MAX_LEVEL_BDP)]
"""A backlog in plane-BDP."""


def usual(field: str, about: str, example: str) -> Any:
    """A key that has a usual value which depends on others, where it is left out."""
    return Field(default=None, alias=field, description=about, examples=[example])
