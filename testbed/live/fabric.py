"""Load of links, and effects of faults on links and switches. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mrc_testbed.testbed.faults.schedule import Action, FaultStep
from mrc_testbed.testbed.scenario import Occurrence
from mrc_testbed.testbed.scenario.faults import State
from mrc_testbed.testbed.scenario.text.fields import WHOLE
from mrc_testbed.topos.plan import Plan

_GRAVITY = (State.UP, State.SLOW, State.LOSSY, State.BROKEN)
_TX_BYTES = 5
"""Index of the sent bytes in a row of Fabric.sample_ports."""


def link_state(occurrence: Occurrence) -> State:
    """State of a link under this fault alone. Broken: nothing passes, in either direction."""
    drawing = occurrence.model.drawing
    if drawing.whole_share and _takes_all(occurrence):
        return drawing.whole_share
    return State.UP if drawing.touched is State.DENIED else drawing.touched


def _switch_states(occurrence: Occurrence) -> Iterator[tuple[str, str]]:
    """The targeted switches that do not look intact."""
    state = occurrence.model.drawing.target
    if state:
        yield from ((name, state.value) for name in occurrence.targets)


def _takes_all(occurrence: Occurrence) -> bool:
    ends = {place.toward for place in occurrence.places}
    return occurrence.parameters.share == WHOLE and ends == {"near", "far"}


PortReadings = tuple[int, Sequence[tuple[Any, ...]]]
"""Time and rows."""


class FabricState:
    """State of the links and switches of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._rates_bps = {link.name: link.rate_bps for link in plan.links}
        self._ends = {
            end: (link.name, direction)
            for link in plan.links
            for direction, end in enumerate(((link.near.node, link.near.name), (link.far.node, link.far.name)))
        }
        self._loads = {link.name: [0.0, 0.0] for link in plan.links}
        self._before: PortReadings | None = None
        self._now: PortReadings | None = None
        self._on: dict[tuple[str, int], Occurrence] = {}
        self._states = dict.fromkeys(self._loads, State.UP)
        self.nodes: dict[str, str] = {}

    def sample(self, t_ns: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add interface counters of one moment. Loads cover the time since the previous sample, and are computed on
        access."""
        self._before, self._now = self._now, (t_ns, rows)

    def fault(self, step: FaultStep) -> None:
        """Add or remove an active fault."""
        if step.action is Action.INJECT:
            self._on[step.occurrence.key] = step.occurrence
        else:
            self._on.pop(step.occurrence.key, None)
        self._states = dict.fromkeys(self._loads, State.UP)
        for occurrence in self._on.values():
            state = link_state(occurrence)
            for name in occurrence.links or occurrence.targets:
                if name in self._states:  # other names are planes or switches
                    self._states[name] = max(self._states[name], state, key=_GRAVITY.index)
        self.nodes = {name: state for one in self._on.values() for name, state in _switch_states(one)}

    def links(self) -> dict[str, dict[str, Any]]:
        """`{name: {"load": [toward far, toward near], "state": ...}}`, loads as shares of the link's rate."""
        self._measure()
        return {name: {"load": list(load), "state": self._states[name].value} for name, load in self._loads.items()}

    def _measure(self) -> None:
        """Both samples have the same ports in the same order; a kernel may have extra devices."""
        if self._before is None or self._now is None:
            return
        (then_ns, before), (now_ns, now) = self._before, self._now
        bytes_a_bps = (now_ns - then_ns) / 8e9
        for old, new in zip(before, now, strict=False):
            end = self._ends.get(new[:2])
            if end and old[:2] == new[:2]:
                link, direction = end
                full = self._rates_bps[link] * bytes_a_bps
                self._loads[link][direction] = round(max(0, new[_TX_BYTES] - old[_TX_BYTES]) / full, 3)
        self._before = None
