"""The base of all faults. All times count from the workload's start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar, NamedTuple

from pydantic import Field

from mrc_testbed.testbed.scenario.faults.chance import Chance
from mrc_testbed.testbed.scenario.faults.names import Target, links_of_target
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters, LinkEnd, Occurrence, in_order
from mrc_testbed.testbed.scenario.faults.selection import SelectionError, Targets, chosen
from mrc_testbed.testbed.scenario.faults.traits import Defaults, Drawing, Effect, InteractiveRequest
from mrc_testbed.testbed.scenario.text.fields import FaultName, Model, PositiveDuration, Start
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.plan import Plan

SHORTEST_OUTAGE_NS = 1_000_000
"""A shorter down or up time would be meaningless."""
MAX_OCCURRENCES = 10_000
"""Of one entry."""


class DownPeriod(NamedTuple):
    """One interval in which the targets are down, in ns from the workload's start."""

    down_ns: int
    up_ns: int


class UnsettledError(Exception):
    """A fault that is impossible in this fabric. `mistakes`: each with its place below the entry."""

    def __init__(self, mistakes: Sequence[tuple[KeyPath, str]]) -> None:
        super().__init__("; ".join(message for _, message in mistakes))
        self.mistakes = mistakes


def limited(drawn: Iterator[Occurrence], place: KeyPath) -> list[Occurrence]:
    """All of them. Raises UnsettledError, with that place, for too many; those beyond the limit are not made."""
    found = list(islice(drawn, MAX_OCCURRENCES + 1))
    if len(found) > MAX_OCCURRENCES:
        raise UnsettledError([(place, f"is more than {MAX_OCCURRENCES} cycles, the limit of one entry")])
    return found


class Surroundings(NamedTuple):
    """The rest of the scenario that a fault must fit; None: unreadable.

    `peers`: hosts of the workload and the peers of each; it needs `plan`. `usid_tables`: switches have written entries
    for uSIDs. `trims`: they may trim packets of the transport. `pauses`: their ports pause each other. `of_kernel`: the
    kernel makes the packets.
    """

    plan: Plan | None
    peers: Mapping[str, frozenset[str]]
    icrc: bool | None
    usid_tables: bool | None = None
    trims: bool | None = None
    pauses: bool = False
    of_kernel: bool = False


class Misfit(NamedTuple):
    """Why a fault does not fit, and the key at fault; empty: its kind."""

    key: str
    message: str


class PlacedFault(NamedTuple):
    """A fault of one kind and its place: its keys are below `path`, its targets (or itself) at `kind_path`."""

    path: KeyPath
    kind_path: KeyPath
    fault: Fault


class Entry(Model, ABC):
    """An entry of `faults`. The loader always sets `name`: the author's, or `<kind>-<n>`."""

    kind: ClassVar[str]

    at: Start = Field(description="when it begins, after the workload's start, or `cold-start`", examples=["6s"])
    name: FaultName = Field(default="", description="what expectations call it", examples=["reboot"])

    @property
    def at_ns(self) -> int:
        """Begin, after the workload's start; 0 at cold start."""
        return self.at.ns

    @property
    @abstractmethod
    def end_ns(self) -> int:
        """The latest possible heal of the last occurrence, whatever is drawn."""

    @property
    @abstractmethod
    def drawn(self) -> bool:
        """True if the seed decides any of its names or times."""

    @abstractmethod
    def parts(self) -> Iterator[PlacedFault]:
        """The kinds in this entry, for rules about their keys."""

    @abstractmethod
    def occurrences(self, plan: Plan, seed: int) -> tuple[Occurrence, ...]:
        """The exact occurrences, with all random choices made from the seed, independent of the rest of the scenario.
        Raises UnsettledError."""


class Fault(Entry, ABC):
    """One fault kind on some targets. `chaos`: default `of` and keys in chaos; None: not allowed in chaos."""

    target: ClassVar[Target]
    effect: ClassVar[Effect]
    drawing: ClassVar[Drawing]
    chaos: ClassVar[Defaults | None] = None
    request: ClassVar[InteractiveRequest | None] = None

    aims: Targets

    @abstractmethod
    def down_periods(self, chance: Chance) -> Iterator[DownPeriod]:
        """The down intervals of targets that fall together, in order."""

    @classmethod
    def once(cls, length_ns: int) -> Mapping[str, object] | None:
        """The keys that say when, besides `at`, as in YAML: down once, for so long; a key with None is left out. None:
        the kind cannot say it."""
        return None

    @property
    def parameters(self) -> FaultParameters:
        """The parameters besides targets and times."""
        return FaultParameters()

    @property
    def notified_hosts(self) -> tuple[str, ...]:
        """The hosts whose endpoints get it on their denylist; empty: all."""
        return ()

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Impossible keys, besides targets that do not exist."""
        yield from ()

    @property
    def drawn(self) -> bool:
        """True for `any` among its targets."""
        return any(aim.draw for aim in self.aims)

    def parts(self) -> Iterator[PlacedFault]:
        """The fault itself: one kind, at its own keys."""
        yield PlacedFault((), (self.kind,), self)

    def chosen(self, plan: Plan, seed: int) -> dict[str, int]:
        """Names of the targets, each with the index of its item in `aims`. Raises UnsettledError."""
        try:
            return chosen(self.aims, self.kind, self.target, plan, Chance(seed, self.name, "targets"))
        except SelectionError as error:
            raise UnsettledError([(self._item(number), message) for number, message in error.mistakes]) from None

    def _item(self, number: int) -> KeyPath:
        # A single name is written without a list; the place of an item that is not there is its parent's.
        return (self.kind, number) if len(self.aims) > 1 else (self.kind,)

    def occurrences(self, plan: Plan, seed: int) -> tuple[Occurrence, ...]:
        """One occurrence per group of targets and interval."""
        targets = tuple(self.chosen(plan, seed))
        return in_order(limited(self.done_to(targets, plan, Chance(seed, self.name, "times")), (self.kind,)))

    def done_to(self, targets: tuple[str, ...], plan: Plan, chance: Chance) -> Iterator[Occurrence]:
        """The occurrences of these targets, which must exist in `plan`."""
        for group in self.groups(targets):
            links, places = self.broken_links(group, plan), self.places(group, plan)
            for number, (down_ns, up_ns) in enumerate(self.down_periods(chance.of(group[0]))):
                cold = self.at.cold and number == 0
                where = (group, down_ns, up_ns, links, places, self.notified_hosts, self.parameters, cold)
                yield Occurrence(self.name, number, type(self), *where)

    def groups(self, targets: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Targets that break and heal together."""
        return (targets,)

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Names of all links that lose packets during this fault, each once; the targets must exist in `plan`. As far
        as a kind says nothing else: every link that is a target, or has an end on one."""
        links = (link for name in targets for link in links_of_target(name, self.target, plan))
        return tuple(dict.fromkeys(links))

    def places(self, targets: tuple[str, ...], plan: Plan) -> tuple[LinkEnd, ...]:
        """Where it adds rules of the port program; the targets must exist in `plan`."""
        return ()


class Lasting(Fault, ABC):
    """A fault that is active once, for a time."""

    for_ns: PositiveDuration = Field(alias="for", description="how long it lasts", examples=["4s"])

    @property
    def end_ns(self) -> int:
        """Its heal."""
        return self.at_ns + self.for_ns

    @classmethod
    def once(cls, length_ns: int) -> Mapping[str, object]:
        """As it always is."""
        return {"for": format_duration(length_ns)}

    def down_periods(self, chance: Chance) -> Iterator[DownPeriod]:
        """One: from `at` until `end_ns`."""
        yield DownPeriod(self.at_ns, self.end_ns)
