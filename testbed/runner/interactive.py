"""`run --interactive`: faults requested by a person during the workload.

A request is refused with a reason, or becomes an occurrence like any other: written into plan.json, executed by the
same injector, recorded, judged, replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from mrc_testbed.testbed.faults.inject import Injector
from mrc_testbed.testbed.runner.measure import Measurement
from mrc_testbed.testbed.scenario import Effect, Occurrence, Scenario
from mrc_testbed.testbed.scenario.faults import Fault, requestable, requested
from mrc_testbed.testbed.scenario.faults.base import SHORTEST_OUTAGE_NS
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.model.scale import scaled_ns
from mrc_testbed.testbed.scenario.rules.switch_rules import MAX_RULES
from mrc_testbed.testbed.scenario.text.fields import WHOLE
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.plan import Plan

MEND = "mend"
LEAST_S, MAX_S = SHORTEST_OUTAGE_NS / 1e9, 86_400
"""The latter is longer than any workload."""
LEAST_SHARE = 1 / WHOLE
_SECOND_NS = 1_000_000_000
_SHOWN_NS = 1_000_000
"""Resolution of displayed times."""


class Refused(Exception):
    """An impossible request; the text says why and is shown to the user."""


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """A fault requested by a person. `for_ns` None: until healed by hand. `share`: millionths of a lossy link's
    packets."""

    do: str
    target: str
    for_ns: int | None = None
    share: int = WHOLE


def read_request(request: Any, kinds: Mapping[str, type[Fault]]) -> FaultRequest:
    """Parse a request: `{"do", "target", "for_s", "share"}`, the last two optional; for one of these kinds, or to
    mend. Raises Refused."""
    if not isinstance(request, dict):
        raise Refused("a request must be a JSON object")
    do, target = request.get("do"), request.get("target")
    words = (*requestable(kinds), MEND)
    if do not in words:
        raise Refused(f"unknown action {do!r}; use one of {', '.join(words)}")
    if not isinstance(target, str) or not target:
        raise Refused(f"{do} needs the name of a target")
    for_s, share = request.get("for_s"), _number("share", request.get("share", 1), LEAST_SHARE, 1)
    for_ns = None if for_s is None else round(_number("for_s", for_s, LEAST_S, MAX_S) * _SECOND_NS)
    return FaultRequest(do, target, for_ns, round(share * WHOLE))


def _number(name: str, value: Any, least: float, most: float) -> float:
    # Compared before it is made a float: whole numbers of JSON can be too large for one.
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise Refused(f"{name} must be a number from {least:g} to {most:g}")
    return float(value)


class InteractiveFaults:
    """Executes requests during the workload. `publish` writes a schedule into plan.json."""

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        port_program: bool,
        measurement: Measurement,
        injector: Injector,
        publish: Callable[[Iterable[Occurrence]], None],
    ) -> None:
        self._scenario = scenario
        self.kinds = scenario.fault_kinds
        self._plan = plan
        self._port_program = port_program
        self._measurement = measurement
        self._injector = injector
        self._publish = publish
        self._schedule = {occurrence.key: occurrence for occurrence in scenario.occurrences}
        self._names = _free_names(scenario)
        self._made: set[tuple[str, int]] = set()

    def do(self, request: FaultRequest) -> str:
        """Execute a request now; returns what was done, in words.

        Raises Refused for an impossible request, FabricError if the kernel refuses a valid one.
        """
        now_ns = self._measurement.since_start_ns
        if now_ns is None:
            raise Refused("the workload is not running")
        return self._mend(request.target, now_ns) if request.do == MEND else self._break(request, now_ns)

    def _break(self, request: FaultRequest, now_ns: int) -> str:
        model = requestable(self.kinds)[request.do]
        if model.effect.needs_program and not self._port_program:
            raise Refused(f"{request.do} needs the port program, and this fabric runs plain shapers")
        # Without an end it lasts until the end of the workload, at most until its time limit.
        latest_ns = max(self._scenario.time_limit_ns, now_ns + 1)
        for_ns = None if request.for_ns is None else scaled_ns(request.for_ns, self._scenario.speed)
        end_ns = latest_ns if for_ns is None else now_ns + for_ns
        try:
            occurrence = requested(model, request.target, "hand", now_ns, end_ns, self._plan, request.share)
        except ValueError as error:
            raise Refused(str(error)) from None
        self._refuse_twice(request.target, occurrence)
        self._refuse_too_many_rules(occurrence)
        occurrence = replace(occurrence, fault=next(self._names))
        self._plan_says(occurrence)
        self._made.add(occurrence.key)
        self._measurement.inject_requested(occurrence)
        length = "until it is mended" if for_ns is None else f"for {_time(for_ns)}"
        return f"{occurrence.fault}: {occurrence.title} {length}"

    def _mend(self, target: str, now_ns: int) -> str:
        on = [one for one in self._injector.broken.values() if target in (one.fault, *one.targets)]
        mine = [one for one in on if one.key in self._made]
        if not mine:
            raise Refused(self._nothing_to_mend(target, on))
        for occurrence in mine:
            self._plan_says(replace(occurrence, end_ns=max(now_ns, occurrence.begin_ns + 1)))
            self._measurement.heal_requested(occurrence)
        return f"mended {', '.join(f'{occurrence.fault}: {occurrence.title}' for occurrence in mine)}"

    def _nothing_to_mend(self, target: str, on: list[Occurrence]) -> str:
        if on:
            return f"{target}: {on[0].fault} is a fault of the scenario, which mends it at {_time(on[0].end_ns)}"
        down = next((occurrence for occurrence in self._injector.broken.values() if _cuts(occurrence, target)), None)
        return (
            f"{target} is down by {down.fault} ({down.title}); mend that" if down else f"nothing is broken at {target}"
        )

    def _refuse_twice(self, target: str, wanted: Occurrence) -> None:
        """Refuses a fault that is already in effect, by hand or by the scenario."""
        stands = next(
            (occurrence for occurrence in self._injector.broken.values() if _in_the_way(occurrence, wanted, target)),
            None,
        )
        if stands:
            raise Refused(f"{target}: already affected by {stands.fault} ({stands.title})")

    def _refuse_too_many_rules(self, wanted: Occurrence) -> None:
        """Keeps rule slots free at each port for scheduled faults."""
        others = [occurrence for occurrence in self._schedule.values() if wanted.begin_ns < occurrence.end_ns]
        rivals = [occurrence for occurrence in others if occurrence.begin_ns < wanted.end_ns]
        for place in wanted.places:
            if sum(occurrence.places.count(place) for occurrence in rivals) >= MAX_RULES:
                raise Refused(f"one port of {place.link} has or will have {MAX_RULES} rules, which is the limit")

    def _plan_says(self, occurrence: Occurrence) -> None:
        """Updates the plan before the action, so that even a killed run has nothing in its history that is not in its
        plan."""
        self._schedule[occurrence.key] = occurrence
        self._publish(self._schedule.values())


def offers(kinds: Mapping[str, type[Fault]], port_program: bool) -> dict[str, dict[str, str]]:
    """Actions for links and for switches, of these kinds, each with the reason against it (empty: possible)."""
    lacking = "needs the port program, and this fabric runs plain shapers"
    found: dict[str, dict[str, str]] = {"link": {}, "switch": {}}
    for word, model in requestable(kinds).items():
        side = "link" if model.target is Target.LINK else "switch"
        found[side][word] = lacking if model.effect.needs_program and not port_program else ""
    return found


def _in_the_way(occurrence: Occurrence, wanted: Occurrence, target: str) -> bool:
    """True for the same fault at the same place, a cut of a link that is down, or any fault of a switch that is off."""
    again = occurrence.kind == wanted.kind or _switches_off(occurrence)
    cut_twice = wanted.model.effect is Effect.PORTS and _cuts(occurrence, target)
    return (again and target in occurrence.targets) or cut_twice


def _switches_off(occurrence: Occurrence) -> bool:
    return occurrence.model.effect is Effect.PORTS and occurrence.model.target is Target.SWITCH


def _cuts(occurrence: Occurrence, link: str) -> bool:
    return occurrence.model.effect is Effect.PORTS and link in occurrence.links


def _free_names(scenario: Scenario) -> Iterator[str]:
    """Yields hand-1, hand-2 ..., skipping names in the scenario or the replayed schedule."""
    taken = {entry.name for entry in scenario.faults} | {occurrence.fault for occurrence in scenario.occurrences}
    return (name for number in count(1) if (name := f"hand-{number}") not in taken)


def _time(value_ns: int) -> str:
    shown_ns = _SHOWN_NS if value_ns >= _SHOWN_NS else 1_000
    return format_duration(max(shown_ns, round(value_ns / shown_ns) * shown_ns))
