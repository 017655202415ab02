"""Probes of a fabric in which some things lose packets, each by its own chance: rows of evidence, period by period."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mrc_testbed.testbed.mapper.evidence import Observation, Witness
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange, PathMapper
from mrc_testbed.testbed.mapper.probing import probe_routes
from mrc_testbed.testbed.mapper.suspects import Elements, Suspect, SuspectTable
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import Shape

PERIOD_NS = 200_000_000
NOISE = 0.0005
"""Of a probe, where nothing is broken."""
Broken = Mapping[Suspect, float]
"""What is broken, and the share of packets that it loses at each crossing."""


def plan_of(planes: int, t0_groups: int, t1: int, hosts_per_t0: int) -> Plan:
    """A fabric of this shape."""
    return plan_of_family(planes, Clos2(t0_groups, t1, hosts_per_t0))


def plan_of_family(planes: int, family: Family) -> Plan:
    """A fabric of any family."""
    return build_plan(Shape(planes, family, 10_000_000, 20_000_000))


def passes(route: Elements, broken: Broken, noise: float = NOISE) -> float:
    """The chance of a packet to arrive."""
    chance = 1 - noise
    for suspect, loss in broken.items():
        chance *= (1 - loss) ** sum(element in suspect.elements for element in route)
    return chance


def drawn(rng: random.Random, sent: int, chance: float) -> int:
    """How many of these packets are lost, each with this chance."""
    return sum(rng.random() < chance for _ in range(sent))


@dataclass
class Probed:
    """A fabric that is probed. `owners`: hosts that probe each link."""

    plan: Plan
    owners: int = 2
    table: SuspectTable = field(init=False)
    routes: list[tuple[str, Elements]] = field(init=False)

    def __post_init__(self) -> None:
        self.table = SuspectTable(self.plan)
        every = probe_routes(self.plan, self.table, self.owners).values()
        self.routes = [(one.host, one.crosses) for routes in every for one in routes]

    def periods(
        self, broken: Broken, seed: int, count: int, begin_ns: int = 0, noise: float = NOISE
    ) -> Iterator[tuple[int, list[Observation]]]:
        """(end, rows) of each period: every way is probed once in it, at a time of its own. `begin_ns`: when things
        break."""
        rng = random.Random(seed)
        for number in range(count):
            rows = []
            for host, route in self.routes:
                t_ns = number * PERIOD_NS + rng.randrange(PERIOD_NS)
                lost = drawn(rng, 1, 1 - passes(route, broken if t_ns >= begin_ns else {}, noise))
                rows.append(Observation(route, t_ns, t_ns, 1, lost, host, t_ns, Witness.PROBES))
            yield (number + 1) * PERIOD_NS, rows


def mapped(table: SuspectTable, periods: Iterator[tuple[int, list[Observation]]]) -> list[MapChange]:
    """What the mapper says of them."""
    mapper = PathMapper(table, PERIOD_NS)
    return [change for end_ns, rows in periods for change in mapper.turn(end_ns, rows)]


def accusations(changes: Sequence[MapChange]) -> list[MapChange]:
    """Those that accuse."""
    return [change for change in changes if change.action is MapAction.ACCUSE]


def is_right(table: SuspectTable, change: MapChange, broken: Broken) -> bool:
    """Does it name something that is broken, or that nobody can tell from it? Of a switch or a host also a part."""
    links = {link for suspect in broken for link in table.links_of(suspect)}
    return any(table.links_of(table.named(name)) <= links for name in (change.name, *change.alike))
