"""What the mapper said of each part of the fabric over time, as rows of states. Pure."""

from __future__ import annotations

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.mapper.mapper import MapAction
from mrc_testbed.testbed.pages.report.clock import Clock
from mrc_testbed.testbed.pages.report.variation import IN_USE, Timeline

MAPPED = "What the mapper said"
ACCUSED, DENIED = "A", "D"


def mapped_timelines(record: RunRecord, clock: Clock) -> list[Timeline]:
    """A row for each part that was ever accused, the first accused first: whole, accused, or denied."""
    moments = [(one.t_ns, one.name, one.action.value) for one in record.mapped.changes]
    moments += [(one.t_ns, one.name, one.op) for one in record.mapped.decisions]
    rows: dict[str, list[tuple[float, str]]] = {}
    now: dict[str, set[str]] = {}
    for t_ns, name, op in sorted(moments, key=lambda moment: moment[0]):
        states = now.setdefault(name, set())
        match op:
            case MapAction.ACCUSE:
                states.add(ACCUSED)
            case MapAction.CLEAR | MapAction.OVER:
                states.discard(ACCUSED)
            case "deny":
                states.add(DENIED)
            case "allow":
                states.discard(DENIED)
        shown = DENIED if DENIED in states else ACCUSED if ACCUSED in states else IN_USE
        rows.setdefault(name, []).append((clock.at(t_ns), shown))
    return [
        Timeline(name, IN_USE, [t_s for t_s, _ in row], "".join(state for _, state in row))
        for name, row in rows.items()
    ]
