"""One injection and heal of one fault, with all names and times resolved.

The rest of the program uses only this. Files of the run folder call an occurrence `cycle`, and its parameters `how`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, SkipValidation, TypeAdapter, ValidationError

from mrc_testbed.testbed.scenario.faults.traits import Traits
from mrc_testbed.testbed.scenario.text.fields import WHOLE
from mrc_testbed.testbed.scenario.text.units import format_rate
from mrc_testbed.topos.fold import fold
from mrc_testbed.topos.units import some

_SHOWN_TARGETS = 2
_KEYS = {"parameters": "how", "model": "kind"}
"""Keys of plan.json that differ from the names here."""

Value = bool | int | float | str
OccurrenceKey = tuple[str, int]
"""Name of the fault and number of the occurrence."""


class LinkEnd(NamedTuple):
    """Arrival at one end of a link. "far" takes the packets that travel away from the hosts."""

    link: str
    toward: Literal["near", "far"]


@dataclass(frozen=True, slots=True)
class FaultParameters:
    """Parameters of a fault besides its targets; each kind uses its own part.

    `words`: all of it for people. `share`: millionths of the packets. `sender`, `peer`: hosts; empty: any. `values`:
    what else a kind needs; those whose names end in `_ns` are times.
    """

    share: int = WHOLE
    rate_bps: int = 0
    sender: str = ""
    peer: str = ""
    words: str = ""
    values: Mapping[str, Value] = field(default_factory=dict, hash=False)

    def with_rate_times(self, factor: int) -> FaultParameters:
        """The same with a rate `factor` times as high, also in its words."""
        if not self.rate_bps:
            return self
        rate_bps = self.rate_bps * factor
        words = self.words.replace(format_rate(self.rate_bps), format_rate(rate_bps))
        return replace(self, rate_bps=rate_bps, words=words)

    def at_speed(self, speed: int) -> FaultParameters:
        """The same `speed` times faster: rates are higher, and times shorter."""
        values = {
            key: max(1, round(value / speed)) if key.endswith("_ns") and not isinstance(value, bool | str) else value
            for key, value in self.values.items()
        }
        return replace(self.with_rate_times(speed), values=values)

    def folded(self, planes: int) -> FaultParameters:
        """The same where these planes are one: a rate is theirs together, and names are those of the folded fabric."""
        values = {key: fold(value) if isinstance(value, str) else value for key, value in self.values.items()}
        return replace(self.with_rate_times(planes), values=values)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Occurrence `number` of fault `fault`: `targets` break and heal together. Times count from the workload's start,
    in ns.

    `model`: the class of its kind; in chaos, of the drawn one. `links`: names of those that lose packets. `places`:
    where it adds rules of the port program. `hosts`: those that are told, for faults of endpoints; empty: all. `cold`:
    injected before any endpoint starts.
    """

    fault: str
    number: int
    model: Annotated[type[Traits], SkipValidation, Field(alias=_KEYS["model"])]
    targets: tuple[str, ...]
    begin_ns: int
    end_ns: int
    links: tuple[str, ...] = ()
    places: tuple[LinkEnd, ...] = ()
    hosts: tuple[str, ...] = ()
    parameters: Annotated[FaultParameters, Field(alias=_KEYS["parameters"])] = field(default_factory=FaultParameters)
    cold: bool = False

    @property
    def kind(self) -> str:
        """The key of its kind in a scenario."""
        return self.model.kind

    @property
    def key(self) -> OccurrenceKey:
        """Unique in a run: occurrences of one fault may overlap."""
        return self.fault, self.number

    @property
    def title(self) -> str:
        """Kind, targets and the rest, for people."""
        return titled(self.kind, self.targets, self.parameters.words)

    def as_record(self) -> dict[str, Any]:
        """As JSON types, for plan.json; `from_record` reads it."""
        places = [list(place) for place in self.places]
        lists = {"targets": list(self.targets), "links": list(self.links), "places": places, "hosts": list(self.hosts)}
        record = {**asdict(self), "model": self.kind, **lists}
        if not self.parameters.values:
            del record["parameters"]["values"]  # folders of runs without plugins stay as they always were
        return {_KEYS.get(name, name): value for name, value in record.items()}

    @classmethod
    def from_record(cls, record: Any, kinds: Mapping[str, type[Traits]]) -> Occurrence:
        """Raises ValueError for malformed data; the text names the first wrong field."""
        kind = record.get("kind") if isinstance(record, dict) else None
        if not isinstance(kind, str):
            raise ValueError("it has no kind")
        if kind not in kinds:
            raise ValueError(f"there is no kind {kind}")
        try:
            found = _ADAPTER.validate_python({**record, _KEYS["model"]: kinds[kind]})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from None
        made = found.as_record()
        if made != record:
            raise ValueError(f"{', '.join(key for key in made if made[key] != record.get(key)) or 'it'} is incomplete")
        if not 0 <= found.begin_ns < found.end_ns:
            raise ValueError("end_ns: it must end after it begins")
        return found


_ADAPTER = TypeAdapter(Occurrence)


def titled(kind: str, targets: tuple[str, ...], words: str = "") -> str:
    """Kind, at most two targets, and parameters, for people."""
    return f"{kind} {some(targets, _SHOWN_TARGETS)} {words}".rstrip()


def by_fault(occurrences: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
    """All occurrences of each fault together, numbered, whatever number of entries has its name."""
    found: dict[str, list[Occurrence]] = {}
    for one in occurrences:
        found.setdefault(one.fault, []).append(one)
    return tuple(one for each in found.values() for one in in_order(each))


def in_order(occurrences: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
    """Occurrences of one fault sorted by begin time and numbered."""
    ordered = sorted(occurrences, key=lambda occurrence: occurrence.begin_ns)
    return tuple(replace(occurrence, number=number) for number, occurrence in enumerate(ordered))
