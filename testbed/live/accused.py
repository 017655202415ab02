"""What the mapper takes for broken now, and what of it is denied. Pure."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.mapper.mapper import MapAction
from mrc_testbed.testbed.runner.events import MapDecided, MapSaid


class Accused:
    """By name."""

    def __init__(self) -> None:
        self._losses: dict[str, float] = {}
        self._denied: set[str] = set()

    def take(self, event: MapSaid | MapDecided) -> None:
        """The mapper said or did something."""
        if isinstance(event, MapDecided):
            if event.op != "keep":
                (self._denied.add if event.op == "deny" else self._denied.discard)(event.component)
        elif event.change.action is MapAction.ACCUSE:
            self._losses[event.change.name] = event.change.loss
        else:
            self._losses.pop(event.change.name, None)

    def parts(self) -> dict[str, dict[str, Any]]:
        """`{name: {"loss": share, "denied": whether}}`; what is denied and no longer accused has a loss of 0."""
        return {
            name: {"loss": round(self._losses.get(name, 0.0), 3), "denied": name in self._denied}
            for name in sorted(self._losses.keys() | self._denied)
        }
