"""What a family of topologies gives: one plane as a graph of switches, and the ways between its T0s.

All planes of a fabric are alike, so a family describes one. Hosts have one port a plane, on a T0. A way is the list of
switches that a packet crosses; the number of a way among those of its pair is the low byte of an EV's label
(`mrc_testbed.topos.usid`). Everything else about a fabric is found by walking these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, field
from functools import cached_property
from itertools import islice, pairwise, permutations
from typing import Any, ClassVar, NamedTuple

MAX_INDEX = 256
"""A uSID has eight bits for the number of a switch in its tier, and of a host below its T0."""
MAX_WAYS = 256
"""An EV's label has eight bits for the number of a way."""
MAX_SWITCHES_ON_WAY = 5
"""A container holds six uSIDs, and the last is that of the host (RFC 9800 with a 32-bit block and 16-bit uSIDs)."""
LINKS_OF_HOSTS = 2
"""On each way: that of the sender to its T0, and that of the last T0 to the receiver."""
MAX_TIERS = 4
"""T0 to T3: names and uSIDs have that many."""
MAX_CABLES = MAX_TIERS * MAX_INDEX * MAX_INDEX
"""No plane has more: where a family gives more, it does not end."""


class ShapeError(ValueError):
    """A shape outside the limits. `field` names the key, `limit` the violated rule."""

    def __init__(self, field: str, limit: str) -> None:
        super().__init__(f"{field}: {limit}")
        self.field = field
        self.limit = limit


class SwitchPlace(NamedTuple):
    """A switch of a plane: its tier (0: T0) and its number in that tier."""

    tier: int
    number: int

    def __str__(self) -> str:
        return f"t{self.tier}-{self.number}"


Way = tuple[SwitchPlace, ...]
"""The switches that a packet crosses, the sender's T0 first, the receiver's T0 last."""


class Cable(NamedTuple):
    """A link between switches: its end nearer to the hosts, its other end, and its rate in shares of `port_rate`."""

    lower: SwitchPlace
    upper: SwitchPlace
    share: float = 1.0


def family_key(description: str, example: object, usual: Any = ...) -> Any:
    """A key of a family, as a field of its dataclass: what it is for people, one value, and what it is if left out
    (`...`: it must be there)."""
    return field(default=MISSING if usual is ... else usual, metadata={"description": description, "example": example})


def within(field: str, value: int, low: int, high: int, why: str = "", shown: Callable[[int], str] = str) -> None:
    """Raises ShapeError for a value outside these limits; `why` says where they come from."""
    if not low <= value <= high:
        reason = f" ({why})" if why else ""
        raise ShapeError(field, f"{shown(value)} is outside {shown(low)}..{shown(high)}{reason}")


FULL_SPEED = (1.0,)
"""Of links whose port rate no key of the family lowers."""


def speeds(field: str, shares: Sequence[float]) -> None:
    """Raises ShapeError unless these are shares of a port rate, which are repeated over some switches."""
    if not shares:
        raise ShapeError(field, "needs at least one share of the port rate, such as 50 %")
    for share in shares:
        if not 0 < share <= 1:
            raise ShapeError(field, f"{share:.0%} of the port rate; write more than 0 and at most 100 %")


def speed_of(shares: Sequence[float], number: int) -> float:
    """The share of the port rate that the links of a switch have, by its number."""
    return shares[number % len(shares)]


class Family(ABC):
    """A family with its numbers: one plane of a fabric. Subclasses are frozen dataclasses, whose fields are the keys
    of the scenario; the same fields give the same plane.

    A subclass raises ShapeError in `__post_init__` for numbers that make no fabric.
    """

    word: ClassVar[str]
    """Its name in scenarios."""
    titles: ClassVar[tuple[str, ...]] = ("T0", "T1", "T2", "T3")
    """What a switch of each tier is called."""

    @property
    @abstractmethod
    def hosts(self) -> int:
        """Number of hosts."""

    @property
    def nics(self) -> int:
        """Number of hosts that are the NICs of one node, which follow each other; 1 where each host is a node."""
        return 1

    @abstractmethod
    def t0_of(self, host: int) -> int:
        """The number of the T0 that a host is on."""

    @abstractmethod
    def switches(self) -> Iterable[SwitchPlace]:
        """All switches, tier by tier, from 0 on in each."""

    @abstractmethod
    def cables(self) -> Iterable[Cable]:
        """All links between switches. At most one between two."""

    @abstractmethod
    def ways(self, source: int, target: int) -> Iterable[Way]:
        """The ways from one T0 to another one, in the order of their numbers."""

    @cached_property
    def tiers(self) -> tuple[int, ...]:
        """Number of switches in each tier."""
        counts = [0] * MAX_TIERS
        for place in self.switches():
            counts[place.tier] += 1
        return tuple(counts[: 1 + max((tier for tier, count in enumerate(counts) if count), default=0)])

    @cached_property
    def below(self) -> tuple[tuple[int, ...], ...]:
        """By T0 the hosts on it, in order; a host's place among them is its downlink."""
        found: list[list[int]] = [[] for _ in range(self.tiers[0])]
        for host in range(self.hosts):
            found[self.t0_of(host)].append(host)
        return tuple(map(tuple, found))

    @cached_property
    def cable_count(self) -> int:
        """Number of links between switches."""
        return sum(1 for _ in self.cables())

    def way_count(self, source: int, target: int) -> int:
        """Number of ways from one T0 to another one. A family that knows it need not count."""
        return len(self.ways_of(source, target))

    @cached_property
    def least_share(self) -> float:
        """The rate of its slowest links, in shares of `port_rate`."""
        return min(self.rate_shares.values(), default=1.0)

    def most_ways(self) -> int:
        """The largest number of ways between two T0s of a plane; 1 where there is one T0."""
        return max((self.way_count(*pair) for pair in permutations(range(self.tiers[0]), 2)), default=1)

    def ways_of(self, source: int, target: int) -> tuple[Way, ...]:
        """The ways from one T0 to another one, or the one way below a T0. Each is asked for once."""
        found = self._ways_found.get((source, target))
        if found is None:
            ways = self.ways(source, target) if source != target else ((SwitchPlace(0, source),),)
            found = self._ways_found[source, target] = tuple(ways)
        return found

    @cached_property
    def _ways_found(self) -> dict[tuple[int, int], tuple[Way, ...]]:
        return {}

    @cached_property
    def rate_shares(self) -> dict[tuple[SwitchPlace, SwitchPlace], float]:
        """The rate of the link between two switches, in shares of `port_rate`, by its ends in either order."""
        found = {(cable.lower, cable.upper): cable.share for cable in self.cables()}
        return found | {(upper, lower): share for (lower, upper), share in found.items()}

    def span(self, way: Way) -> float:
        """Links on a way from host to host, in links at `port_rate`: one at half of it counts as two."""
        return float(LINKS_OF_HOSTS + sum(1 / self.rate_shares[pair] for pair in pairwise(way)))

    def nearest(self, source: int, target: int) -> Way:
        """The way of the shortest span from one T0 to another one, or below a T0."""
        found = self._nearest_found.get((source, target))
        if found is None:
            found = self._nearest_found[source, target] = min(self.ways_of(source, target), key=self.span)
        return found

    @cached_property
    def _nearest_found(self) -> dict[tuple[int, int], Way]:
        return {}

    @cached_property
    def farthest(self) -> Way:
        """The way of the longest span of all. A family that knows it need not look."""
        pairs = permutations(range(self.tiers[0]), 2)
        return max((way for pair in pairs for way in self.ways_of(*pair)), key=self.span, default=(SwitchPlace(0, 0),))


def check(family: Family, field: str = "family") -> None:
    """A family as a plane that can be built: every name once, cables and ways between switches that exist, and each
    way along cables, within a container and an EV's label. Raises ShapeError with `field` for the first mistake.

    Ends however much a family gives: what is larger than any plane is refused where it gets too large.
    """

    def wrong(what: str) -> ShapeError:
        return ShapeError(field, f"{family.word}: {what}")

    places = _checked_places(family, wrong)
    _check_hosts(family, places, wrong)
    joined = _checked_cables(family, places, wrong)
    groups = [place.number for place in places if place.tier == 0]
    for source in groups:
        for target in groups:
            if source != target:
                _check_ways(family, source, target, joined, wrong)


Wrong = Callable[[str], ShapeError]
Joined = set[tuple[SwitchPlace, SwitchPlace]]


def _checked_places(family: Family, wrong: Wrong) -> list[SwitchPlace]:
    places = list(islice(family.switches(), MAX_TIERS * MAX_INDEX + 1))
    seen: set[SwitchPlace] = set()
    for place in places:
        if not (0 <= place.tier < MAX_TIERS and 0 <= place.number < MAX_INDEX):
            raise wrong(f"switch {place} is outside t0-0..t{MAX_TIERS - 1}-{MAX_INDEX - 1}, which a uSID can number")
        if place in seen:
            raise wrong(f"two switches have the name {place}")
        seen.add(place)
    for tier in range(MAX_TIERS):
        numbers = sorted(place.number for place in places if place.tier == tier)
        if numbers != list(range(len(numbers))):
            raise wrong(f"the switches of tier {tier} are not numbered from 0 on: {numbers[:8]}")
    return places


def _check_hosts(family: Family, places: list[SwitchPlace], wrong: Wrong) -> None:
    if not 2 <= family.hosts <= MAX_INDEX * MAX_INDEX:
        raise wrong(f"the fabric needs at least 2 hosts in all and at most {MAX_INDEX * MAX_INDEX}, not {family.hosts}")
    below: dict[int, int] = {}
    for host in range(family.hosts):
        t0 = family.t0_of(host)
        if SwitchPlace(0, t0) not in places[: MAX_INDEX + 1]:
            raise wrong(f"h{host} is on {SwitchPlace(0, t0)}, and there is no such switch")
        below[t0] = below.get(t0, 0) + 1
    most = max(below, key=lambda t0: below[t0])
    if below[most] > MAX_INDEX:
        raise wrong(f"{below[most]} hosts are on {SwitchPlace(0, most)}; a uSID has 8 bits for the host downlink")


def _checked_cables(family: Family, places: Iterable[SwitchPlace], wrong: Wrong) -> Joined:
    known, joined = set(places), Joined()
    for count, cable in enumerate(family.cables()):
        lower, upper, share = cable
        if count >= MAX_CABLES:
            raise wrong(f"it gives more than {MAX_CABLES} links: does `cables` end?")
        if missing := [end for end in (lower, upper) if end not in known]:
            raise wrong(f"the link {lower}:{upper} has an end on {missing[0]}, and there is no such switch")
        if lower == upper or (lower, upper) in joined:
            raise wrong(
                f"the link {lower}:{upper} " + ("joins a switch to itself" if lower == upper else "is there twice")
            )
        if not 0 < share <= 1:
            raise wrong(f"the link {lower}:{upper} has {share} of the port rate; more than 0 and at most 1")
        joined |= {(lower, upper), (upper, lower)}
    return joined


def _check_ways(family: Family, source: int, target: int, joined: Joined, wrong: Wrong) -> None:
    ways = list(islice(family.ways(source, target), MAX_WAYS + 1))
    pair = f"from {SwitchPlace(0, source)} to {SwitchPlace(0, target)}"
    if not ways:
        raise wrong(f"there is no way {pair}")
    if len(ways) > MAX_WAYS:
        raise wrong(f"there are more than {MAX_WAYS} ways {pair}, which is all that the label of an EV can number")
    for way in ways:
        text = " > ".join(map(str, way))
        if way[:1] != (SwitchPlace(0, source),) or way[-1:] != (SwitchPlace(0, target),):
            raise wrong(f"the way {text} does not lead {pair}")
        if len(set(way)) < len(way):
            raise wrong(f"the way {text} crosses a switch twice")
        if len(way) > MAX_SWITCHES_ON_WAY:
            raise wrong(f"the way {text} has {len(way)} switches; six uSIDs hold {MAX_SWITCHES_ON_WAY} and the host")
        for one, other in pairwise(way):
            if (one, other) not in joined:
                raise wrong(f"the way {text} crosses from {one} to {other}, and no link joins them")
    if len(set(ways)) < len(ways):
        raise wrong(f"two ways {pair} are the same")


def places_of(tiers: Iterable[int]) -> Iterator[SwitchPlace]:
    """Every switch of tiers with these numbers of switches."""
    for tier, count in enumerate(tiers):
        for number in range(count):
            yield SwitchPlace(tier, number)
