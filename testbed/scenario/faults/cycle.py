"""One outage of one fault as it will be done: every name and time is settled. The rest of the program sees this."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from testbed.scenario.fields import WHOLE

_SHOWN_TARGETS = 2


class Place(NamedTuple):
    """What comes in at one end of a link. "far" takes the packets that travel away from the hosts."""

    link: str
    toward: Literal["near", "far"]


@dataclass(frozen=True, slots=True)
class How:
    """What has to be known of a fault besides its targets: each kind uses its own part. `words`: all of it for people.

    `share`: millionths of the packets. `sender`, `peer`: hosts; empty: any.
    """

    share: int = WHOLE
    rate_bps: int = 0
    sender: str = ""
    peer: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Cycle:
    """Cycle `number` of fault `fault`: `targets` break together and heal together. Times count from the workload's
    start, in ns.

    `kind`: of the entry, or, of chaos, what was drawn. `links`: names of those that lose packets. `places`: where it
    puts rules of the port program. `hosts`: those that are told, where endpoints are; empty: all. `cold`: broken before
    any endpoint is there.
    """

    fault: str
    number: int
    kind: str
    targets: tuple[str, ...]
    begin_ns: int
    end_ns: int
    links: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    hosts: tuple[str, ...] = ()
    how: How = field(default_factory=How)
    cold: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all others of a run: cycles of one fault may overlap."""
        return self.fault, self.number

    @property
    def title(self) -> str:
        """Kind, targets and the rest, for people."""
        return titled(self.kind, self.targets, self.how.words)

    def as_record(self) -> dict[str, Any]:
        """As JSON types, for plan.json; `from_record` reads it."""
        places = [list(place) for place in self.places]
        lists = {"targets": list(self.targets), "links": list(self.links), "places": places, "hosts": list(self.hosts)}
        return {**asdict(self), **lists}

    @classmethod
    def from_record(cls, record: Any) -> Cycle:
        """Raises ValueError for what `as_record` has not made; the text names the first wrong field."""
        try:
            cycle = _ADAPTER.validate_python(record)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from None
        made = cycle.as_record()
        if made != record:
            raise ValueError(f"{', '.join(key for key in made if made[key] != record.get(key)) or 'it'} is incomplete")
        if not 0 <= cycle.begin_ns < cycle.end_ns:
            raise ValueError("end_ns: it must end after it begins")
        return cycle


_ADAPTER = TypeAdapter(Cycle)


def titled(kind: str, targets: tuple[str, ...], words: str = "") -> str:
    """Kind, at most two targets, and the rest, for people."""
    more = f" and {len(targets) - _SHOWN_TARGETS} more" if len(targets) > _SHOWN_TARGETS else ""
    return f"{kind} {', '.join(targets[:_SHOWN_TARGETS])}{more} {words}".rstrip()


def in_order(cycles: Iterable[Cycle]) -> tuple[Cycle, ...]:
    """The cycles of one fault by the time they begin, numbered so from 0."""
    ordered = sorted(cycles, key=lambda cycle: cycle.begin_ns)
    return tuple(replace(cycle, number=number) for number, cycle in enumerate(ordered))
