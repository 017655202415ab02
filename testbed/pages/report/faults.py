"""Faults as charts and drawings show them: when each occurrence was on, and which parts it touched. Pure."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import Outage, outages
from mrc_testbed.testbed.pages.report.clock import Clock

TouchedPart = tuple[str, tuple[str, ...], tuple[str, ...]]
"""A state, and the nodes and links that are in it."""


def touched(record: RunRecord, outage: Outage) -> TouchedPart:
    """The parts that a fault touched, and what it made of them: broken, lossy, slow; denied where none is touched.

    A switch stays whole when the fault hit a port or a path of it.
    """
    occurrence = outage.occurrence
    aimed = occurrence.targets if occurrence.model.drawing.target else ()
    nodes = tuple(name for name in aimed if name in record.plan.switch_by_name)
    links = occurrence.links or tuple(name for name in occurrence.targets if name in record.plan.link_by_name)
    return occurrence.model.drawing.touched.value, nodes, links


def fault_bands(record: RunRecord, clock: Clock) -> dict[str, Any]:
    """`occurrences`: name, times in s (`to` null: never healed), and the number of its entry in `parts`, which holds
    state, nodes and links of what it touched."""
    parts: dict[TouchedPart, int] = {}
    occurrences = []
    for outage in outages(record):
        part = parts.setdefault(touched(record, outage), len(parts))
        begin = max(clock.at(outage.injected_ns), 0.0)
        end = None if outage.healed_ns is None else clock.at(outage.healed_ns)
        where = {"title": outage.occurrence.title, "part": part}
        occurrences.append({"name": outage.fault, "number": outage.number, "from": begin, "to": end, **where})
    return {"occurrences": occurrences, "parts": [list(part) for part in parts]}
