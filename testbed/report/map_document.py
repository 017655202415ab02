"""What the mapper says of a run, and how right that is, as one JSON document; docs/mapper.md lists its keys."""

from __future__ import annotations

from math import isfinite
from typing import Any

from mrc_testbed.testbed.checks.fabric_map import fabric_map, unseen_links
from mrc_testbed.testbed.checks.locating import FaultFound, LocatingScore
from mrc_testbed.testbed.checks.map_spells import MapSpell, map_spells
from mrc_testbed.testbed.checks.path_evidence import witnesses
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import workload_ns

_S = 1e9


def map_document(record: RunRecord, name: str, score: LocatingScore | None, believed: bool) -> dict[str, Any]:
    """`score` None: the folder has no truth. Raises NoData where the workload never began."""
    found = fabric_map(record)
    start_ns, end_ns = workload_ns(record)
    return {
        "run": name,
        "start_ns": start_ns,
        "workload_s": (end_ns - start_ns) / _S,
        "evidence": {
            "period_ns": found.period_ns,
            "periods": found.periods,
            "hosts_choose_paths": record.scenario.transport.names_paths,
            "witnesses": witnesses(record),
            "unseen_links": unseen_links(record),
            "late_rows": found.late,
            "stalled_rows": found.stalled,
        },
        "broken": [_spell(spell, start_ns) for spell in map_spells(found.changes)],
        "score": None if score is None else {"believed": believed, **score_document(score, start_ns)},
    }


def _spell(spell: MapSpell, start_ns: int) -> dict[str, Any]:
    said = spell.said
    return {
        "where": said.name,
        "direction": said.direction,
        "loss": said.loss,
        "dead": spell.is_dead,
        "since_s": (said.since_ns - start_ns) / _S,
        "last_s": (spell.last_ns - start_ns) / _S,
        "known_s": (said.t_ns - start_ns) / _S,
        "well_s": None if spell.cleared_ns is None else (spell.cleared_ns - start_ns) / _S,
        "known_when_over": spell.over,
        "p": said.sure,
        "alike": list(said.alike),
        "witnesses": list(said.witnesses),
        "hosts": list(said.seers),
    }


def score_document(score: LocatingScore, start_ns: int) -> dict[str, Any]:
    """Times of faults count from `start_ns`."""
    return {
        "precision": score.precision,
        "recall": score.recall,
        "falsely_accused": score.falsely_accused,
        "accusations": [
            {"t_s": (one.t_ns - start_ns) / _S, "where": one.name, "right": one.right, "p": one.p}
            for one in score.accusations
        ],
        "faults": [_fault(one, start_ns) for one in (*score.faults, *score.beside)],
    }


def _fault(one: FaultFound, start_ns: int) -> dict[str, Any]:
    span = one.span
    return {
        "fault": span.fault,
        "cycle": span.number,
        "kind": span.kind,
        "links": sorted(span.links),
        "direction": span.direction,
        "begin_s": (span.placed_ns - start_ns) / _S,
        "end_s": (span.end_ns - start_ns) / _S if isfinite(span.end_ns) else None,
        "asked": span.asked,
        "located_ns": one.located_ns,
        "cleared_ns": one.cleared_ns,
    }
