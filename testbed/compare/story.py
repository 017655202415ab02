"""The events of a run in words without times, so that another run of the same seed can match them, by chapter. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import recoveries
from mrc_testbed.testbed.checks.windows import Outage, outages
from mrc_testbed.testbed.evidence.events import EvChange
from mrc_testbed.testbed.scenario.faults.occurrence import OccurrenceKey

NO_FAULT: OccurrenceKey = ("", 0)
"""The chapter of events that no fault caused."""
_DENIED = "DENIED"


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """An event seen by an endpoint.

    `what` contains no time. `t_ns`: since the injection or, if `after_heal`, since the heal; since the workload's start
    in the chapter without a fault.
    """

    what: str
    t_ns: int
    after_heal: bool = False


@dataclass(frozen=True, slots=True)
class Chapter:
    """One occurrence of one fault and its events, in time order. `title`: kind and target."""

    key: OccurrenceKey
    title: str
    events: tuple[StoryEvent, ...]

    @property
    def name(self) -> str:
        """`flap-plane-0, occurrence 1`."""
        return f"{self.key[0]}, occurrence {self.key[1]}" if self.key != NO_FAULT else "not due to a fault"


def chapters(record: RunRecord) -> list[Chapter]:
    """The chapters of all occurrences in order of injection, then the one without a fault if it has events.

    EVs rested for ECN are left out: they depend on momentary queues.
    """
    by_key = {(outage.fault, outage.number): outage for outage in outages(record)}
    held: dict[OccurrenceKey, list[tuple[int, str, bool]]] = {key: [] for key in by_key}
    for key, t_ns, what, after_heal in (*_of_evs(record), *_of_ports_and_qps(record)):
        held.setdefault(key, []).append((t_ns, what, after_heal))
    return [_chapter(record, key, by_key.get(key), sorted(found)) for key, found in held.items() if key[0] or found]


def _chapter(
    record: RunRecord, key: OccurrenceKey, outage: Outage | None, found: Sequence[tuple[int, str, bool]]
) -> Chapter:
    injected = outage.injected_ns if outage else record.start_ns or 0
    healed = (outage.healed_ns if outage else None) or injected
    events = (StoryEvent(what, t_ns - (healed if late else injected), late) for t_ns, what, late in found)
    return Chapter(key, f"{outage.kind} {outage.target}" if outage else "", tuple(events))


_Found = Iterator[tuple[OccurrenceKey, int, str, bool]]


def _of_evs(record: RunRecord) -> _Found:
    """The return of a path belongs to the chapter of its retirement, however long it takes."""
    caused = {id(one.change): (one.fault, one.number) for one in recoveries(record)}
    left: dict[tuple[str, str, int, int], OccurrenceKey] = {}
    latest = _latest(record)
    for change in record.ev_changes:
        path = (change.host, change.peer, change.plane, change.uplink)
        name = f"{change.host}->{change.peer} p{change.plane}/{change.uplink}"
        if change.retired:
            left[path] = caused.get(id(change), NO_FAULT)
            yield left[path], change.t_ns, f"{name} retired", False
        elif change.restored:
            yield left.get(path, NO_FAULT), change.t_ns, f"{name} back", True
        elif words := _change_words(change):
            yield latest(change.t_ns), change.t_ns, f"{name} {words}", False


def _change_words(change: EvChange) -> str:
    """The controller's part in a change; empty without one."""
    if change.new == _DENIED:
        return "denied"
    return "allowed" if change.old == _DENIED else ""


def _of_ports_and_qps(record: RunRecord) -> _Found:
    latest = _latest(record)
    for port in record.port_changes:
        whose = f"learns that port p{port.plane} of {port.peer}" if port.peer else f"port p{port.plane}"
        yield latest(port.t_ns), port.t_ns, f"{port.host} {whose} is {port.state}", False
    for move in record.port_moves:
        onto = "" if move.state == "OK" else f", port p{move.carrier} has its part"
        told = f"{move.host} QP to {move.peer}: port p{move.plane} is {move.state}{onto}"
        yield latest(move.t_ns), move.t_ns, told, False
    for error in record.qp_errors:
        yield latest(error.t_ns), error.t_ns, f"{error.host} QP to {error.peer} failed: {error.reason}", False


def _latest(record: RunRecord) -> Callable[[int], OccurrenceKey]:
    """The latest occurrence that had begun by a time."""
    begun = [(outage.invoked_ns, (outage.fault, outage.number)) for outage in outages(record)]

    def key_at(t_ns: int) -> OccurrenceKey:
        return max((one for one in begun if one[0] <= t_ns), default=(0, NO_FAULT))[1]

    return key_at
