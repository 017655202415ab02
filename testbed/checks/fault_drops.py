"""Data packets that the fabric dropped because of each fault, each packet counted once. Pure.

The books say where a packet was dropped, to the packet, but not when. Where several faults broke the same place, its
drops are theirs together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mrc_testbed.testbed.checks.conservation import Drop, Ledger, balance
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import outages
from mrc_testbed.testbed.scenario import Effect
from mrc_testbed.testbed.scenario.faults.kinds.tables import ends_at

_REASONS = {Effect.RULES: "rule", Effect.TABLE: "no route"}
"""Why packets of a fault are missing, where its links are not down."""


@dataclass(frozen=True, slots=True)
class Ignorance:
    """Why it is not known where packets went."""

    why: str


@dataclass(frozen=True, slots=True)
class FaultDrops:
    """Data packets dropped by one fault `alone`, and at places that others broke too (`shared`, by their names)."""

    alone: int
    shared: tuple[tuple[tuple[str, ...], int], ...]


@derived
def ledger_of(record: RunRecord) -> Ledger | Ignorance:
    """The packets of the whole run."""
    if record.books is None:
        plain = record.environment.get("switch_ports") != "port program"
        return Ignorance("not counted by class: switch ports are plain shapers" if plain else "the run ended early")
    try:
        books = replace(record.books, no_routes=_no_routes(record))
        return balance(record.plan, books, record.cut_links, record.copied_links, _strays(record))
    except KeyError as error:
        return Ignorance(f"counters.json lacks {error}")


def sums_of(record: RunRecord) -> Ledger | Ignorance:
    """The same for those who tell its sums: they add up, or they are not known."""
    ledger = ledger_of(record)
    doubt = "" if isinstance(ledger, Ignorance) else ledger.doubt
    return Ignorance(f"the books do not balance: {doubt}") if doubt else ledger


def _strays(record: RunRecord) -> dict[str, frozenset[str]]:
    """By node where a fault of a table let packets end: the links that they should have gone by."""
    found: dict[str, frozenset[str]] = {}
    for outage in outages(record):
        if outage.occurrence.model.effect is Effect.TABLE and outage.occurrence.parameters.values:
            for node in ends_at(outage.occurrence, record.plan):
                found[node] = found.get(node, frozenset()) | set(outage.links)
    return found


def _no_routes(record: RunRecord) -> dict[str, int]:
    """By node, as its kernel counted; empty where no route was ever missing."""
    told = (record.fidelity or {}).get("no_routes")
    counts = told.items() if isinstance(told, dict) else ()
    return {switch: count for switch, count in counts if isinstance(count, int) and count > 0}


def drops_of(record: RunRecord, fault: str) -> FaultDrops | Ignorance:
    """Those of one fault."""
    groups = _groups(record)
    if isinstance(groups, Ignorance):
        return groups
    mine = {names: count for names, count in groups.items() if fault in names}
    shared = ((tuple(sorted(names - {fault})), count) for names, count in mine.items() if len(names) > 1)
    return FaultDrops(mine.get(frozenset({fault}), 0), tuple(sorted(shared)))


@derived
def _groups(record: RunRecord) -> Counter[frozenset[str]] | Ignorance:
    """Data packets by the faults that can have taken them; every packet is in one group."""
    ledger = ledger_of(record)
    if isinstance(ledger, Ignorance):
        return ledger
    found: Counter[frozenset[str]] = Counter()
    for drop in ledger.drops:
        if drop.data:
            found[frozenset(_suspects(record, drop))] += drop.data
    return found


def _suspects(record: RunRecord, drop: Drop) -> Iterator[str]:
    for outage in outages(record):
        reason = _REASONS.get(outage.occurrence.model.effect, "fault")
        if reason == drop.reason and drop.links.intersection(outage.links):
            yield outage.fault
