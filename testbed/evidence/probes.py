"""What probes of hosts to themselves have seen, as evidence for the mapper, of runs that go on or are over. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mrc_testbed.testbed.mapper.evidence import Observation, Witness
from mrc_testbed.testbed.mapper.probing import ProbeRoute, probe_routes
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.topos.plan import Plan


class ToldProbes(NamedTuple):
    """What a host told of some of its probes at `t_ns`: they left evenly from `from_ns` until `to_ns`, in this `order`.
    `lost`: number of the probe, and when it left, one after the other; `late_ns`: by how much one left too late."""

    t_ns: int
    host: str
    from_ns: int
    to_ns: int
    order: array[int]
    lost: array[int]
    late_ns: int


def told_probes_of(row: Mapping[str, Any]) -> ToldProbes:
    """Of the fields of its line. Raises KeyError, TypeError, ValueError or OverflowError."""
    order, lost = array("H", row["order"]), array("q")
    for number, left_ns in row["lost"]:
        lost.extend((number, left_ns))
    times = int(row["from_ns"]), int(row["to_ns"])
    return ToldProbes(int(row["t_ns"]), row["host"], *times, order, lost, int(row["late_ns"]))


class ProbeEvidence:
    """Makes observations of what hosts tell. `late`: probes left out, because their host was late by more than T."""

    def __init__(self, scenario: Scenario, plan: Plan, table: SuspectTable) -> None:
        """Of a scenario with a mapper that hears probes."""
        if scenario.mapper is None:
            raise ValueError("no mapper, no probes")
        self._routes = probe_routes(plan, table, scenario.mapper.owners, scenario.host_names)
        self._rtt_ns = scenario.shape().rtt_ns
        self._found: list[Observation] = []
        self.late = 0

    def take(self, told: ToldProbes) -> None:
        """A host told of its probes."""
        if told.late_ns > self._rtt_ns:
            self.late += len(told.order)
        else:
            self._found += self._observed(told, self._routes.get(told.host, ()))

    def _observed(self, told: ToldProbes, routes: tuple[ProbeRoute, ...]) -> Iterator[Observation]:
        lost = dict(zip(told.lost[::2], told.lost[1::2], strict=True))
        apart_ns = (told.to_ns - told.from_ns) / max(len(told.order), 1)
        for place, number in enumerate(told.order):
            if number < len(routes):
                gone = number in lost
                left_ns = lost.get(number) or told.from_ns + round(place * apart_ns)
                seen = left_ns, left_ns, 1, int(gone), told.host, left_ns * gone
                yield Observation(routes[number].crosses, *seen, Witness.PROBES)

    def turn(self) -> list[Observation]:
        """What became known since the last time."""
        found, self._found = self._found, []
        return found
