"""Whether anything came of an incident: one that no packet has met is no case. Pure.

The books know each packet that a rule, a cut or a wrong entry took. Of levels and rates they do not know what would
have been without the fault: there a second run without it has to be other than the first (`app/incidents.py`).
"""

from __future__ import annotations

from mrc_testbed.testbed.checks.fault_drops import Ignorance, ledger_of
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.unmet import unmet_faults
from mrc_testbed.testbed.scenario import Effect, Occurrence

_BY_COMPARISON = (Effect.LEVELS, Effect.RATE)


def effect_of(record: RunRecord, fault: str) -> bool | None:
    """True if something came of a fault; None where only a run without it can tell."""
    mine = [one for one in record.occurrences if one.fault == fault]
    effects = {one.model.effect for one in mine}
    if effects & {*_BY_COMPARISON}:
        return None
    if fault in unmet_faults(record):
        return False
    if effects & {Effect.RULES, Effect.TABLE}:
        return any(_took_packets(record, one) or _corrupted(record, one) for one in mine)
    if Effect.NOTHING in effects:
        return any(change.new == "DENIED" for change in record.ev_changes)
    return True


def _took_packets(record: RunRecord, occurrence: Occurrence) -> bool:
    """Whether a rule, or a node without a route, took any packet that should have gone by its links."""
    ledger = ledger_of(record)
    if isinstance(ledger, Ignorance):
        return False
    return any(drop.reason != "fault" and drop.links.intersection(occurrence.links) for drop in ledger.drops)


def _corrupted(record: RunRecord, occurrence: Occurrence) -> bool:
    """Whether a port where it changes packets has counted one."""
    if record.books is None:
        return False
    plan = record.plan
    ends = (getattr(plan.link_by_name[place.link], place.toward) for place in occurrence.places)
    return any(record.books.ports[end.node, end.name]["in_corrupted"] for end in ends)
