"""Holds a selection that the project did not write to the rules of `EvSelection`."""

from __future__ import annotations

from collections.abc import Sequence

from mrc_testbed.hosts.common.errors import PluginError
from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE, EvSelection
from mrc_testbed.hosts.mrc.evselect.evset import EvSet
from mrc_testbed.hosts.mrc.paths import Path


class Guard(EvSelection):
    """Hands everything on to `inner` and raises `PluginError` for an answer that no packet may follow.

    Built-in selections go without it, so that the hot path does not pay for what tests show of them.
    """

    def __init__(self, name: str, inner: EvSelection, evs: EvSet) -> None:
        self._name = name
        self._inner = inner
        self._evs = evs
        self._promised = NO_PLANE
        self.uses_skip = bool(inner.uses_skip)
        self.retires = bool(getattr(inner, "retires", True))
        self.uses_round_trips = bool(getattr(inner, "uses_round_trips", False))
        self.changed = inner.changed  # type: ignore[method-assign]
        self.enter = inner.enter  # type: ignore[method-assign]
        self.leave = inner.leave  # type: ignore[method-assign]
        self.open = inner.open  # type: ignore[method-assign]
        self.close = inner.close  # type: ignore[method-assign]
        self.on_congestion = inner.on_congestion  # type: ignore[method-assign]
        self.on_arrival = inner.on_arrival  # type: ignore[method-assign]
        self.on_round_trip = inner.on_round_trip  # type: ignore[method-assign]
        self.on_loss = inner.on_loss  # type: ignore[method-assign]

    @property
    def turn(self) -> int:  # type: ignore[override]
        """That of `inner`, which must be a plane that can be used."""
        if not self._evs.paths:
            return NO_PLANE
        self._promised = plane = self._inner.turn
        if plane not in range(self._evs.planes) or not self._evs.usable(plane):
            self._refuse(f"turn is {plane!r}, which has no EV that may carry data")
        return plane

    def take(self, avoid: Path | None = None) -> Path:
        """That of `inner`, which may carry data and must be of the plane it had announced, unless it avoids an EV."""
        path = self._inner.take(avoid)
        if path not in self._evs.paths:
            self._refuse(f"take() returned {_name(path)}, which may not carry data")
        if path.plane != self._promised and avoid is None:
            self._refuse(f"take() returned {_name(path)}, but turn was {self._promised}")
        return path

    def active(self, plane: int) -> Sequence[Path]:
        """Those of `inner` that may be used."""
        return [path for path in self._inner.active(plane) if path in self._evs.paths and path.plane == plane]

    def _refuse(self, mistake: str) -> None:
        raise PluginError(self._name, mistake)


def _name(path: object) -> str:
    if isinstance(path, Path):
        return f"the EV of plane {path.plane}, uplink {path.uplink} ({path.state.value})"
    return repr(path)
