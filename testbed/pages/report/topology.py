"""The fabric drawn, with every part marked that was touched by a fault at any time. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import Outage, outages
from mrc_testbed.testbed.pages.report.clock import Clock
from mrc_testbed.testbed.pages.report.faults import touched
from mrc_testbed.testbed.scenario.faults import State
from mrc_testbed.topos.render import svg
from mrc_testbed.topos.units import some

_GRAVEST_FIRST = (State.BROKEN.value, State.LOSSY.value, State.SLOW.value)
_SIGNS = {"broken": "broken", "lossy": "loses packets", "slow": "slowed down", "denied": "paths denied"}
MOST_TIMES = 6


def drawing(record: RunRecord) -> str:
    """The SVG, parts with the class of the gravest state that they were in."""
    marks = _states(record)
    return re.sub(r'data-(?:node|link)="([^"]+)"', lambda found: _marked(found, marks), svg(record.plan))


def _marked(found: re.Match[str], marks: Mapping[str, str]) -> str:
    state = marks.get(found[1])
    return f'{found[0]} class="{state}"' if state else found[0]


def _states(record: RunRecord) -> dict[str, str]:
    found: dict[str, str] = {}
    for outage in outages(record):
        state, nodes, links = touched(record, outage)
        for name in (*nodes, *links) if state in _GRAVEST_FIRST else ():
            known = found.get(name, state)
            found[name] = min(known, state, key=_GRAVEST_FIRST.index)
    return found


def not_drawn(record: RunRecord, text: str) -> int:
    """How many touched parts a drawing of a big fabric leaves out."""
    return sum(f'"{name}"' not in text for name in _states(record))


def broken_list(record: RunRecord, clock: Clock | None) -> list[dict[str, Any]]:
    """What was touched, in which way and when: one entry for all occurrences of a fault that touched the same."""
    groups: dict[tuple[str, str, str], list[Outage]] = {}
    for outage in outages(record):
        key = outage.fault, outage.occurrence.title, touched(record, outage)[0]
        groups.setdefault(key, []).append(outage)
    return [
        {"fault": fault, "what": what, "state": state, "word": _SIGNS[state], "when": _when(occurrences, clock)}
        for (fault, what, state), occurrences in groups.items()
    ]


def _when(occurrences: list[Outage], clock: Clock | None) -> str:
    if clock is None:
        return ""
    return f"{some([_time(one, clock) for one in occurrences], MOST_TIMES)} {clock.unit}"


def _time(outage: Outage, clock: Clock) -> str:
    begin = "cold start" if outage.injected_ns < clock.start_ns else clock.read(outage.injected_ns, 1)
    return f"{begin}\u2013{'?' if outage.healed_ns is None else clock.read(outage.healed_ns, 1)}"
