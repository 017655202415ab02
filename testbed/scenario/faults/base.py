"""What all faults share. All times count from the workload's start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from pydantic import Field

from testbed.scenario.faults.chance import Chance
from testbed.scenario.faults.names import Target
from testbed.scenario.faults.occurrence import FaultParameters, LinkEnd, Occurrence, in_order
from testbed.scenario.faults.selection import SelectionError, Targets, chosen
from testbed.scenario.faults.traits import Defaults, Drawing, Effect, InteractiveRequest
from testbed.scenario.fields import FaultName, Model, PositiveDuration, Start
from testbed.scenario.source import KeyPath
from topos.plan import Plan

SHORTEST_OUTAGE_NS = 1_000_000
"""A link cannot be taken down and up again faster than this in a way that means anything."""


class DownPeriod(NamedTuple):
    """One stretch in which the targets are down, in ns from the workload's start."""

    down_ns: int
    up_ns: int


class UnsettledError(Exception):
    """What was written means nothing in this fabric. `mistakes`: each with its place below the entry."""

    def __init__(self, mistakes: Sequence[tuple[KeyPath, str]]) -> None:
        super().__init__("; ".join(message for _, message in mistakes))
        self.mistakes = mistakes


class Surroundings(NamedTuple):
    """What a fault has to fit into; None: it could not be read. `peers`: hosts of the workload and whom each talks to;
    it needs `plan`."""

    plan: Plan | None
    peers: Mapping[str, frozenset[str]]
    icrc: bool | None


class Misfit(NamedTuple):
    """Why a fault does not fit, and the key that says so; empty: its kind."""

    key: str
    message: str


class PlacedFault(NamedTuple):
    """A fault of one kind where it is written: its keys stand below `path`, its targets (or itself) at `kind_path`."""

    path: KeyPath
    kind_path: KeyPath
    fault: Fault


class Entry(Model, ABC):
    """An entry of `faults`. `name` is always set by the loader: the author's, or `<kind>-<n>`."""

    kind: ClassVar[str]

    at: Start = Field(description="when it begins, after the workload's start, or `cold-start`", examples=["6s"])
    name: FaultName = Field(default="", description="what expectations call it", examples=["reboot"])

    @property
    def at_ns(self) -> int:
        """When it begins, after the workload's start; 0 at cold start."""
        return self.at.ns

    @property
    @abstractmethod
    def end_ns(self) -> int:
        """When the last occurrence has healed at the latest, whatever is drawn."""

    @abstractmethod
    def parts(self) -> Iterator[PlacedFault]:
        """The kinds that it is made of, for rules about their keys."""

    @abstractmethod
    def occurrences(self, plan: Plan, seed: int) -> tuple[Occurrence, ...]:
        """What will be done, with everything drawn that is left to the seed. Nothing else in the scenario has a part in
        that. Raises UnsettledError."""


class Fault(Entry, ABC):
    """One kind of fault on some targets.

    `chaos`: what chaos takes for `of` and for keys that are not written there; None: no part of chaos.
    """

    target: ClassVar[Target]
    effect: ClassVar[Effect]
    drawing: ClassVar[Drawing]
    chaos: ClassVar[Defaults | None] = None
    request: ClassVar[InteractiveRequest | None] = None

    aims: Targets

    @abstractmethod
    def down_periods(self, chance: Chance) -> Iterator[DownPeriod]:
        """When targets that fall together are down, in order."""

    @property
    def parameters(self) -> FaultParameters:
        """What else is to be known of it."""
        return FaultParameters()

    @property
    def notified_hosts(self) -> tuple[str, ...]:
        """The hosts whose endpoints get it on their denylist; empty: all."""
        return ()

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """What its keys ask for and cannot have there, besides targets that do not exist."""
        yield from ()

    def parts(self) -> Iterator[PlacedFault]:
        """The fault itself: one kind, at its own keys."""
        yield PlacedFault((), (self.kind,), self)

    def chosen(self, plan: Plan, seed: int) -> dict[str, int]:
        """Names of the targets, each with the number of the item of `aims` that it comes from.

        Raises UnsettledError.
        """
        try:
            return chosen(self.aims, self.kind, self.target, plan, Chance(seed, self.name, "targets"))
        except SelectionError as error:
            raise UnsettledError([(self._item(number), message) for number, message in error.mistakes]) from None

    def _item(self, number: int) -> KeyPath:
        # A single name is written without a list; the place of an item that is not there is its parent's.
        return (self.kind, number) if len(self.aims) > 1 else (self.kind,)

    def occurrences(self, plan: Plan, seed: int) -> tuple[Occurrence, ...]:
        """Targets by name, and each of their outages."""
        return in_order(self.done_to(tuple(self.chosen(plan, seed)), plan, Chance(seed, self.name, "times")))

    def done_to(self, targets: tuple[str, ...], plan: Plan, chance: Chance) -> Iterator[Occurrence]:
        """The occurrences of these targets, which must exist in `plan`."""
        for group in self.groups(targets):
            links, places = self.broken_links(group, plan), self.places(group, plan)
            for number, (down_ns, up_ns) in enumerate(self.down_periods(chance.of(group[0]))):
                cold = self.at.cold and number == 0
                where = (group, down_ns, up_ns, links, places, self.notified_hosts, self.parameters, cold)
                yield Occurrence(self.name, number, type(self), *where)

    def groups(self, targets: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Which targets break and heal together."""
        return (targets,)

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Names of all links that lose packets while this fault is on; the targets must exist in `plan`."""
        return targets

    def places(self, targets: tuple[str, ...], plan: Plan) -> tuple[LinkEnd, ...]:
        """Where it puts a rule of the port program; the targets must exist in `plan`."""
        return ()


class Lasting(Fault, ABC):
    """A fault that is on once, for a time."""

    for_ns: PositiveDuration = Field(alias="for", description="how long it lasts", examples=["4s"])

    @property
    def end_ns(self) -> int:
        """When it heals."""
        return self.at_ns + self.for_ns

    def down_periods(self, chance: Chance) -> Iterator[DownPeriod]:
        """One: from `at` until `end_ns`."""
        yield DownPeriod(self.at_ns, self.end_ns)
