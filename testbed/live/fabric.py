"""How loaded the links are and what faults have done to them and to switches. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testbed.faults.schedule import Action, FaultStep
from testbed.scenario import Changes, Cycle, changes_of
from testbed.scenario.fields import WHOLE
from topos.plan import Plan

UP, SLOW, LOSSY, BROKEN, SILENT = "up", "slow", "lossy", "broken", "silent"
_GRAVITY = (UP, SLOW, LOSSY, BROKEN)
_NODE_STATES = {"switch-reboot": BROKEN, "switch-silent": SILENT}
_TX_BYTES = 5
"""Where a row of Fabric.sample_ports has what the port sent."""


def link_state(cycle: Cycle) -> str:
    """What a link is while this cycle alone is on. Broken is one that passes nothing at all, either way."""
    match changes_of(cycle.kind):
        case Changes.PORTS:
            return BROKEN
        case Changes.RATE:
            return SLOW
        case Changes.RULES:
            return BROKEN if _takes_all(cycle) else LOSSY
        case Changes.NOTHING:
            return UP


def _takes_all(cycle: Cycle) -> bool:
    if cycle.kind == "switch-silent":
        return True
    ends = {place.toward for place in cycle.places}
    return cycle.kind == "link-loss" and cycle.how.share == WHOLE and ends == {"near", "far"}


Sample = tuple[int, Sequence[tuple[Any, ...]]]
"""Time and rows."""


class FabricState:
    """Links and switches of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._rate_bps = plan.shape.port_rate_bps
        self._ends = {
            end: (link.name, direction)
            for link in plan.links
            for direction, end in enumerate(((link.near.node, link.near.name), (link.far.node, link.far.name)))
        }
        self._loads = {link.name: [0.0, 0.0] for link in plan.links}
        self._before: Sample | None = None
        self._now: Sample | None = None
        self._on: dict[tuple[str, int], Cycle] = {}
        self._states = dict.fromkeys(self._loads, UP)
        self.nodes: dict[str, str] = {}

    def sample(self, t_ns: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Interface counters of one moment. Loads are since the one before, and worked out when they are asked for."""
        self._before, self._now = self._now, (t_ns, rows)

    def fault(self, step: FaultStep) -> None:
        """A cycle is on, or off again."""
        if step.action is Action.INJECT:
            self._on[step.cycle.key] = step.cycle
        else:
            self._on.pop(step.cycle.key, None)
        self._states = dict.fromkeys(self._loads, UP)
        for cycle in self._on.values():
            state = link_state(cycle)
            for name in cycle.links or (cycle.targets if state is SLOW else ()):
                self._states[name] = max(self._states[name], state, key=_GRAVITY.index)
        self.nodes = {
            name: _NODE_STATES[cycle.kind]
            for cycle in self._on.values()
            if cycle.kind in _NODE_STATES
            for name in cycle.targets
        }

    def links(self) -> dict[str, dict[str, Any]]:
        """`{name: {"load": [toward far, toward near], "state": ...}}`, loads as parts of the port rate of the plan."""
        self._measure()
        return {name: {"load": list(load), "state": self._states[name]} for name, load in self._loads.items()}

    def _measure(self) -> None:
        """Rows of two samples are of the same ports in the same order; a kernel may have devices that no plan has."""
        if self._before is None or self._now is None:
            return
        (then_ns, before), (now_ns, now) = self._before, self._now
        full = self._rate_bps * (now_ns - then_ns) / 8e9
        for old, new in zip(before, now, strict=False):
            end = self._ends.get(new[:2])
            if end and old[:2] == new[:2]:
                link, direction = end
                self._loads[link][direction] = round(max(0, new[_TX_BYTES] - old[_TX_BYTES]) / full, 3)
        self._before = None
